/**
 * Slots by locality (Flink's local-input-preferred sharing): a subtask enters the slot of a producer where it can, else
 * the first slot that it may enter. Vertices of low parallelism pile up on the first slots; that is its known price.
 *
 * Source: Flink's rule, restated: vertex by vertex, two passes, so that a subtask without a local producer does not take
 * the slot that suits a later one better. Cost: O(subtasks + edges), since candidates are drained and never come back.
 */
import {
  numberSlots,
  sharingGroups,
  type SharingEdge,
  type SharingGraph,
  type SharingGroup,
  type SlotCounts,
  type SlotSharing,
} from './sharing-graph.js';

/** Slots that the consumers of one group of producer subtasks may still be sent to, in order. */
interface Candidates {
  readonly slots: Int32Array;
  next: number;
}

/** What is known of one slot sharing group while it is dealt. */
interface OpenGroup extends SharingGroup {
  /** Slots made so far. */
  made: number;
  /** By slot: how many subtasks of the vertex at hand it holds. */
  readonly held: Int32Array;
  readonly constraints: Map<string, number[]>;
}

export function localInputPreferredSharing(graph: SharingGraph, counts?: SlotCounts): SlotSharing {
  const { vertices } = graph;
  const slotOf = vertices.map(({ parallelism }) => new Int32Array(parallelism).fill(-1));
  const groups: OpenGroup[] = sharingGroups(graph, counts).map((group) => ({
    ...group,
    made: 0,
    held: new Int32Array(group.slots),
    constraints: new Map(),
  }));
  const groupOf = new Map(
    groups.flatMap((group) => group.vertices.map((vertex) => [vertex, group] as const)),
  );
  const inputs: SharingEdge[][] = vertices.map(() => []);
  for (const edge of graph.edges) inputs[edge.to]!.push(edge);
  for (const vertex of vertices.keys()) {
    const group = groupOf.get(vertex)!;
    // Where producers are in another slot sharing group there is nothing local.
    const local = inputs[vertex]!.filter(({ from }) => groupOf.get(from) === group);
    dealVertex(graph, vertex, local, group, slotOf);
  }
  return numberSlots(
    groups.map((group) => ({ ...group, used: group.made })),
    slotOf,
  );
}

/** More subtasks than slots are dealt in rounds, each as if it were a vertex of its own. */
function dealVertex(
  { vertices }: SharingGraph,
  vertex: number,
  inputs: readonly SharingEdge[],
  group: OpenGroup,
  slotOf: readonly Int32Array[],
): void {
  const { parallelism, coLocationGroup } = vertices[vertex]!;
  const target = slotOf[vertex]!;
  const bound = coLocationGroup === null ? undefined : (group.constraints.get(coLocationGroup) ?? []);
  const candidatesOf = inputs.map((edge) => candidateGroups(edge, vertices, slotOf));
  group.held.fill(0);
  let round = 0;
  let first = 0;
  const free = (slot: number): boolean => group.held[slot]! <= round;
  const take = (index: number, slot: number): void => {
    target[index] = slot;
    group.held[slot]!++;
  };
  for (let start = 0; start < parallelism; start += group.slots, round++, first = 0) {
    const end = Math.min(parallelism, start + group.slots);
    const remaining: number[] = [];
    for (let index = start; index < end; index++) {
      const slot = bound?.[index] ?? localSlot(candidatesOf, index, free);
      if (slot === undefined) remaining.push(index);
      else take(index, slot);
    }
    for (const index of remaining) {
      while (first < group.made && !free(first)) first++;
      if (first === group.made && group.made < group.slots) group.made++;
      // All slots hold this vertex only when constraints sent two subtasks to one: then the first one is as good as any.
      take(index, first < group.made ? first : 0);
    }
  }
  if (bound !== undefined && coLocationGroup !== null) {
    for (const [index, slot] of target.entries()) bound[index] ??= slot;
    group.constraints.set(coLocationGroup, bound);
  }
}

/** The first candidate of the first input that may be entered; what is looked at is used up. */
function localSlot(
  candidatesOf: readonly ((consumer: number) => Candidates)[],
  consumer: number,
  free: (slot: number) => boolean,
): number | undefined {
  for (const candidatesFor of candidatesOf) {
    const candidates = candidatesFor(consumer);
    while (candidates.next < candidates.slots.length) {
      const slot = candidates.slots[candidates.next++]!;
      // In a cycle a producer may have no slot yet.
      if (slot >= 0 && free(slot)) return slot;
    }
  }
  return undefined;
}

/**
 * For a consumer, the producer subtasks that it reads on one edge: all of them, shared by all consumers (all-to-all), or in
 * index order a share of them (pointwise with more producers than consumers), or a single one that others read too.
 */
function candidateGroups(
  { from, to, pattern }: SharingEdge,
  vertices: SharingGraph['vertices'],
  slotOf: readonly Int32Array[],
): (consumer: number) => Candidates {
  const producers = slotOf[from]!;
  const sources = producers.length;
  const targets = vertices[to]!.parallelism;
  if (pattern === 'all-to-all') {
    const all: Candidates = { slots: producers, next: 0 };
    return () => all;
  }
  if (sources >= targets) {
    return (consumer) => {
      const start = Math.floor((consumer * sources) / targets);
      const end = Math.floor(((consumer + 1) * sources) / targets);
      return { slots: producers.subarray(start, end), next: 0 };
    };
  }
  const shared = Array.from(
    { length: sources },
    (_, index): Candidates => ({
      slots: producers.subarray(index, index + 1),
      next: 0,
    }),
  );
  // Producer i is read by consumers ⌊(i·T + S − 1) / S⌋ to ⌊((i + 1)·T + S − 1) / S⌋ − 1, so each consumer reads one.
  return (consumer) => {
    const producer = Math.floor((consumer * sources) / targets);
    return shared[producer]!;
  };
}
