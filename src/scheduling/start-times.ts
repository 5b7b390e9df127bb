/**
 * Start times: a slot whose executors changed starts anew, with all its executors.
 * Source: Storm's `Nimbus.changedExecutors`.
 */
import type { ExecutorRange } from './assignment.js';
import { type PlacedWorker, slotKey } from './cluster-snapshot.js';
import { compareRanges, rangeKey, sameRanges } from './order.js';

/** The new workers whose slot had other executors before, or none. */
export function changedWorkers(
  before: readonly PlacedWorker[],
  after: readonly PlacedWorker[],
): readonly PlacedWorker[] {
  const executorsBefore = new Map(before.map((worker) => [slotKey(worker), sorted(worker.executors)]));
  return after.filter(
    (worker) => !sameRanges(executorsBefore.get(slotKey(worker)) ?? [], sorted(worker.executors)),
  );
}

export interface StartTimes {
  /** Executors that start now, in order of first task. */
  readonly changed: readonly ExecutorRange[];
  /** By executor (`first-last`). Entries of executors that are gone stay. */
  readonly times: ReadonlyMap<string, number>;
}

/** Start times of executors after a change, in the unit of `now`. */
export function startTimes(
  before: { readonly workers: readonly PlacedWorker[]; readonly times: ReadonlyMap<string, number> },
  after: readonly PlacedWorker[],
  now: number,
): StartTimes {
  const changed = changedWorkers(before.workers, after)
    .flatMap(({ executors }) => executors)
    .sort(compareRanges);
  const times = new Map(before.times);
  for (const range of changed) times.set(rangeKey(range), now);
  return { changed, times };
}

function sorted(executors: readonly ExecutorRange[]): ExecutorRange[] {
  return [...executors].sort(compareRanges);
}
