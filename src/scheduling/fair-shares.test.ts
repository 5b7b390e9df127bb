import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fairShares, type Wish } from './fair-shares.js';

describe('fair shares of what is short', () => {
  it('gives equal parts, the rest to the first, and to nobody more than it wants', () => {
    const shares = fairShares(
      [
        ['a', 8],
        ['b', 1],
        ['c', 8],
      ],
      8,
    );
    expect([...shares.values()]).toEqual([4, 1, 3]);
  });

  it('gives to those first that have least', () => {
    const shares = fairShares(
      [
        ['a', 4, 3],
        ['b', 4],
        ['c', 2, 1],
      ],
      3,
    );
    expect([...shares.values()]).toEqual([0, 2, 1]);
  });

  it('leaves nothing that somebody wants, and nobody behind another one that got something', () => {
    const anyWish = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 }));
    fc.assert(
      fc.property(
        fc.array(anyWish, { maxLength: 6 }),
        fc.integer({ min: 0, max: 40 }),
        (counts, available) => {
          const wishes = counts.map(([more, has], index): Wish => [`t${index}`, more, has]);
          const shares = fairShares(wishes, available);
          const given = [...shares.values()].reduce((sum, share) => sum + share, 0);
          expect(given).toBe(
            Math.min(
              available,
              counts.reduce((sum, [more]) => sum + more, 0),
            ),
          );
          for (const [name, more, has = 0] of wishes) {
            const share = shares.get(name)!;
            expect(share).toBeLessThanOrEqual(more);
            for (const [other, , otherHas = 0] of wishes) {
              const got = shares.get(other)!;
              if (share < more && got > 0) expect(otherHas + got).toBeLessThanOrEqual(has + share + 1);
            }
          }
        },
      ),
      { seed: 20_267, numRuns: 1000 },
    );
  });
});
