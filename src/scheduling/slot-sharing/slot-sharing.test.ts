import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  localInputPreferredSharing,
  type SharingGraph,
  slotCounts,
  type SlotSharing,
  subtaskIndexSharing,
  taskBalancedSharing,
} from './index.js';

const seed = 20_261;

function graphOf(
  vertices: readonly (readonly [id: string, parallelism: number, group?: string, coLocation?: string])[],
  edges: SharingGraph['edges'] = [],
): SharingGraph {
  return {
    vertices: vertices.map(([id, parallelism, slotSharingGroup = 'default', coLocationGroup = null]) => ({
      id,
      parallelism,
      slotSharingGroup,
      coLocationGroup,
    })),
    edges,
  };
}

function sizesOf({ slots, slotOf }: SlotSharing): number[] {
  const sizes = Array.from({ length: slots }, () => 0);
  for (const vertex of slotOf) for (const slot of vertex) sizes[slot] = (sizes[slot] ?? 0) + 1;
  return sizes;
}

const anyGraph = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.constantFrom('a', 'b', 'c')), {
    minLength: 1,
    maxLength: 8,
  })
  .map((vertices) =>
    graphOf(
      vertices.map(([parallelism, group], index) => [`v${index}`, parallelism, group] as const),
      vertices.slice(1).map((_, index) => ({
        from: index,
        to: index + 1,
        pattern: index % 2 === 0 ? 'pointwise' : 'all-to-all',
      })),
    ),
  );

describe('task-balanced sharing', () => {
  it('goes on where the last partial vertex stopped', () => {
    const sharing = taskBalancedSharing(
      graphOf([
        ['A', 1],
        ['B', 4],
        ['C', 4],
        ['D', 2],
        ['E', 3],
      ]),
    );
    expect(sharing.slotOf.map((slots) => [...slots])).toEqual([
      [0],
      [0, 1, 2, 3],
      [0, 1, 2, 3],
      [1, 2],
      [3, 0, 1],
    ]);
  });

  it('keeps co-located subtasks together, and starts behind them at the emptiest slot', () => {
    const sharing = taskBalancedSharing(
      graphOf([
        ['M', 4],
        ['A', 2, 'default', 'x'],
        ['B', 2, 'default', 'x'],
        ['P', 3],
        ['Q', 1],
      ]),
    );
    expect([...sharing.slotOf[1]!]).toEqual([...sharing.slotOf[2]!]);
    expect(sizesOf(sharing)).toEqual([4, 4, 2, 2]);
  });

  it('fills slots of a group that differ by one subtask at most, whatever the number of slots', () => {
    fc.assert(
      fc.property(anyGraph, fc.integer({ min: 1, max: 20 }), (graph, workers) => {
        for (const counts of [slotCounts(graph, 'max-parallelism'), slotCounts(graph, workers)]) {
          const sharing = taskBalancedSharing(graph, counts);
          const sizes = sizesOf(sharing);
          for (const { firstSlot, slots } of sharing.groups) {
            const own = sizes.slice(firstSlot, firstSlot + slots);
            expect(Math.max(...own) - Math.min(...own)).toBeLessThanOrEqual(1);
          }
        }
      }),
      { seed, numRuns: 500 },
    );
  });
});

describe('every sharing', () => {
  const strategies = { taskBalancedSharing, localInputPreferredSharing, subtaskIndexSharing };
  for (const [name, share] of Object.entries(strategies)) {
    it(`spreads each vertex over its group's slots as evenly as can be: ${name}`, () => {
      fc.assert(
        fc.property(anyGraph, fc.integer({ min: 1, max: 20 }), (graph, workers) => {
          const sharing = share(graph, slotCounts(graph, workers));
          for (const [vertex, { parallelism, slotSharingGroup }] of graph.vertices.entries()) {
            const group = sharing.groups.find((one) => one.slotSharingGroup === slotSharingGroup)!;
            const held = new Map<number, number>();
            for (const slot of sharing.slotOf[vertex]!) {
              expect(slot).toBeGreaterThanOrEqual(group.firstSlot);
              expect(slot).toBeLessThan(group.firstSlot + group.slots);
              held.set(slot, (held.get(slot) ?? 0) + 1);
            }
            const limit = Math.ceil(parallelism / (slotCounts(graph, workers).get(slotSharingGroup) ?? 1));
            for (const count of held.values()) expect(count).toBeLessThanOrEqual(limit);
          }
        }),
        { seed, numRuns: 300 },
      );
    });
  }
});

describe('local-input-preferred sharing', () => {
  it('follows pointwise producers and piles small vertices up on the first slots', () => {
    const chain = graphOf(
      [
        ['A', 4],
        ['B', 2],
        ['C', 1],
      ],
      [
        { from: 0, to: 1, pattern: 'pointwise' },
        { from: 1, to: 2, pattern: 'pointwise' },
      ],
    );
    const sharing = localInputPreferredSharing(chain);
    expect(sharing.slotOf.map((slots) => [...slots])).toEqual([[0, 1, 2, 3], [0, 2], [0]]);
  });

  it('lets a cycle be: producers without a slot yet are no candidates', () => {
    const cycle = graphOf(
      [
        ['A', 2],
        ['B', 2],
      ],
      [
        { from: 1, to: 0, pattern: 'all-to-all' },
        { from: 0, to: 1, pattern: 'all-to-all' },
      ],
    );
    expect(localInputPreferredSharing(cycle).slotOf.map((slots) => [...slots])).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });
});

describe('the number of slots', () => {
  it('is that of the workers, or one per group if there are more groups', () => {
    fc.assert(
      fc.property(anyGraph, fc.integer({ min: 1, max: 40 }), (graph, workers) => {
        const counts = [...slotCounts(graph, workers).values()];
        expect(Math.min(...counts)).toBeGreaterThanOrEqual(1);
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(Math.max(workers, counts.length));
      }),
      { seed, numRuns: 500 },
    );
  });
});
