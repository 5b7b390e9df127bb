/**
 * Is a list of workers all that its topology needs: in order of supervisor and port, and each executor exactly once? It follows from the
 * two lists alone, so that a placement that is handed from round to round is looked through once.
 */
import { type ClusterSnapshot, compareSlots, type PlacedWorker, type Placement } from './cluster-snapshot.js';
import { type ExecutorIndex, indexExecutors, NO_EXECUTOR } from './executor-index.js';
import { compareRanges, compareText, isSorted } from './order.js';

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

/**
 * What a strategy leaves as it is: every topology has all its executors and, with `countsWorkers`, all workers that it can use, each in
 * slots of its own. undefined: something is to be placed. In order of id, without topologies that nobody knows or that have nothing.
 */
export function settledPlacement(
  { topologies, placement }: ClusterSnapshot,
  countsWorkers: boolean,
): Placement | undefined {
  const settled: [string, readonly PlacedWorker[]][] = [];
  for (const { id, executors, workers: wanted } of topologies) {
    const workers = placement.get(id) ?? [];
    if (executors.length === 0 && workers.length === 0) continue;
    if (countsWorkers && workers.length < Math.min(wanted, executors.length)) return undefined;
    if (!isComplete(workers, indexExecutors(executors))) return undefined;
    settled.push([id, workers]);
  }
  return haveSlotsOfTheirOwn(settled.map(([, workers]) => workers))
    ? new Map(settled.sort(([a], [b]) => compareText(a, b)))
    : undefined;
}

/** By their first: lists that have no slot in common. */
const KNOWN_APART = new WeakMap<readonly PlacedWorker[], readonly (readonly PlacedWorker[])[]>();

/** Cost: O(W) for lists that were not apart before, else O(1) for each list. */
function haveSlotsOfTheirOwn(lists: readonly (readonly PlacedWorker[])[]): boolean {
  const first = lists[0];
  if (first === undefined) return true;
  const known = KNOWN_APART.get(first);
  if (known?.length === lists.length && known.every((workers, index) => workers === lists[index]))
    return true;
  const taken = new Map<string, Set<number>>();
  for (const workers of lists) {
    for (const { supervisor, port } of workers) {
      const ports = taken.get(supervisor);
      if (ports === undefined) taken.set(supervisor, new Set([port]));
      else if (ports.has(port)) return false;
      else ports.add(port);
    }
  }
  KNOWN_APART.set(first, lists);
  return true;
}
