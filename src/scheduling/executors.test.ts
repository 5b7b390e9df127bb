import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { computeExecutors, integerDivided, partitionFixed } from './executors.js';
import { numberTasks, totalTasks } from './numbering.js';

const SEED = 20_240_601;

describe('splitting tasks', () => {
  it('gives sizes that differ by one at most and sum up', () => {
    fc.assert(
      fc.property(fc.nat(5000), fc.integer({ min: 1, max: 500 }), (sum, pieces) => {
        const sizes = [...integerDivided(sum, pieces)];
        expect(sizes.reduce((total, [size, times]) => total + size * times, 0)).toBe(sum);
        expect(sizes.reduce((total, [, times]) => total + times, 0)).toBe(pieces);
        const numbers = sizes.map(([size]) => size);
        expect(Math.max(...numbers) - Math.min(...numbers)).toBeLessThanOrEqual(1);
      }),
      { seed: SEED },
    );
  });

  it('keeps the order, never makes an empty chunk, and puts larger chunks first', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.nat(40), (items, chunks) => {
        const cut = partitionFixed(chunks, items);
        expect(cut.flat()).toEqual(chunks === 0 ? [] : items);
        const sizes = cut.map(({ length }) => length);
        expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
        expect(sizes).not.toContain(0);
        expect(cut.length).toBe(Math.min(chunks, items.length));
      }),
      { seed: SEED },
    );
  });

  it('gives nothing for no pieces', () => {
    expect(partitionFixed(0, [1, 2])).toEqual([]);
    expect(partitionFixed(-1, [1, 2])).toEqual([]);
    expect(integerDivided(3, 0).size).toBe(0);
  });

  it('covers every task of a component with min(tasks, executors) executors', () => {
    const counts = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,6}$/),
      fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 40 })),
    );
    fc.assert(
      fc.property(counts, (components) => {
        const tasks = numberTasks(Object.entries(components).map(([id, [count]]) => [id, count]));
        const executors = computeExecutors(
          tasks,
          new Map(Object.entries(components).map(([id, [, e]]) => [id, e])),
        );
        const covered = executors.flatMap(({ range: [first, last] }) =>
          Array.from({ length: last - first + 1 }, (_, index) => first + index),
        );
        expect(covered).toEqual(Array.from({ length: totalTasks(tasks) }, (_, index) => index + 1));
        for (const [id, [count, wanted]] of Object.entries(components)) {
          expect(executors.filter(({ component }) => component === id)).toHaveLength(Math.min(count, wanted));
        }
      }),
      { seed: SEED },
    );
  });

  it('leaves out a component without an executor count', () => {
    expect(computeExecutors(numberTasks([['a', 2]]), new Map())).toEqual([]);
  });
});
