/**
 * What slot sharing decides on, and what it returns. Vertices and slots are numbers: a topology may have 200,000
 * executors. Words as in Flink: a subtask is an executor, an execution slot sharing group is the content of one slot.
 */

/** The group of components that name none. */
export const DEFAULT_SHARING_GROUP = 'default';

export interface SharingVertex {
  readonly id: string;
  /** Subtasks, at least 1. */
  readonly parallelism: number;
  readonly slotSharingGroup: string;
  /** Subtasks of equal index of all vertices with this name share a slot; within one slot sharing group. */
  readonly coLocationGroup: string | null;
}

/** `pointwise`: each subtask talks to few of the other side, in index order; `all-to-all`: to all of them. */
export interface SharingEdge {
  /** Indexes into `vertices`. */
  readonly from: number;
  readonly to: number;
  readonly pattern: 'all-to-all' | 'pointwise';
}

export interface SharingGraph {
  /** In topological order as far as there is one. */
  readonly vertices: readonly SharingVertex[];
  /** The inputs of a vertex in the order of this list. */
  readonly edges: readonly SharingEdge[];
}

/** The slots of one slot sharing group: numbers `firstSlot` to `firstSlot + slots - 1`. */
export interface SharedSlots {
  readonly slotSharingGroup: string;
  readonly firstSlot: number;
  readonly slots: number;
}

export interface SlotSharing {
  /** In order of their first vertex. */
  readonly groups: readonly SharedSlots[];
  /** Slots of all groups together. */
  readonly slots: number;
  /** By vertex, by subtask: the number of its slot. */
  readonly slotOf: readonly Int32Array[];
}

/** How many slots each slot sharing group gets; one that is not named gets its largest parallelism. */
export type SlotCounts = ReadonlyMap<string, number>;

/** Vertices by slot sharing group, groups in order of first vertex, with the number of slots of each. */
export interface SharingGroup {
  readonly name: string;
  readonly vertices: readonly number[];
  readonly slots: number;
}

export function sharingGroups({ vertices }: SharingGraph, counts: SlotCounts = new Map()): SharingGroup[] {
  const byName = new Map<string, number[]>();
  for (const [index, { slotSharingGroup }] of vertices.entries()) {
    const members = byName.get(slotSharingGroup);
    if (members === undefined) byName.set(slotSharingGroup, [index]);
    else members.push(index);
  }
  return [...byName].map(([name, members]) => {
    let largest = 0;
    for (const vertex of members) largest = Math.max(largest, vertices[vertex]!.parallelism);
    return { name, vertices: members, slots: counts.get(name) ?? largest };
  });
}

/** Gives the slots of all groups numbers of one row, group after group; `slotOf` counts from 0 in each group. */
export function numberSlots(
  groups: readonly (SharingGroup & { readonly used: number })[],
  slotOf: readonly Int32Array[],
): SlotSharing {
  const shared: SharedSlots[] = [];
  let firstSlot = 0;
  for (const { name, vertices, used } of groups) {
    if (firstSlot > 0) {
      for (const vertex of vertices) {
        const slots = slotOf[vertex]!;
        for (let index = 0; index < slots.length; index++) slots[index]! += firstSlot;
      }
    }
    shared.push({ slotSharingGroup: name, firstSlot, slots: used });
    firstSlot += used;
  }
  return { groups: shared, slots: firstSlot, slotOf };
}
