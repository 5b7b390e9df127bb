import { describe, expect, it } from 'vitest';
import { EdgeIds } from './edge-ids.js';

function draw(ids: EdgeIds, count: number): [number, number][] {
  return Array.from({ length: count }, () => {
    ids.next();
    return [ids.high, ids.low];
  });
}

describe('edge ids', () => {
  it('are the same for the same seeds and unrelated for others, neighbouring and zero seeds included', () => {
    expect(draw(new EdgeIds(1, 2), 50)).toEqual(draw(new EdgeIds(1, 2), 50));
    const seen = new Set<string>();
    const seeds: [number, number][] = [
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
      [2, 1],
      [-1, -1],
      [2 ** 31 - 1, 5],
    ];
    for (const [a, b] of seeds) for (const id of draw(new EdgeIds(a, b), 2000)) seen.add(id.join());
    expect(seen.size).toBe(seeds.length * 2000);
  });

  it('are pairs of int32, never 0/0, and set each bit half of the time', () => {
    const ids = draw(new EdgeIds(7, 9), 40_000);
    const ones = new Array<number>(64).fill(0);
    expect(ids.every(([high, low]) => (high | 0) === high && (low | 0) === low && (high | low) !== 0)).toBe(
      true,
    );
    for (const [high, low] of ids) {
      for (let bit = 0; bit < 32; bit++) {
        ones[bit]! += (high >>> bit) & 1;
        ones[bit + 32]! += (low >>> bit) & 1;
      }
    }
    // Six standard deviations of a fair coin.
    for (const count of ones) expect(Math.abs(count - 20_000)).toBeLessThan(600);
  });

  it('do not cancel each other out: no set of neighbours XORs to zero, nor to the same set elsewhere', () => {
    // For a generator that is linear over XOR, the relation between outputs i, j, k, … is the same at every place.
    const ids = draw(new EdgeIds(3, 4), 4000);
    const relations = new Set<string>();
    for (let start = 0; start + 3 < ids.length; start++) {
      let high = 0;
      let low = 0;
      for (let i = start; i < start + 4; i++) {
        high ^= ids[i]![0];
        low ^= ids[i]![1];
      }
      expect(high | low).not.toBe(0);
      relations.add(`${high},${low}`);
    }
    expect(relations.size).toBe(ids.length - 3);
    expect(rank(ids.slice(0, 64), ids.slice(64, 128))).toBeGreaterThan(60);
  });
});

/** Rank over GF(2) of the differences a XOR b, as 64-bit vectors. */
function rank(a: readonly [number, number][], b: readonly [number, number][]): number {
  const rows = a.map(
    ([high, low], i) => (BigInt((high ^ b[i]![0]) >>> 0) << 32n) | BigInt((low ^ b[i]![1]) >>> 0),
  );
  let found = 0;
  for (let bit = 63n; bit >= 0n; bit--) {
    const pivot = rows.findIndex((row, i) => i >= found && ((row >> bit) & 1n) === 1n);
    if (pivot < 0) continue;
    [rows[found], rows[pivot]] = [rows[pivot]!, rows[found]!];
    for (let i = 0; i < rows.length; i++) {
      if (i !== found && ((rows[i]! >> bit) & 1n) === 1n) rows[i]! ^= rows[found]!;
    }
    found++;
  }
  return found;
}
