/**
 * A question that was asked before: nearly all rounds of a large cluster ask what the last one asked, and a pure function answers the same.
 * Cost: O(machines + topologies), where lists are handed from round to round.
 */
import type { ClusterSnapshot } from '../../cluster-snapshot.js';
import type { SchedulingResult, Strategy } from '../strategy.js';

/** The strategy, which keeps its last question and the answer. */
export function rememberingLast(strategy: Strategy): Strategy {
  let last: { readonly asked: ClusterSnapshot; readonly answer: SchedulingResult } | undefined;
  return (snapshot) => {
    if (last !== undefined && isSameQuestion(last.asked, snapshot)) return last.answer;
    const answer = strategy(snapshot);
    last = { asked: snapshot, answer };
    return answer;
  };
}

/** What `balanced` does not read; everything else is compared, so that a field more makes no answer wrong. */
const UNREAD: ReadonlySet<string> = new Set([
  'greyListedSupervisors',
  'name',
  'owner',
  'priority',
  'resources',
  'rules',
  'uptimeMs',
]);

function isSameQuestion(a: ClusterSnapshot, b: ClusterSnapshot): boolean {
  const { supervisors, topologies, placement, ...others } = b;
  const { supervisors: machines, topologies: asked, placement: placed, ...rest } = a;
  return (
    sameItems(machines, supervisors, sameFields) &&
    sameItems(asked, topologies, sameFields) &&
    sameFields(rest, others) &&
    placed.size === placement.size &&
    [...placed].every(([id, workers]) => placement.get(id) === workers)
  );
}

function sameFields(a: object, b: object): boolean {
  if (a === b) return true;
  const other = b as Readonly<Record<string, unknown>>; // by name
  let known = 0;
  for (const [name, value] of Object.entries(a)) {
    if (UNREAD.has(name)) continue;
    known++;
    if (!sameValue(value, other[name])) return false;
  }
  for (const name in other) if (!UNREAD.has(name)) known--;
  return known === 0;
}

/** Lists of objects are the same if they are the very same: they are handed from round to round. */
function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && sameItems(a, b, Object.is);
  if (a instanceof Map) return b instanceof Map && sameEntries(a, b);
  if (a instanceof Set) return b instanceof Set && a.size === b.size && [...a].every((one) => b.has(one));
  return sameFields(a, b);
}

function sameEntries(a: ReadonlyMap<unknown, unknown>, b: ReadonlyMap<unknown, unknown>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (!Object.is(b.get(key), value)) return false;
  return true;
}

function sameItems<T>(a: readonly T[], b: readonly T[], isSame: (a: T, b: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (!isSame(a[index]!, b[index]!)) return false;
  return true;
}
