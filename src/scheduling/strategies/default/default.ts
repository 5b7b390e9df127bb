/**
 * The strategy `default`: before a topology is placed as by `even`, workers whose number of executors does not occur in the
 * ideal distribution give way, so that a topology that was squeezed spreads again. Source: Storm's `DefaultScheduler`.
 */

import { WorkingCluster } from '../../cluster.js';
import { integerDivided } from '../../executors.js';
import { type EvenOptions, scheduleEvenly, settledResult, toResult } from '../even/even.js';
import { fillLiveWorkers } from '../even/fill-live-workers.js';
import { fillIdleSupervisors } from '../even/idle-supervisors.js';
import type { Strategy } from '../strategy.js';

/** The `default` strategy. Cost: O(E log E + S log M) for E executors, S slots that are given out and M machines. */
export function defaultStrategy(options: EvenOptions): Strategy {
  return (snapshot) => {
    const settled = settledResult(snapshot, options);
    if (settled !== undefined) return settled;
    const cluster = new WorkingCluster(snapshot);
    const ids = cluster.topologyIds().filter((id) => snapshot.scheduleOnly?.has(id) ?? true);
    return toResult(cluster, snapshot, scheduleByDefault(cluster, ids, options));
  };
}

/** Places these topologies; returns what was thrown while one of them was placed. */
export function scheduleByDefault(
  cluster: WorkingCluster,
  ids: readonly string[],
  { fillLiveWorkers: joinsLive, idleSupervisors }: EvenOptions,
): Map<string, unknown> {
  const failures = new Map<string, unknown>();
  if (idleSupervisors !== undefined) fillIdleSupervisors(cluster, ids, idleSupervisors);
  for (const id of ids) {
    try {
      if (!cluster.needsScheduling(id)) continue;
      freeBadWorkers(cluster, id);
      scheduleEvenly(cluster, id);
      if (joinsLive) fillLiveWorkers(cluster, id);
    } catch (error) {
      failures.set(id, error);
    }
  }
  return failures;
}

/**
 * A worker stays if its number of executors is one of the sizes of the ideal distribution that is not used up yet; workers
 * are asked in order of supervisor and port.
 */
function freeBadWorkers(cluster: WorkingCluster, id: string): void {
  const workers = cluster.workersOf(id);
  const reassignable = workers.filter((worker) => cluster.isAssignable(worker)).length;
  const total = Math.max(0, Math.min(cluster.wantedWorkers(id), reassignable + cluster.freeSlotCount));
  const isRight = !cluster.hasUnassigned(id) && !cluster.hasOutdated(id);
  if (total === 0 || (total <= workers.length && isRight)) return;
  const open = new Map(integerDivided(cluster.executorCount(id), total));
  for (const worker of workers) {
    const size = worker.executors.length;
    const left = open.get(size) ?? 0;
    if (left > 0) open.set(size, left - 1);
    else cluster.freeSlot(worker);
  }
}
