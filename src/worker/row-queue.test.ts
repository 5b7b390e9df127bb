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
});
