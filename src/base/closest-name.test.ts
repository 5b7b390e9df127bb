import { describe, expect, it } from 'vitest';
import { closestName } from './closest-name.js';

describe('the closest name', () => {
  it('is the one with fewest differences', () => {
    expect(closestName('word-cuont', ['lines', 'word-count', 'word-join'])).toBe('word-count');
  });

  it('is the one that begins as what was given, if only one does', () => {
    expect(closestName('ord', ['payments-by-country', 'orders-by-country'])).toBe('orders-by-country');
    expect(closestName('ord', ['orders-by-country', 'orders-of-last-year'])).toBeUndefined();
    expect(closestName('', ['orders-by-country'])).toBeUndefined();
  });

  it('is none where nothing is like it', () => {
    expect(closestName('payments', ['lines', 'split'])).toBeUndefined();
    expect(closestName('payments', [])).toBeUndefined();
  });
});
