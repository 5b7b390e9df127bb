/**
 * Slots by number of subtasks (Flink's task-balanced sharing, FLIP-370): a vertex that fills all slots goes by subtask
 * index, so that forward edges stay in their slot; the others are dealt round robin from where the last one stopped.
 * Where there are fewer slots than subtasks, dealing wraps: a slot holds at most ⌈parallelism / slots⌉ of a vertex.
 *
 * Cost: O(subtasks), and O(slots log slots) for each co-located vertex that meets new constraints.
 */
import {
  numberSlots,
  sharingGroups,
  type SharingGraph,
  type SharingGroup,
  type SlotCounts,
  type SlotSharing,
} from './sharing-graph.js';

export function taskBalancedSharing(graph: SharingGraph, counts?: SlotCounts): SlotSharing {
  const slotOf = graph.vertices.map(({ parallelism }) => new Int32Array(parallelism));
  const groups = sharingGroups(graph, counts);
  for (const group of groups) dealGroup(graph, group, slotOf);
  return numberSlots(
    groups.map((group) => ({ ...group, used: group.slots })),
    slotOf,
  );
}

/** Deals the vertices of one slot sharing group, each to its end before the next one begins. */
function dealGroup(
  { vertices }: SharingGraph,
  { slots, vertices: members }: SharingGroup,
  slotOf: readonly Int32Array[],
): void {
  const sizes = new Int32Array(slots);
  /** The slot of each constraint: by co-location group, by subtask index. */
  const constraints = new Map<string, number[]>();
  let next = 0;
  for (const vertex of members) {
    const { parallelism, coLocationGroup } = vertices[vertex]!;
    const isFull = parallelism % slots === 0;
    const target = slotOf[vertex]!;
    if (coLocationGroup === null) {
      let slot = isFull ? 0 : next;
      for (let index = 0; index < parallelism; index++) {
        target[index] = slot;
        sizes[slot]!++;
        slot = slot + 1 === slots ? 0 : slot + 1;
      }
      if (!isFull) next = slot;
    } else {
      let bound = constraints.get(coLocationGroup);
      if (bound === undefined) constraints.set(coLocationGroup, (bound = []));
      dealCoLocated(target, bound, sizes);
      if (!isFull) next = emptiest(sizes);
    }
  }
}

/**
 * A new constraint takes the emptiest slot that holds the fewest subtasks of this vertex, the lowest number among
 * equals; one that is known goes where it was.
 */
function dealCoLocated(target: Int32Array, bound: number[], sizes: Int32Array): void {
  const slots = sizes.length;
  const held = new Int32Array(slots);
  let order: Int32Array | undefined;
  let position = 0;
  let round = 0;
  for (let index = 0; index < target.length; index++) {
    let slot = bound[index];
    if (slot === undefined) {
      // Sizes of slots that this vertex does not use do not change meanwhile, so one sorted pass serves a whole round.
      order ??= bySize(sizes);
      while (held[order[position]!]! > round) {
        if (++position < slots) continue;
        round++;
        order = bySize(sizes);
        position = 0;
      }
      slot = order[position]!;
      bound[index] = slot;
    }
    target[index] = slot;
    held[slot]!++;
    sizes[slot]!++;
  }
}

function bySize(sizes: Int32Array): Int32Array {
  return Int32Array.from(sizes.keys()).sort((a, b) => sizes[a]! - sizes[b]! || a - b);
}

function emptiest(sizes: Int32Array): number {
  let least = 0;
  for (let slot = 1; slot < sizes.length; slot++) if (sizes[slot]! < sizes[least]!) least = slot;
  return least;
}
