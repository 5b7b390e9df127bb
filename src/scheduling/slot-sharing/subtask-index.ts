/**
 * Slots by subtask index (what Flink's adaptive scheduler does without balancing): slot i of a group holds subtask i of
 * every vertex that has one; where there are fewer slots, index modulo slots. Co-location holds by itself.
 */
import {
  numberSlots,
  sharingGroups,
  type SharingGraph,
  type SlotCounts,
  type SlotSharing,
} from './sharing-graph.js';

export function subtaskIndexSharing(graph: SharingGraph, counts?: SlotCounts): SlotSharing {
  const slotOf = graph.vertices.map(({ parallelism }) => new Int32Array(parallelism));
  const groups = sharingGroups(graph, counts);
  for (const { vertices, slots } of groups) {
    for (const vertex of vertices) {
      const target = slotOf[vertex]!;
      for (let index = 0; index < target.length; index++) target[index] = index % slots;
    }
  }
  return numberSlots(
    groups.map((group) => ({ ...group, used: group.slots })),
    slotOf,
  );
}
