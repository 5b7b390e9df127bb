/**
 * The strategy `even`: executors are dealt round robin over the wanted number of slots, in order of their first task.
 * Live workers are not touched. Topologies are placed in order of id, each seeing the slots that are left.
 * Source: Storm's `EvenScheduler`.
 */
import { WorkingCluster } from '../../cluster.js';
import type { ExecutorRange } from '../../assignment.js';
import type { ClusterSnapshot, PlacedWorker } from '../../cluster-snapshot.js';
import { fairShares } from '../../fair-shares.js';
import { settledPlacement } from '../../complete-placement.js';
import type { PlannedExecutor } from '../../executors.js';
import type { SchedulingResult, Strategy, Unplaced } from '../strategy.js';
import { fillLiveWorkers } from './fill-live-workers.js';
import { fillIdleSupervisors, type IdleSupervisorRules } from './idle-supervisors.js';

export interface EvenOptions {
  /**
   * Storm leaves executors unassigned when live workers use up the wanted count. false: exactly so; true: they join the
   * least loaded live workers of their topology, so that no task is lost for ever.
   */
  readonly fillLiveWorkers: boolean;
  /** Where slots are short, topologies get equal parts of them; Storm, and not given: the first take what they want. */
  readonly fairShares?: boolean;
  /** Not given: workers are never moved onto idle supervisors. */
  readonly idleSupervisors?: IdleSupervisorRules;
}

/** The `even` strategy. Cost: O(E log E + S log M) for E executors, S slots that are given out and M machines. */
export function evenStrategy(options: EvenOptions): Strategy {
  return (snapshot) => {
    const settled = settledResult(snapshot, options);
    if (settled !== undefined) return settled;
    const cluster = new WorkingCluster(snapshot);
    const ids = cluster.topologyIds().filter((id) => snapshot.scheduleOnly?.has(id) ?? true);
    if (options.idleSupervisors !== undefined) fillIdleSupervisors(cluster, ids, options.idleSupervisors);
    const failures = new Map<string, unknown>();
    const limits = options.fairShares === true ? newSlotLimits(cluster, ids) : undefined;
    for (const id of ids) {
      try {
        if (!cluster.needsScheduling(id)) continue;
        scheduleEvenly(cluster, id, limits?.get(id));
        if (options.fillLiveWorkers) fillLiveWorkers(cluster, id);
      } catch (error) {
        failures.set(id, error);
      }
    }
    return toResult(cluster, snapshot, failures);
  };
}

/** The answer where nothing is to be placed and nothing may be moved, without a look at machines. */
export function settledResult(
  snapshot: ClusterSnapshot,
  { idleSupervisors }: EvenOptions,
): SchedulingResult | undefined {
  const placement = idleSupervisors === undefined ? settledPlacement(snapshot, true) : undefined;
  return placement && { placement, unplaced: new Map(), failures: new Map(), steps: 0 };
}

/** By topology: most new slots, so that all get equal parts of the free ones; undefined: there are enough for all. */
export function newSlotLimits(
  cluster: WorkingCluster,
  ids: readonly string[],
): ReadonlyMap<string, number> | undefined {
  const wanted = ids.map((id): [string, number] => {
    const most = Math.min(cluster.wantedWorkers(id), cluster.executorCount(id));
    return [id, Math.max(0, most - cluster.assignedWorkers(id))];
  });
  const free = cluster.freeSlotCount;
  if (wanted.reduce((sum, [, count]) => sum + count, 0) <= free) return undefined;
  return fairShares(wanted, free);
}

/**
 * Places the executors of one topology that have no slot, on at most `mostNew` new slots; a topology never gets more workers than
 * executors.
 */
export function scheduleEvenly(cluster: WorkingCluster, topologyId: string, mostNew = Infinity): void {
  const alive = cluster.assignedWorkers(topologyId);
  const total = Math.min(cluster.wantedWorkers(topologyId), cluster.freeSlotCount + alive);
  const todo = cluster.unassignedExecutors(topologyId);
  // Storm throws where the wanted count was lowered below the live workers; here nothing is opened.
  const opened = Math.max(0, Math.min(total - alive, todo.length, mostNew));
  const slots = cluster.firstFreeSlots(opened);
  for (const [place, slot] of slots.entries())
    cluster.assign(slot, topologyId, dealt(todo, place, slots.length));
}

/** What one of several slots gets: executor i goes to slot i mod n. */
function dealt(executors: readonly PlannedExecutor[], place: number, slots: number): ExecutorRange[] {
  const ranges: ExecutorRange[] = [];
  for (let index = place; index < executors.length; index += slots) ranges.push(executors[index]!.range);
  return ranges;
}

/** The cluster as a result, with a reason for each topology that lacks a slot. */
export function toResult(
  cluster: WorkingCluster,
  { topologies }: ClusterSnapshot,
  failures: ReadonlyMap<string, unknown>,
): SchedulingResult {
  const placement = cluster.placement();
  const unplaced = new Map<string, Unplaced>();
  for (const { id } of topologies) {
    if (!cluster.hasUnassigned(id)) continue;
    const executors = cluster.unassignedExecutors(id);
    unplaced.set(id, { executors, reason: reasonOf(cluster, id, placement.get(id) ?? []) });
  }
  return { placement, unplaced, failures, steps: cluster.steps };
}

function reasonOf(cluster: WorkingCluster, topologyId: string, workers: readonly PlacedWorker[]): string {
  const wanted = cluster.wantedWorkers(topologyId);
  const free = cluster.freeSlotCount;
  if (workers.length > 0 && workers.length >= wanted) {
    return `has ${workers.length} of ${wanted} wanted workers, and no executor may be added to them now.`;
  }
  const missing = wanted - workers.length;
  return (
    `needs ${missing} ${missing === 1 ? 'slot' : 'slots'}; ${free} ${free === 1 ? 'is' : 'are'} free. ` +
    'Add a supervisor, raise supervisor.slots, or stop another topology.'
  );
}
