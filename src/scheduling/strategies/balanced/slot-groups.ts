/**
 * The content of each slot of a topology: which executors share a worker. What runs stays as it is; what has no slot is
 * grouped as it would be in a start from nothing, so that a lost worker comes back as the same group.
 */
import type { ClusterTopology, PlacedWorker } from '../../cluster-snapshot.js';
import type { ExecutorRange } from '../../assignment.js';
import { isComplete } from '../../complete-placement.js';
import { type ExecutorIndex, indexExecutors, NO_EXECUTOR } from '../../executor-index.js';
import type { PlannedExecutor } from '../../executors.js';
import { compareRanges } from '../../order.js';
import { executorLoads } from '../../load/index.js';
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

/** A topology with what follows from it alone: worked out once in a round. */
export interface GroupableTopology {
  readonly graph: TopologyGraph;
  readonly index: ExecutorIndex;
  /** Slots that it wants. */
  readonly slots: number;
  /** The vertex of the executor that has this first task; -1: of none, as far as is known. */
  readonly vertexOf: (firstTask: number) => number;
  readonly loadOf: (firstTask: number) => number;
  readonly weigh: (executors: readonly ExecutorRange[]) => SlotGroup;
}

export interface GroupingRules {
  readonly mode: LoadBalanceMode;
  /** Not given: what the mode stands for. */
  readonly sharing?: 'local-input-preferred' | 'task-balanced';
  /** Slots that can be had in all, those in use included. */
  readonly maxSlots: number;
}

export function groupable(topology: ClusterTopology): GroupableTopology {
  const shape = groupableShape(topology);
  const loadOf = executorLoads(topology);
  return { ...shape, loadOf, weigh: weigher(shape, loadOf) };
}

type GroupableShape = Omit<GroupableTopology, 'loadOf' | 'weigh'>;

/** Made once for lists of executors and components that are handed from round to round. */
function groupableShape({ executors, components, workers }: ClusterTopology): GroupableShape {
  const known = KNOWN.get(executors);
  if (known !== undefined && known.components === components && known.workers === workers) return known.made;
  const graph = topologyGraph({ executors, ...(components === undefined ? {} : { components }) });
  const counts = slotCounts(graph.sizing, workers);
  const slots = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const index = indexExecutors(executors);
  const made = { graph, index, slots, vertexOf: vertexFinder(graph, index) };
  KNOWN.set(executors, { components, workers, made });
  return made;
}

interface KnownGroupable {
  readonly components: ClusterTopology['components'];
  readonly workers: number;
  readonly made: GroupableShape;
}

const KNOWN = new WeakMap<readonly PlannedExecutor[], KnownGroupable>();

/** Slots that a topology wants in all. */
export function slotsWanted(topology: ClusterTopology): number {
  return Math.min(topology.executors.length, groupableShape(topology).slots);
}

/** Groups that need a slot; executors that are in none of them must join a worker of their own topology. */
export function openGroups(
  { graph, index, slots: total, weigh }: GroupableTopology,
  workers: readonly PlacedWorker[],
  { mode, sharing, maxSlots }: GroupingRules,
): readonly SlotGroup[] {
  if (maxSlots <= workers.length || isComplete(workers, index)) return [];
  const placed = new Uint8Array(index.executors.length);
  for (const { executors } of workers) {
    for (const range of executors) {
      const place = index.indexOf(range);
      if (place !== NO_EXECUTOR) placed[place] = 1;
    }
  }
  if (!placed.includes(0)) return [];
  const isMissing = (range: ExecutorRange): boolean => placed[index.indexOf(range)] === 0;

  const strategy = sharing ?? (mode === 'tasks' ? 'task-balanced' : 'local-input-preferred');
  const groups = groupsOf(graph, strategy, Math.min(total, maxSlots));
  const open =
    workers.length === 0
      ? [...groups]
      : groups.map((group) => group.filter(isMissing)).filter((group) => group.length > 0);
  const free = Math.max(0, Math.min(total, maxSlots) - workers.length);
  // Fewer slots than groups: the largest groups are kept whole, and the rest joins what runs.
  if (open.length > free) open.sort((a, b) => b.length - a.length || compareRanges(a[0]!, b[0]!));
  return open.slice(0, free).map(weigh);
}

/** Deals all executors of a topology over its slots. */
function groupsOf(
  { graph, sizing, executors }: TopologyGraph,
  strategy: SlotSharingStrategy,
  slots: number,
): ExecutorRange[][] {
  const counts = slotCounts(sizing, slots);
  const sharing = shareSlots(strategy, graph, counts);
  const groups: ExecutorRange[][] = Array.from({ length: sharing.slots }, () => []);
  for (const [vertex, slotOf] of sharing.slotOf.entries()) {
    for (const [index, slot] of slotOf.entries()) groups[slot]!.push(executors[vertex]![index]!.range);
  }
  for (const group of groups) group.sort(compareRanges);
  return groups.filter((group) => group.length > 0);
}

/** An executor that was cut anew belongs to where the executor with its first task does. */
function vertexFinder({ executors }: TopologyGraph, index: ExecutorIndex): GroupableTopology['vertexOf'] {
  const vertexAt = new Int32Array(index.executors.length);
  for (const [vertex, list] of executors.entries())
    for (const { range } of list) vertexAt[index.placeOfFirst(range[0])] = vertex;
  return (firstTask) => {
    const place = index.placeOfFirst(firstTask);
    return place === NO_EXECUTOR ? -1 : vertexAt[place]!;
  };
}

function weigher(
  { graph: { isMovable }, vertexOf }: GroupableShape,
  loadOf: GroupableTopology['loadOf'],
): GroupableTopology['weigh'] {
  return (ranges) => {
    let load = 0;
    let canMove = true;
    for (const [first] of ranges) {
      const vertex = vertexOf(first);
      if (vertex < 0) continue;
      load += loadOf(first);
      canMove &&= isMovable[vertex]!;
    }
    return { executors: ranges, load, isMovable: canMove };
  };
}
