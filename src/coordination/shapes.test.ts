import { describe, expect, it } from 'vitest';
import { isSlotTap } from './shapes.js';

const request = { component: 'split', taken: false, where: null, limit: 5, windowMs: 100 };
const tap = (parts: object): unknown => ({ topologyId: 't', port: 6700, request: { ...request, ...parts } });

describe('what a supervisor is asked to tap', () => {
  it('is taken within its bounds', () => {
    for (const parts of [
      {},
      { limit: 1, windowMs: 50 },
      { limit: 1000, windowMs: 5000, where: { field: 'word', value: 'x'.repeat(10_000) } },
    ])
      expect(isSlotTap(tap(parts))).toBe(true);
  });

  it.each([
    { limit: 0 },
    { limit: 1001 },
    { limit: 1.5 },
    { windowMs: 49 },
    { windowMs: 5001 },
    { windowMs: Number.NaN },
    { component: 'x'.repeat(1001) },
    { component: 7 },
    { where: { field: 'word' } },
    { where: { field: 'x'.repeat(1001), value: '' } },
    { where: { field: 'word', value: 'x'.repeat(10_001) } },
  ])('is refused with %j', (parts) => {
    expect(isSlotTap(tap(parts))).toBe(false);
  });
});
