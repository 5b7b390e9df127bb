/** Flink's cases of slot sharing: vertices and edges → the contents of slots. */
import { z } from 'zod';
import type { SlotSharing } from '../../../src/scheduling/index.js';
import {
  localInputPreferredSharing,
  subtaskIndexSharing,
  taskBalancedSharing,
} from '../../../src/scheduling/index.js';
import type { VectorCase } from '../read-cases.js';
import { exact, type Facts } from './operation.js';

export const graphSchema = z
  .object({
    vertices: z.array(
      z.object({
        id: z.string(),
        parallelism: z.int().min(1),
        slotSharingGroup: z.string().default('default'),
        coLocationGroup: z.string().nullish(),
      }),
    ),
    edges: z
      .array(z.object({ from: z.string(), to: z.string(), pattern: z.enum(['ALL_TO_ALL', 'POINTWISE']) }))
      .default([]),
  })
  .transform(({ vertices, edges }) => {
    const indexOf = new Map(vertices.map(({ id }, index) => [id, index]));
    const index = (id: string): number => {
      const found = indexOf.get(id);
      if (found === undefined) throw new Error(`edge of an unknown vertex ${id}`);
      return found;
    };
    return {
      vertices: vertices.map((vertex) => ({ ...vertex, coLocationGroup: vertex.coLocationGroup ?? null })),
      edges: edges.map(({ from, to, pattern }) => ({
        from: index(from),
        to: index(to),
        pattern: pattern === 'POINTWISE' ? ('pointwise' as const) : ('all-to-all' as const),
      })),
    };
  });

const SHARING = {
  TASK_BALANCED: taskBalancedSharing,
  LOCAL_INPUT_PREFERRED: localInputPreferredSharing,
  ADAPTIVE_SUBTASK_INDEX: subtaskIndexSharing,
  ADAPTIVE_TASK_BALANCED: taskBalancedSharing,
};
const sharingSchema = z.object({
  strategy: z.enum([
    'TASK_BALANCED',
    'LOCAL_INPUT_PREFERRED',
    'ADAPTIVE_SUBTASK_INDEX',
    'ADAPTIVE_TASK_BALANCED',
  ]),
});

export function runSlotSharing({ input }: VectorCase): Facts {
  const { strategy } = sharingSchema.parse(input);
  const graph = graphSchema.parse(input);
  const sharing = SHARING[strategy](graph);
  const groups = slotContents(sharing, graph.vertices);
  const sizes = Object.fromEntries(
    Object.entries(groups).map(([name, slots]) => [name, slots.map((slot) => slot.length)]),
  );
  const range = Object.fromEntries(
    Object.entries(sizes).map(([name, counts]) => [name, Math.max(...counts) - Math.min(...counts)]),
  );
  return {
    // Slots in order, the content of each as a set.
    groups: { check: (expected) => problemOf(expected, groups) },
    groupSizes: exact(sizes),
    range: exact(range),
  };
}

/** By slot sharing group, by slot: names of the subtasks, `A#0`. */
function slotContents(
  { groups, slotOf }: SlotSharing,
  vertices: readonly { readonly id: string }[],
): Record<string, string[][]> {
  const slots: string[][] = [];
  for (const { firstSlot, slots: count } of groups) {
    for (let slot = firstSlot; slot < firstSlot + count; slot++) slots[slot] = [];
  }
  for (const [vertex, { id }] of vertices.entries()) {
    for (const [index, slot] of (slotOf[vertex] ?? []).entries()) slots[slot]?.push(`${id}#${index}`);
  }
  return Object.fromEntries(
    groups.map(({ slotSharingGroup, firstSlot, slots: count }) => [
      slotSharingGroup,
      slots.slice(firstSlot, firstSlot + count),
    ]),
  );
}

function problemOf(expected: unknown, actual: Record<string, string[][]>): string | undefined {
  const wanted = z.record(z.string(), z.array(z.array(z.string()))).parse(expected);
  const text = (groups: Record<string, string[][]>): string =>
    JSON.stringify(
      Object.keys(groups)
        .sort()
        .map((name) => [name, groups[name]?.map((slot) => [...slot].sort())]),
    );
  return text(wanted) === text(actual) ? undefined : JSON.stringify(actual);
}
