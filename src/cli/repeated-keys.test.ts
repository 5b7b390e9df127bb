import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eachRepeatedKey, type RepeatedKey } from './repeated-keys.js';

function repeatedIn(json: string): RepeatedKey[] {
  const found: RepeatedKey[] = [];
  eachRepeatedKey(json, (key) => found.push(key));
  return found;
}

describe('keys that are repeated', () => {
  it('are found with their path, line and column', () => {
    const json = '{ "a": [1, { "x": 1,\n  "y": "{\\"x\\": 1}", "x": 2 }],\n "b": {}, "a": 3 }';
    expect(repeatedIn(json)).toEqual([
      { path: ['a', 1, 'x'], line: 2, column: 22 },
      { path: ['a'], line: 3, column: 11 },
    ]);
  });

  it('are the same key however it is written', () => {
    expect(repeatedIn('{"a":1,"\\u0061":2}')).toHaveLength(1);
    expect(repeatedIn('{"a\\\\":1,"a\\\\\\"":2,"a":3}')).toEqual([]);
  });

  it('are all there are, whatever else is in the text, and none in what was written from an object', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), fc.nat(3), (value, key, more) => {
        expect(repeatedIn(JSON.stringify(value, null, more))).toEqual([]);
        const pair = `${JSON.stringify(key)}:${JSON.stringify(value)}`;
        const json = `[{${[pair, ...Array.from({ length: more }, () => pair)].join(',\n')}}]`;
        JSON.parse(json);
        expect(repeatedIn(json).map(({ path }) => path)).toEqual(
          Array.from({ length: more }, () => [0, key]),
        );
      }),
      { seed: 41, numRuns: 300 },
    );
  });

  it('are found in lists nested a hundred thousand deep', () => {
    const deep = 100_000;
    expect(repeatedIn(`${'['.repeat(deep)}{"a":1,"a":2}${']'.repeat(deep)}`)).toHaveLength(1);
  });
});
