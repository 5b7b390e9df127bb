import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dealWithFewestMoves, type ExecutorAtHome } from './fewest-moves.js';

/** One executor of one task for each letter, in the slot of its place in the list. */
function placed(...slots: readonly string[]): ExecutorAtHome[] {
  return slots.flatMap((letters, slot) =>
    Array.from(letters, (component): ExecutorAtHome => ({ component, homes: [[slot, 1]] })),
  );
}

function movedTasks(executors: readonly ExecutorAtHome[], slotOf: readonly number[]): number {
  return executors.reduce((sum, { homes }, index) => {
    const [all, kept] = [homes, homes.filter(([slot]) => slot === slotOf[index])].map((list) =>
      list.reduce((tasks, [, count]) => tasks + count, 0),
    );
    return sum + all! - kept!;
  }, 0);
}

function sizes(slotOf: readonly number[], slots: number): number[] {
  return Array.from({ length: slots }, (_, slot) => slotOf.filter((one) => one === slot).length);
}

/** The least number of tasks that can move, by trying everything. */
function leastMoved(executors: readonly ExecutorAtHome[], slots: number): number {
  const base = Math.floor(executors.length / slots);
  const extras = executors.length - base * slots;
  const counts = new Array<number>(slots).fill(0);
  let least = Infinity;
  const slotOf: number[] = [];
  const tryFrom = (executor: number): void => {
    if (executor === executors.length) {
      if (counts.every((count) => count >= base)) least = Math.min(least, movedTasks(executors, slotOf));
      return;
    }
    for (let slot = 0; slot < slots; slot++) {
      const full = counts[slot]! >= base + (counts.filter((count) => count > base).length < extras ? 1 : 0);
      if (full) continue;
      counts[slot]!++;
      slotOf[executor] = slot;
      tryFrom(executor + 1);
      counts[slot]!--;
    }
  };
  tryFrom(0);
  return least;
}

const executor = (slots: number, mostHomes: number): fc.Arbitrary<ExecutorAtHome> =>
  fc.record({
    component: fc.constantFrom('a', 'b', 'c'),
    homes: fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: slots - 1 }), fc.integer({ min: 1, max: 4 })), {
      maxLength: mostHomes,
      selector: ([slot]) => slot,
    }),
  });

describe('dealing with the fewest moves', () => {
  it('moves nothing of what is balanced', () => {
    expect(dealWithFewestMoves(placed('ab', 'ab', 'a'), 3)).toEqual([0, 0, 1, 1, 2]);
  });

  it('gives a new slot its share from the fullest', () => {
    const executors = placed('aaa', 'aa', '');
    const slotOf = dealWithFewestMoves(executors, 3);
    expect(sizes(slotOf, 3).sort()).toEqual([1, 2, 2]);
    expect(movedTasks(executors, slotOf)).toBe(1);
  });

  it('spreads each component where it has the choice', () => {
    const executors = placed('aaaabbbbcccc', '', '');
    const slotOf = dealWithFewestMoves(executors, 3);
    for (const component of ['a', 'b', 'c']) {
      const own = slotOf.filter((_, index) => executors[index]!.component === component);
      expect([component, ...sizes(own, 3).sort()]).toEqual([component, 1, 1, 2]);
    }
  });

  it('places executors without a home evenly, each component spread', () => {
    const executors = Array.from('aaaabbbb', (component): ExecutorAtHome => ({ component, homes: [] }));
    const slotOf = dealWithFewestMoves(executors, 4);
    expect(sizes(slotOf, 4)).toEqual([2, 2, 2, 2]);
    expect(sizes(slotOf.slice(0, 4), 4)).toEqual([1, 1, 1, 1]);
  });

  it('goes round about where that moves fewer tasks', () => {
    const executors: ExecutorAtHome[] = [
      {
        component: 'a',
        homes: [
          [0, 5],
          [1, 4],
        ],
      },
      { component: 'a', homes: [[0, 6]] },
      { component: 'a', homes: [[1, 1]] },
    ];
    // Slot 0 has one too many for three slots: the first goes to slot 1, and what was there to slot 2.
    expect(dealWithFewestMoves(executors, 3)).toEqual([1, 0, 2]);
  });

  it('is balanced, deterministic, and moves as few executors as any balanced deal', () => {
    fc.assert(
      fc.property(
        fc
          .integer({ min: 1, max: 12 })
          .chain((slots) =>
            fc.tuple(fc.constant(slots), fc.array(fc.integer({ min: 0, max: slots - 1 }), { maxLength: 60 })),
          ),
        ([slots, homes]) => {
          const executors = homes.map((slot): ExecutorAtHome => ({ component: 'a', homes: [[slot, 1]] }));
          const slotOf = dealWithFewestMoves(executors, slots);
          expect(dealWithFewestMoves(executors, slots)).toEqual(slotOf);
          const after = sizes(slotOf, slots);
          expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1);
          const before = sizes(homes, slots).sort((a, b) => b - a);
          const base = Math.floor(homes.length / slots);
          const stay = before.reduce(
            (sum, count, place) => sum + Math.min(count, place < homes.length % slots ? base + 1 : base),
            0,
          );
          expect(movedTasks(executors, slotOf)).toBe(homes.length - stay);
        },
      ),
      { seed: 4, numRuns: 300 },
    );
  });

  it('moves as few tasks as any balanced deal, executors with tasks in several slots included', () => {
    fc.assert(
      fc.property(
        fc
          .integer({ min: 1, max: 3 })
          .chain((slots) => fc.tuple(fc.constant(slots), fc.array(executor(slots, 3), { maxLength: 7 }))),
        ([slots, executors]) => {
          const slotOf = dealWithFewestMoves(executors, slots);
          const after = sizes(slotOf, slots);
          expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1);
          expect(movedTasks(executors, slotOf)).toBe(leastMoved(executors, slots));
        },
      ),
      { seed: 5, numRuns: 400 },
    );
  });

  it('deals 20,000 executors to twice as many slots', () => {
    const executors = Array.from({ length: 20_000 }, (_, index): ExecutorAtHome => {
      return { component: `c${index % 7}`, homes: [[index % 50, 1]] };
    });
    const slotOf = dealWithFewestMoves(executors, 100);
    expect(new Set(sizes(slotOf, 100))).toEqual(new Set([200]));
    expect(movedTasks(executors, slotOf)).toBe(10_000);
  });
});
