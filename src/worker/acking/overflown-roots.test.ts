import { describe, expect, it } from 'vitest';
import { OverflownRoots } from './overflown-roots.js';

describe('OverflownRoots', () => {
  it('knows a tree by its task, generation and sequence number', () => {
    const roots = new OverflownRoots();
    expect(roots.has(1, 2, 3)).toBe(false);
    roots.add(1, 2, 3);
    expect(roots.has(1, 2, 3)).toBe(true);
    expect([roots.has(1, 2, 4), roots.has(1, 3, 3), roots.has(2, 2, 3), roots.has(12, 3, 0)]).not.toContain(
      true,
    );
  });

  it('forgets the oldest beyond its bound', () => {
    const roots = new OverflownRoots();
    for (let sequence = 0; sequence < 100_000; sequence++) roots.add(1, 1, sequence);
    expect(roots.size).toBe(4096);
    expect(roots.has(1, 1, 99_999)).toBe(true);
    expect(roots.has(1, 1, 100_000 - 4096)).toBe(true);
    expect(roots.has(1, 1, 100_000 - 4097)).toBe(false);
  });

  it('still knows a tree when another one with its sequence number is forgotten', () => {
    const roots = new OverflownRoots();
    roots.add(1, 1, 7);
    roots.add(2, 1, 7);
    for (let sequence = 1000; sequence < 1000 + 4095; sequence++) roots.add(1, 1, sequence);
    expect([roots.has(1, 1, 7), roots.has(2, 1, 7)]).toEqual([false, true]);
    roots.add(1, 1, 9);
    expect([roots.has(2, 1, 7), roots.size]).toEqual([false, 4096]);
  });
});
