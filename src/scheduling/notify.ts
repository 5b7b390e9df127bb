/**
 * Which supervisors must hear of a change.
 * Source: Storm's rule for pushing assignments to nodes.
 */
import type { PlacedWorker } from './cluster-snapshot.js';
import { slotKey } from './cluster-snapshot.js';
import { compareText, rangeKey, sameRanges } from './order.js';

/**
 * Supervisors to notify, ascending. A new or removed topology: all of its supervisors; else, for every executor that is
 * on another slot now, the old and the new one, and the supervisor of every executor that had no slot.
 * Isobar adds the supervisors whose worker lost executors, which Storm leaves to find out by polling.
 */
export function supervisorsToNotify(
  before: readonly PlacedWorker[] | undefined,
  after: readonly PlacedWorker[] | undefined,
): readonly string[] {
  const supervisors = new Set<string>();
  const [old, now] = [changedOf(before ?? [], after ?? []), changedOf(after ?? [], before ?? [])];
  if (old.length === 0 || now.length === 0) {
    for (const { supervisor, executors } of [...old, ...now])
      if (executors.length > 0) supervisors.add(supervisor);
  } else {
    const [slotsBefore, slotsAfter] = [slotsOfExecutors(old), slotsOfExecutors(now)];
    for (const [range, worker] of slotsAfter) {
      const from = slotsBefore.get(range);
      if (from !== undefined && slotKey(from) === slotKey(worker)) continue;
      supervisors.add(worker.supervisor);
      if (from !== undefined) supervisors.add(from.supervisor);
    }
    for (const [range, worker] of slotsBefore) if (!slotsAfter.has(range)) supervisors.add(worker.supervisor);
  }
  return [...supervisors].sort(compareText);
}

/** Workers that the other list does not have with the same executors: all others stand for executors that stay where they are. */
function changedOf(
  workers: readonly PlacedWorker[],
  others: readonly PlacedWorker[],
): readonly PlacedWorker[] {
  if (workers.length === 0 || others.length === 0) return workers;
  const bySlot = new Map(others.map((worker) => [slotKey(worker), worker.executors]));
  return workers.filter((worker) => {
    const same = bySlot.get(slotKey(worker));
    return same === undefined || (same !== worker.executors && !sameRanges(same, worker.executors));
  });
}

function slotsOfExecutors(workers: readonly PlacedWorker[]): ReadonlyMap<string, PlacedWorker> {
  const slots = new Map<string, PlacedWorker>();
  for (const worker of workers) for (const range of worker.executors) slots.set(rangeKey(range), worker);
  return slots;
}
