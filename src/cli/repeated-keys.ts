/**
 * Keys that an object of a JSON text has twice: the parser keeps the last one in silence, so half of what somebody wrote would not
 * count. Only texts that have been parsed are looked at, so that nothing has to be said about their form.
 */

export interface RepeatedKey {
  /** The object and the key in it. */
  readonly path: readonly (string | number)[];
  /** Of the second one, from 1. */
  readonly line: number;
  readonly column: number;
}

interface Container {
  /** Keys so far; undefined: it is a list. */
  readonly keys: Set<string> | undefined;
  /** Key or index of what is being read. */
  at: string | number;
}

/** Calls for each key that was there before in its object. Cost: O(length); no recursion. */
export function eachRepeatedKey(json: string, found: (key: RepeatedKey) => void): void {
  const open: Container[] = [];
  let isKeyNext = false;
  let [line, lineStart] = [1, 0];
  for (let index = 0; index < json.length; index++) {
    const inner = open.at(-1);
    switch (json[index]) {
      case '\n':
        line++;
        lineStart = index + 1;
        break;
      case '{':
        open.push({ keys: new Set(), at: '' });
        isKeyNext = true;
        break;
      case '[':
        open.push({ keys: undefined, at: 0 });
        isKeyNext = false;
        break;
      case '}':
      case ']':
        open.pop();
        isKeyNext = false;
        break;
      case ',':
        isKeyNext = inner?.keys !== undefined;
        if (typeof inner?.at === 'number') inner.at++;
        break;
      case '"': {
        const end = endOfString(json, index);
        if (isKeyNext && inner?.keys !== undefined) {
          inner.at = stringOf(json.slice(index, end + 1));
          if (inner.keys.has(inner.at))
            found({ path: open.map(({ at }) => at), line, column: index - lineStart + 1 });
          inner.keys.add(inner.at);
          isKeyNext = false;
        }
        index = end;
        break;
      }
      default:
    }
  }
}

/** Where the string ends that begins here: at a quote behind an even number of backslashes. */
function endOfString(json: string, start: number): number {
  for (let end = start; ; ) {
    end = json.indexOf('"', end + 1);
    if (end < 0) return json.length;
    let before = end;
    while (json[before - 1] === '\\') before--;
    if ((end - before) % 2 === 0) return end;
  }
}

function stringOf(literal: string): string {
  // A string literal of a text that was parsed.
  return literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
}
