/**
 * The content of each slot of a topology: which executors share a worker. What runs stays as it is; what has no slot is
 * grouped as it would be in a start from nothing, so that a lost worker comes back as the same group.
 */
import type { ClusterTopology, PlacedWorker } from '../../cluster-snapshot.js';
import type { ExecutorRange } from '../../assignment.js';
import { compareRanges, rangeKey } from '../../order.js';
import type { LoadBalanceMode } from '../../resources.js';
import { slotCounts } from '../../slot-sharing/index.js';
import { shareSlots, type SlotSharingStrategy } from './load-balance-mode.js';
import { topologyGraph, type TopologyGraph } from './topology-graph.js';

/** Executors that will share a slot. */
export interface SlotGroup {
  readonly executors: readonly ExecutorRange[];
  readonly load: number;
  readonly isMovable: boolean;
}

export interface GroupedTopology {
  /** Groups that need a slot; executors that are in none of them must join a worker of their own topology. */
  readonly open: readonly SlotGroup[];
  /** What runs, with what it weighs; in the order of the workers given. */
  readonly running: readonly { readonly worker: PlacedWorker; readonly group: SlotGroup }[];
}

export interface GroupingRules {
  readonly mode: LoadBalanceMode;
  /** Not given: what the mode stands for. */
  readonly sharing?: 'local-input-preferred' | 'task-balanced';
  /** Slots that can be had in all, those in use included. */
  readonly maxSlots: number;
}

export function groupTopology(
  topology: ClusterTopology,
  workers: readonly PlacedWorker[],
  { mode, sharing, maxSlots }: GroupingRules,
): GroupedTopology {
  const graph = topologyGraph(topology);
  const weigh = weigher(graph);
  const running = workers.map((worker) => ({ worker, group: weigh(worker.executors) }));
  const placed = new Set(workers.flatMap(({ executors }) => executors.map(rangeKey)));
  const missing = graph.executors
    .flatMap((list) => list.map(({ range }) => range))
    .filter((range) => !placed.has(rangeKey(range)));
  if (missing.length === 0 || maxSlots <= workers.length) return { open: [], running };

  const strategy = sharing ?? (mode === 'tasks' ? 'task-balanced' : 'local-input-preferred');
  const wanted = topology.balance?.usesMaxParallelism === true ? 'max-parallelism' : topology.workers;
  const total = totalSlots(graph.sizing, topology);
  const groups = groupsOf(graph, strategy, Math.min(total, Math.max(1, maxSlots)), wanted, maxSlots >= total);
  if (workers.length === 0) return { open: groups.map(weigh), running };

  const open = groups
    .map((group) => group.filter((range) => !placed.has(rangeKey(range))))
    .filter((group) => group.length > 0);
  const free = Math.max(0, Math.min(total, maxSlots) - workers.length);
  if (open.length <= free) return { open: open.map(weigh), running };
  // Fewer slots than groups: the largest groups are kept whole, and the rest joins what runs.
  open.sort((a, b) => b.length - a.length || compareRanges(a[0]!, b[0]!));
  return { open: open.slice(0, free).map(weigh), running };
}

/** Slots that a topology wants. */
export function wantedSlots(topology: ClusterTopology): number {
  const { sizing } = topologyGraph(topology);
  return totalSlots(sizing, topology);
}

function totalSlots(sizing: TopologyGraph['sizing'], { balance, workers }: ClusterTopology): number {
  const counts = slotCounts(sizing, balance?.usesMaxParallelism === true ? 'max-parallelism' : workers);
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Deals all executors of a topology over its slots. */
function groupsOf(
  { graph, sizing, executors }: TopologyGraph,
  strategy: SlotSharingStrategy,
  slots: number,
  wanted: number | 'max-parallelism',
  hasAll: boolean,
): ExecutorRange[][] {
  const counts = slotCounts(sizing, hasAll ? wanted : slots);
  const sharing = shareSlots(strategy, graph, counts);
  const groups: ExecutorRange[][] = Array.from({ length: sharing.slots }, () => []);
  for (const [vertex, slotOf] of sharing.slotOf.entries()) {
    for (const [index, slot] of slotOf.entries()) groups[slot]!.push(executors[vertex]![index]!.range);
  }
  for (const group of groups) group.sort(compareRanges);
  return groups.filter((group) => group.length > 0);
}

function weigher({
  executors,
  loads,
  isMovable,
}: TopologyGraph): (ranges: readonly ExecutorRange[]) => SlotGroup {
  const byFirst = new Map<number, number>();
  for (const [vertex, list] of executors.entries())
    for (const { range } of list) byFirst.set(range[0], vertex);
  return (ranges) => {
    let load = 0;
    let canMove = true;
    for (const [first] of ranges) {
      const vertex = byFirst.get(first);
      if (vertex === undefined) continue;
      load += loads[vertex]!;
      canMove &&= isMovable[vertex]!;
    }
    return { executors: ranges, load, isMovable: canMove };
  };
}
