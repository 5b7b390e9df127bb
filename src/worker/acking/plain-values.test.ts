import { describe, expect, it } from 'vitest';
import { encodePlain } from './plain-values.js';

const dump = (value: unknown): string => JSON.stringify(encodePlain(value));

describe('values in dead letters', () => {
  it('are plain JSON where JSON can hold them', () => {
    const value = {
      text: 'a\ud800',
      flag: true,
      none: null,
      list: [1, -2.5, [], {}],
      inner: { a: 1, $b: 2 },
    };
    expect(JSON.parse(dump(value))).toEqual(value);
  });

  it('keep what JSON cannot hold, under a key that says what it was', () => {
    expect(dump(12n)).toBe('{"$bigint":"12"}');
    expect(dump(new Uint8Array([1, 2, 255]))).toBe('{"$bytes":"AQL/"}');
    expect(dump(Buffer.from('ab').subarray(1))).toBe('{"$bytes":"Yg=="}');
    expect(dump([NaN, Infinity, -Infinity, -0])).toBe(
      '[{"$number":"NaN"},{"$number":"Infinity"},{"$number":"-Infinity"},{"$number":"-0"}]',
    );
    expect(dump(new Date(0))).toBe('{"$date":"1970-01-01T00:00:00.000Z"}');
    expect(dump(new Date(NaN))).toBe('{"$date":null}');
    expect(dump(new Map([['a', 1n]]))).toBe('{"$map":[["a",{"$bigint":"1"}]]}');
    expect(dump(new Set([undefined]))).toBe('{"$set":[{"$undefined":true}]}');
    expect(dump(() => 1)).toBe('{"$unwritable":"function"}');
  });

  it('never mistake an object of the user for one of those', () => {
    expect(dump({ $bigint: '12' })).toBe('{"$object":[["$bigint","12"]]}');
    expect(dump(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}');
  });

  it('end at a cycle, but write what is merely used twice', () => {
    const shared = { a: 1 };
    const cyclic: Record<string, unknown> = { one: shared, two: shared };
    cyclic['self'] = cyclic;
    expect(dump(cyclic)).toBe('{"one":{"a":1},"two":{"a":1},"self":{"$unwritable":"cycle"}}');
  });
});
