/**
 * Compares expected with actual facts. A fact is one key of `expected`; how its value is compared depends on the key:
 * most lists stand for sets, a few orders matter, and some objects may say less than the actual value.
 */

export type Comparison =
  /** Lists in order, objects key by key. */
  | 'exact'
  /** The outermost list, or each list in an object, is a set; objects key by key. */
  | 'sets'
  /** As `sets`, but a key whose list is empty is as good as none. */
  | 'sets-without-empty'
  /** Every key of the expected object, at any depth, has the expected value; there may be more. */
  | 'at-least';

/** Are both equal under this comparison? */
export function agrees(expected: unknown, actual: unknown, comparison: Comparison): boolean {
  if (comparison === 'at-least' && isObject(expected)) {
    return (
      isObject(actual) && Object.keys(expected).every((key) => agrees(expected[key], actual[key], comparison))
    );
  }
  return canonical(expected, comparison) === canonical(actual, comparison);
}

/** One text for all values that are equal under the comparison. */
function canonical(value: unknown, comparison: Comparison): string {
  if (comparison === 'exact') return stableText(value);
  if (Array.isArray(value)) return `[${value.map(stableText).sort().join(',')}]`;
  if (!isObject(value)) return stableText(value);
  return keysOf(value)
    .filter((key) => comparison !== 'sets-without-empty' || !isEmptyList(value[key]))
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key], comparison)}`)
    .join(',');
}

/** JSON with keys in one order. */
export function stableText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableText).join(',')}]`;
  if (isObject(value)) {
    return `{${keysOf(value)
      .map((key) => `${JSON.stringify(key)}:${stableText(value[key])}`)
      .join(',')}}`;
  }
  return value === undefined ? 'nothing' : JSON.stringify(value);
}

function keysOf(value: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort();
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
