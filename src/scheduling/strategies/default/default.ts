/**
 * The strategy `default`: before a topology is placed as by `even`, workers whose number of executors does not occur in the
 * ideal distribution give way, so that a topology that was squeezed spreads again. Source: Storm's `DefaultScheduler`.
 */

import { WorkingCluster } from '../../cluster.js';
import { integerDivided } from '../../executors.js';
import { type EvenOptions, newSlotLimits, scheduleEvenly, settledResult, toResult } from '../even/even.js';
import { fillLiveWorkers } from '../even/fill-live-workers.js';
import { fillIdleSupervisors } from '../even/idle-supervisors.js';
import type { Strategy } from '../strategy.js';

export interface DefaultOptions extends EvenOptions {
  /**
   * Executors that lost their slot are placed anew, on new slots and live workers, and nothing else moves. Storm, and not given: workers of
   * an uneven size give way, too.
   */
  readonly keepLiveWorkers?: boolean;
}

/** The `default` strategy. Cost: O(E log E + S log M) for E executors, S slots that are given out and M machines. */
export function defaultStrategy(options: DefaultOptions): Strategy {
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
  { fillLiveWorkers: joinsLive, idleSupervisors, fairShares, keepLiveWorkers }: DefaultOptions,
): Map<string, unknown> {
  const failures = new Map<string, unknown>();
  if (idleSupervisors !== undefined) fillIdleSupervisors(cluster, ids, idleSupervisors);
  const limits = fairShares === true ? newSlotLimits(cluster, ids) : undefined;
  for (const id of ids) {
    try {
      if (!cluster.needsScheduling(id)) continue;
      const mostNew = limits?.get(id) ?? Infinity;
      if (keepLiveWorkers === true && cluster.hasUnassigned(id) && cluster.assignedWorkers(id) > 0) {
        replaceLost(cluster, id, mostNew);
        continue;
      }
      const before = cluster.freeSlotCount;
      freeBadWorkers(cluster, id, mostNew);
      scheduleEvenly(cluster, id, mostNew + cluster.freeSlotCount - before);
      if (joinsLive) fillLiveWorkers(cluster, id);
    } catch (error) {
      failures.set(id, error);
    }
  }
  return failures;
}

/** Places what has no slot over new slots and live workers, the emptiest first; what runs stays. */
function replaceLost(cluster: WorkingCluster, id: string, mostNew: number): void {
  const missing = cluster.wantedWorkers(id) - cluster.assignedWorkers(id);
  const opened = Math.max(0, Math.min(missing, mostNew));
  fillLiveWorkers(cluster, id, cluster.firstFreeSlots(opened));
}

/**
 * A worker stays if its number of executors is one of the sizes of the ideal distribution that is not used up yet; workers
 * are asked in order of supervisor and port.
 */
function freeBadWorkers(cluster: WorkingCluster, id: string, mostNew: number): void {
  const workers = cluster.workersOf(id);
  const reassignable = workers.filter((worker) => cluster.isAssignable(worker)).length;
  const free = Math.min(mostNew, cluster.freeSlotCount);
  const total = Math.max(0, Math.min(cluster.wantedWorkers(id), reassignable + free));
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
