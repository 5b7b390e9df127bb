import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QUEUE_WORDS, RowQueue } from './row-queue.js';

describe('RowQueue', () => {
  it('gives rows back in order with all their words, whatever the mix of pushes and shifts', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 400 }), (moves) => {
        const queue = new RowQueue(4);
        const model: number[] = [];
        let next = 1;
        for (const move of moves) {
          if (move < 6) {
            const several = next % 3 === 0 ? Int32Array.of(next) : null;
            queue.push(
              { n: next },
              several,
              next,
              next + 1,
              next + 2,
              next + 3,
              next + 4,
              next + 5,
              next + 6,
              next + 7,
              next + 8,
              next + 9,
            );
            model.push(next++);
          } else if (model.length > 0) {
            const expected = model.shift()!;
            const at = queue.headWords;
            expect([...queue.words.subarray(at, at + QUEUE_WORDS)]).toEqual(
              Array.from({ length: QUEUE_WORDS }, (_, i) => expected + i),
            );
            expect(queue.headRow).toEqual({ n: expected });
            expect(queue.headSeveral?.[0]).toBe(expected % 3 === 0 ? expected : undefined);
            queue.shift();
          }
          expect(queue.size).toBe(model.length);
        }
        const seen: number[] = [];
        queue.some((words, at) => {
          seen.push(words[at]!);
          return false;
        });
        expect(seen).toEqual(model);
      }),
      { seed: 7, numRuns: 200 },
    );
  });

  it('lets the rows for one task be taken out, and keeps the order of both', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 100 }), (targets) => {
        const queue = new RowQueue(4);
        for (const [n, task] of targets.entries()) queue.push({ n }, null, 0, task, 0, 0, 0, 0, 0, 0, -1, 0);
        const taken = queue.takeTask(2);
        const drain = (from: RowQueue): unknown[] => {
          const rows: unknown[] = [];
          while (from.size > 0) {
            rows.push(from.headRow?.['n']);
            from.shift();
          }
          return rows;
        };
        const places = targets.map((task, n) => ({ task, n }));
        expect(drain(taken)).toEqual(places.filter(({ task }) => task === 2).map(({ n }) => n));
        expect(drain(queue)).toEqual(places.filter(({ task }) => task !== 2).map(({ n }) => n));
      }),
      { seed: 4, numRuns: 200 },
    );
  });
});
