import { describe, expect, it } from 'vitest';
import { checkItem, checkPosition } from './source-items.js';

const circle: Record<string, unknown> = {};
circle['self'] = [circle];

describe('a position', () => {
  it.each([undefined, null, 0, -1.5, 'x', '', true, [1, 'a', null], { a: { b: [1] }, c: undefined }])(
    'may be %j',
    (position) => {
      expect(() => checkPosition(position, 's')).not.toThrow();
    },
  );

  it.each([
    [NaN, 'the number NaN'],
    [[Infinity], 'the number Infinity'],
    [1n, 'a bigint'],
    [() => 1, 'a function'],
    [{ a: Symbol('x') }, 'a symbol'],
    [new Map([['p', 1]]), 'an object of class Map'],
    [new Date(0), 'an object of class Date'],
    [{ bytes: new Uint8Array(1) }, 'an object of class Uint8Array'],
    [[undefined], 'undefined in an array'],
    [new Array(1), 'undefined in an array'],
    [{ a: 1, b: [{ c: 2n }] }, 'a bigint'],
    [circle, 'an object deeper than 32 others, or in itself'],
  ])('that would not come back from the disk as it was is refused (%#)', (position, found) => {
    expect(() => checkPosition(position, 's')).toThrow(
      expect.objectContaining({
        code: 'SPOUT_POSITION_ILLEGAL',
        details: expect.objectContaining({ found }) as object,
      }),
    );
  });
});

describe('an item of read', () => {
  it.each([null, undefined, 5, 'text'])('that is %s is refused', (item) => {
    // JavaScript can yield it.
    expect(() => checkItem(item as never, 's')).toThrow(
      expect.objectContaining({ code: 'EMIT_TYPE_MISMATCH' }),
    );
  });

  it('is checked with its position', () => {
    expect(() => checkItem({ row: {}, position: 1n }, 's')).toThrow(
      expect.objectContaining({ code: 'SPOUT_POSITION_ILLEGAL' }),
    );
    expect(() => checkItem({ row: {}, position: 1 }, 's')).not.toThrow();
  });
});
