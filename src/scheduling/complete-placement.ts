/**
 * Is a list of workers all that its topology needs: in order of supervisor and port, and each executor exactly once? It follows from the
 * two lists alone, so that a placement that is handed from round to round is looked through once.
 */
import { compareSlots, type PlacedWorker } from './cluster-snapshot.js';
import { type ExecutorIndex, NO_EXECUTOR } from './executor-index.js';
import { compareRanges, isSorted } from './order.js';

const KNOWN = new WeakMap<readonly PlacedWorker[], ExecutorIndex>();

/** Cost: O(E) for a list that was not complete for these executors before, else O(1). */
export function isComplete(workers: readonly PlacedWorker[], index: ExecutorIndex): boolean {
  if (KNOWN.get(workers) === index) return true;
  const count = index.executors.length;
  let placed = 0;
  for (const { executors } of workers) placed += executors.length;
  if (placed !== count || count === 0 || !isSorted(workers, compareSlots)) return false;
  const seen = new Uint8Array(count);
  for (const { executors } of workers) {
    if (executors.length === 0 || !isSorted(executors, compareRanges)) return false;
    for (const range of executors) {
      const place = index.indexOf(range);
      if (place === NO_EXECUTOR || seen[place] === 1) return false;
      seen[place] = 1;
    }
  }
  KNOWN.set(workers, index);
  return true;
}
