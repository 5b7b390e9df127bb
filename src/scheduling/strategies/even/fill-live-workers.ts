/** Isobar's addition to `even`: executors that found no new slot join live workers of their topology. */
import type { ExecutorRange } from '../../assignment.js';
import type { WorkingCluster } from '../../cluster.js';
import type { Slot } from '../../cluster-snapshot.js';
import { MinimumHeap } from '../../minimum-heap.js';

/**
 * Gives every executor of the topology that has no slot to the worker with fewest executors, ties in order of supervisor
 * and port; free slots that are given as `opened` take part as workers without executors. Workers on a slot that is not offered in this round
 * (a supervisor that is away, a hung worker) get none. Cost: O(E log W) for W workers and E executors.
 */
export function fillLiveWorkers(
  cluster: WorkingCluster,
  topologyId: string,
  opened: readonly Slot[] = [],
): void {
  if (!cluster.hasUnassigned(topologyId)) return;
  const live = cluster.workersOf(topologyId).filter((worker) => cluster.isAssignable(worker));
  const workers = [
    ...opened.map((slot) => ({ ...slot, executors: [] as readonly ExecutorRange[] })),
    ...live,
  ];
  if (workers.length === 0) return;
  const additions = workers.map((): ExecutorRange[] => []);
  // One number holds size and place, so that the heap orders by size and then by place.
  const bySize = new MinimumHeap();
  workers.forEach(({ executors }, place) => bySize.push(executors.length * workers.length + place));
  for (const { range } of cluster.unassignedExecutors(topologyId)) {
    const smallest = bySize.pop()!;
    additions[smallest % workers.length]!.push(range);
    bySize.push(smallest + workers.length);
  }
  workers.forEach((worker, place) => {
    if (additions[place]!.length === 0) return;
    if (place < opened.length) cluster.assign(worker, topologyId, additions[place]!);
    else cluster.extend(worker, topologyId, additions[place]!);
  });
}
