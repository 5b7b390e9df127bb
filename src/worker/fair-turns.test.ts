import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairTurns } from './fair-turns.js';

/** So much room in each turn, taken by whoever comes first; what each of `count` got in all. */
function sharesOf(count: number, rooms: readonly number[]): readonly number[] {
  const turns = new FairTurns();
  const shares = new Array<number>(count).fill(0);
  for (const room of rooms) {
    let left = room;
    turns.each(
      shares.map((_, index) => index),
      (index, most) => {
        const taken = Math.min(left, most);
        shares[index]! += taken;
        left -= taken;
        return taken;
      },
      4,
    );
  }
  return shares;
}

describe('turns', () => {
  it('give all the same where there is room for one at a time, however many turns in between have none', () => {
    for (const gap of [0, 1, 2, 3, 5]) {
      const rooms = Array.from({ length: 12 * (gap + 1) }, (_, turn) => (turn % (gap + 1) === 0 ? 4 : 0));
      expect(sharesOf(4, rooms)).toEqual([12, 12, 12, 12]);
    }
  });

  it('leave nobody further behind than what one takes in a turn of each', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.constantFrom(0, 4), { maxLength: 200 }),
        (count, rooms) => {
          const shares = sharesOf(count, rooms);
          expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(4);
        },
      ),
      { seed: 7 },
    );
  });
});
