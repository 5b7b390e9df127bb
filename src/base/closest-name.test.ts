import { describe, expect, it } from 'vitest';
import { closestName } from './closest-name.js';

describe('the closest name', () => {
  it('is the one with fewest differences', () => {
    expect(closestName('word-cuont', ['lines', 'word-count', 'word-join'])).toBe('word-count');
  });

  it('is none where nothing is like it', () => {
    expect(closestName('payments', ['lines', 'split'])).toBeUndefined();
    expect(closestName('payments', [])).toBeUndefined();
  });
});
