/** "Did you mean …?" */
import { closest, distance } from 'fastest-levenshtein';

/**
 * The known name that is most like the one given, if it is like it at all: less than half of it differs, or it is the only one that
 * begins so.
 */
export function closestName(name: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined;
  const best = closest(name, [...known]);
  if (distance(name, best) * 2 <= Math.max(name.length, best.length)) return best;
  const longer = name === '' ? [] : known.filter((one) => one.startsWith(name));
  return longer.length === 1 ? longer[0] : undefined;
}
