import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dealToThreads, type ExecutorToDeal } from './deal-to-threads.js';

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
