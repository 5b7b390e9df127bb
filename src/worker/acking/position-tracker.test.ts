import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PositionTracker } from './position-tracker.js';

const SEED = 20_260_703;

describe('the position tracker', () => {
  it('has nothing committed until the first row is done', () => {
    const tracker = new PositionTracker();
    expect(tracker.committed).toBeUndefined();
    expect([tracker.add('a'), tracker.add('b'), tracker.add('c')]).toEqual([0, 1, 2]);
    tracker.done(1);
    expect(tracker.committed).toBeUndefined();
    expect(tracker.pendingRows).toBe(2);
    tracker.done(0);
    expect(tracker.committed).toEqual({ readIndex: 1, position: 'b' });
    tracker.done(2);
    expect(tracker.committed).toEqual({ readIndex: 2, position: 'c' });
  });

  it('agrees with a plain list over random orders, windows and looks', () => {
    const operation = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ kind: fc.constant('add' as const), count: fc.integer({ min: 1, max: 90 }) }),
      },
      {
        weight: 6,
        arbitrary: fc.record({ kind: fc.constant('first' as const), count: fc.integer({ min: 1, max: 90 }) }),
      },
      {
        weight: 6,
        arbitrary: fc.record({
          kind: fc.constant('any' as const),
          count: fc.integer({ min: 1, max: 90 }),
          pick: fc.nat(),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('again' as const), pick: fc.nat() }) },
    );
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60, size: 'max' }), (operations) => {
        const tracker = new PositionTracker();
        const pending: number[] = [];
        let added = 0;
        let contiguous = 0;
        const done = new Set<number>();
        const finish = (at: number): void => {
          const [readIndex] = pending.splice(at, 1);
          tracker.done(readIndex!);
          done.add(readIndex!);
          while (done.has(contiguous)) contiguous++;
        };
        for (const now of operations) {
          if (now.kind === 'add') {
            for (let i = 0; i < now.count; i++) {
              expect(tracker.add({ offset: added })).toBe(added);
              pending.push(added++);
            }
          } else if (now.kind === 'again') {
            if (done.size > 0) tracker.done([...done][now.pick % done.size]!);
          } else {
            for (let i = 0; i < now.count && pending.length > 0; i++) {
              finish(now.kind === 'first' ? 0 : (now.pick + i * 7919) % pending.length);
            }
          }
          const last = contiguous - 1;
          expect(tracker.committed).toEqual(
            last < 0 ? undefined : { readIndex: last, position: { offset: last } },
          );
          expect(tracker.pendingRows).toBe(pending.length);
          // P3, and one for what was dropped before each chunk.
          expect(tracker.retained.positions).toBeLessThanOrEqual(4 * pending.length + 2);
        }
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  it('keeps no more than some chunks while one row is held back and millions pass it', () => {
    const tracker = new PositionTracker();
    tracker.add('held');
    const rows = 50_000_000;
    let most = 0;
    for (let i = 1; i <= rows; i++) {
      tracker.done(tracker.add(i));
      if (i % 1_000_000 === 0) most = Math.max(most, tracker.retained.places);
    }
    expect(most).toBeLessThan(3000);
    expect(tracker.retained.positions).toBeLessThan(5);
    expect(tracker.committed).toBeUndefined();
    tracker.done(0);
    expect(tracker.committed).toEqual({ readIndex: rows, position: rows });
  });

  it('keeps memory in step with the rows pending when every hundredth row is slow', () => {
    const tracker = new PositionTracker();
    const slow: number[] = [];
    for (let i = 0; i < 1_000_000; i++) {
      const readIndex = tracker.add(i);
      if (i % 100 === 0) slow.push(readIndex);
      else tracker.done(readIndex);
      if (slow.length > 200) tracker.done(slow.shift()!);
    }
    expect(tracker.pendingRows).toBe(200);
    expect(tracker.retained.places).toBeLessThan(200 * 33 + 3000);
    expect(tracker.retained.positions).toBeLessThanOrEqual(4 * 200 + 2);
    expect(tracker.committed).toEqual({ readIndex: slow[0]! - 1, position: slow[0]! - 1 });
  });

  it('refuses to believe that a row was done that was never read', () => {
    const tracker = new PositionTracker();
    tracker.add('a');
    for (const readIndex of [1, 40, -1, NaN]) {
      expect(() => tracker.done(readIndex)).toThrow(expect.objectContaining({ code: 'INTERNAL' }) as Error);
    }
    expect(tracker.pendingRows).toBe(1);
  });
});
