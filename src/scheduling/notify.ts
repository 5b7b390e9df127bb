/**
 * Which supervisors must hear of a change.
 * Source: Storm's rule for pushing assignments to nodes.
 */
import type { PlacedWorker } from './cluster-snapshot.js';
import { slotKey } from './cluster-snapshot.js';
import { compareText, rangeKey } from './order.js';

/**
 * Supervisors to notify, ascending. A new or removed topology: all of its supervisors; else, for every executor that is
 * on another slot now, the old and the new one, and the supervisor of every executor that had no slot.
 * Isobar adds the supervisors whose worker lost executors, which Storm leaves to find out by polling.
 */
export function supervisorsToNotify(
  before: readonly PlacedWorker[] | undefined,
  after: readonly PlacedWorker[] | undefined,
): readonly string[] {
  const slotsBefore = slotsOfExecutors(before ?? []);
  const slotsAfter = slotsOfExecutors(after ?? []);
  const supervisors = new Set<string>();
  for (const [range, worker] of slotsAfter) {
    const old = slotsBefore.get(range);
    if (old !== undefined && slotKey(old) === slotKey(worker)) continue;
    supervisors.add(worker.supervisor);
    if (old !== undefined) supervisors.add(old.supervisor);
  }
  for (const [range, worker] of slotsBefore) if (!slotsAfter.has(range)) supervisors.add(worker.supervisor);
  return [...supervisors].sort(compareText);
}

function slotsOfExecutors(workers: readonly PlacedWorker[]): ReadonlyMap<string, PlacedWorker> {
  return new Map(
    workers.flatMap((worker) => worker.executors.map((range) => [rangeKey(range), worker] as const)),
  );
}
