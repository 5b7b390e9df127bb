import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DealtExecutor,
  dealToThreads,
  type ExecutorToDeal,
  redealToThreads,
} from './deal-to-threads.js';

function executors(...counts: readonly (readonly [component: string, count: number, load?: number])[]) {
  let task = 1;
  return counts.flatMap(([component, count, load]) =>
    Array.from({ length: count }, (): ExecutorToDeal => {
      const range = [task, task++] as const;
      return load === undefined ? { range, component } : { range, component, load };
    }),
  );
}

function sizes(threadOf: readonly number[], threads: number): number[] {
  return Array.from({ length: threads }, (_, thread) => threadOf.filter((one) => one === thread).length);
}

describe('dealing executors to threads', () => {
  it('puts equal indexes of components that fill all threads together', () => {
    expect(dealToThreads(executors(['a', 3], ['b', 3]), 3)).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it('goes on where the last smaller component stopped, whatever fills all threads in between', () => {
    expect(dealToThreads(executors(['a', 2], ['b', 3], ['c', 2]), 3)).toEqual([0, 1, 0, 1, 2, 2, 0]);
  });

  it('does not let ackers disturb the balance of the others', () => {
    const dealt = dealToThreads(executors(['__acker', 1], ['count', 1], ['split', 1], ['words', 1]), 3);
    expect(sizes(dealt.slice(1), 3)).toEqual([1, 1, 1]);
    expect(dealToThreads(executors(['__acker', 4]), 2)).toEqual([0, 1, 0, 1]);
  });

  it('gives the heaviest executors to the least loaded threads', () => {
    expect(dealToThreads(executors(['light', 3, 1], ['heavy', 1, 3]), 2)).toEqual([1, 1, 1, 0]);
  });

  it('spreads any components with equal loads to within one executor', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(20), { maxLength: 8 }),
        fc.integer({ min: 1, max: 12 }),
        (counts, threads) => {
          const list = executors(...counts.map((count, index) => [`c${index}`, count] as const));
          const loads = sizes(dealToThreads(list, threads), threads);
          expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
        },
      ),
      { seed: 7 },
    );
  });

  it('refuses a number of threads that is none', () => {
    expect(() => dealToThreads([], 0)).toThrow('cannot be dealt to 0 threads');
  });
});

describe('redealToThreads', () => {
  const dealt = (
    parts: readonly (readonly [thread: number | null, load?: number, movable?: boolean])[],
  ): DealtExecutor[] =>
    parts.map(([thread, load = 1, movable = true], index) => ({
      range: [index + 1, index + 1],
      component: 'work',
      load,
      thread,
      movable,
    }));
  const moved = (before: readonly DealtExecutor[], after: readonly number[]): number =>
    before.filter(({ thread }, index) => thread !== null && thread !== after[index]).length;

  it('deals as if for the first time where nothing is dealt yet, or no thread is left of those that were', () => {
    const fresh = dealt([[null], [null], [null]]);
    expect(redealToThreads(fresh, 2)).toEqual(dealToThreads(fresh, 2));
    expect(redealToThreads(dealt([[4], [5], [6]]), 2)).toEqual(dealToThreads(fresh, 2));
  });

  it('puts what comes on the least loaded thread, the heaviest first, and leaves the others where they are', () => {
    expect(redealToThreads(dealt([[0], [1], [null], [null]]), 2)).toEqual([0, 1, 0, 1]);
    expect(
      redealToThreads(
        dealt([
          [0, 3],
          [null, 1],
          [null, 2],
        ]),
        2,
      ),
    ).toEqual([0, 1, 1]);
  });

  it('prefers among equally loaded threads the one with fewer executors of the component', () => {
    const executors = dealt([[0], [1], [null]]);
    executors[0] = { ...executors[0]!, component: 'other' };
    executors[2] = { ...executors[2]!, component: 'work' };
    expect(redealToThreads(executors, 2)[2]).toBe(0);
  });

  it('moves as many as a new thread needs, and none that must stay', () => {
    const six = dealt([[0], [0], [0], [1], [1], [1]]);
    const after = redealToThreads(six, 3);
    expect([moved(six, after), sizes(after, 3)]).toEqual([2, [2, 2, 2]]);
    const fixed = dealt([
      [0, 1, false],
      [0, 1, false],
      [0, 1, false],
    ]);
    expect(redealToThreads(fixed, 3)).toEqual([0, 0, 0]);
  });

  it('moves nothing that would only turn the difference round', () => {
    expect(
      redealToThreads(
        dealt([
          [0, 5],
          [1, 1],
        ]),
        2,
      ),
    ).toEqual([0, 1]);
    expect(redealToThreads(dealt([[0], [0], [1]]), 2)).toEqual([0, 0, 1]);
  });

  it('is even to within one executor, moves no more than it takes, and has nothing to do afterwards', () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(fc.nat(7)), { minLength: 1, maxLength: 24 }),
        fc.integer({ min: 1, max: 6 }),
        (threads, count) => {
          const before = dealt(threads.map((thread) => [thread] as const));
          const after = redealToThreads(before, count);
          const loads = sizes(after, count);
          expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
          const staying = threads.flatMap((thread) => (thread !== null && thread < count ? [thread] : []));
          if (staying.length > 0) {
            // At least what is above the fair share, rounded up, has to go; no more than that above the one rounded down goes.
            const share = threads.length / count;
            const excess = (limit: number): number =>
              sizes(staying, count).reduce((sum, size) => sum + Math.max(0, size - limit), 0);
            const gone = moved(
              before.filter(({ thread }) => thread !== null && thread < count),
              after.filter((_, index) => {
                const thread = threads[index];
                return thread !== null && thread !== undefined && thread < count;
              }),
            );
            expect(gone).toBeGreaterThanOrEqual(excess(Math.ceil(share)));
            expect(gone).toBeLessThanOrEqual(excess(Math.floor(share)));
          }
          const settled = dealt(after.map((thread) => [thread] as const));
          expect(redealToThreads(settled, count)).toEqual(after);
        },
      ),
      { seed: 11, numRuns: 300 },
    );
  });
});
