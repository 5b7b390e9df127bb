import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FieldDescription, FieldKind } from '../../topology/index.js';
import { compileFieldHash, hashFields } from './field-hash.js';

const SEED = 20_260_704;
const VECTORS = JSON.parse(
  readFileSync(new URL('../../../test/vectors/grouping-hash.json', import.meta.url), 'utf8'),
) as {
  vectors: { key: unknown[]; hash: number }[];
};

function rowOf(values: readonly unknown[]): { row: Record<string, unknown>; names: string[] } {
  const names = values.map((_, i) => `field ${i}`);
  return { row: Object.fromEntries(values.map((value, i) => [`field ${i}`, value])), names };
}

function hash(...values: unknown[]): number {
  const { row, names } = rowOf(values);
  return hashFields(row, names);
}

function field(name: string, kind: FieldKind): FieldDescription {
  return { name, kind, nullable: false };
}

/** Turns the $-keys of a vector back into values. */
function revive(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(revive);
  const [[key, part] = ['', null], ...more] = Object.entries(value);
  if (more.length === 0) {
    if (key === '$bigint') return BigInt(part as string);
    if (key === '$bytes') return new Uint8Array(Buffer.from(part as string, 'base64'));
    if (key === '$number') return Number(part);
    if (key === '$date') return new Date(part as number);
    if (key === '$set') return new Set((part as unknown[]).map(revive));
    if (key === '$map')
      return new Map((part as [unknown, unknown][]).map(([a, b]) => [revive(a), revive(b)]));
  }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, revive(inner)]));
}

describe('the grouping hash', () => {
  it.each(
    VECTORS.vectors.map(
      ({ key, hash: expected }) => [JSON.stringify(key).slice(0, 60), key, expected] as const,
    ),
  )('is as published for %s', (_title, key, expected) => {
    expect(hash(...key.map(revive))).toBe(expected);
  });

  it('is documented with the same numbers', () => {
    const text = readFileSync(new URL('../../../docs/grouping-hash.md', import.meta.url), 'utf8');
    const rows = [...text.matchAll(/^\| `(.*)` \| (\d+) \| (\d) \|$/gm)];
    expect(rows.length).toBeGreaterThan(5);
    for (const [, key, published, remainder] of rows) {
      const value = hash(...(JSON.parse(`[${key!}]`) as unknown[]));
      expect([value, value % 4]).toEqual([Number(published), Number(remainder)]);
    }
  });

  it('is the same for numbers that are equal, whatever their kind', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(hash(BigInt(value))).toBe(hash(value));
        expect(hash(value + 0.5 - 0.5)).toBe(hash(value + 0.5 - 0.5));
      }),
      { seed: SEED },
    );
    expect(hash(-0)).toBe(hash(0));
    expect(hash(0n)).toBe(hash(-0));
    const otherNaN = new Float64Array(new BigUint64Array([0x7ff8_0000_0000_0001n]).buffer)[0];
    expect(hash(otherNaN)).toBe(hash(NaN));
    expect(hash(-NaN)).toBe(hash(NaN));
    expect(hash(2 ** 100)).toBe(hash(2n ** 100n));
    expect(hash(2n ** 53n + 1n)).not.toBe(hash(2 ** 53));
    expect(hash(10n ** 400n)).not.toBe(hash(-(10n ** 400n)));
  });

  it('tells types apart, and counts absent as null', () => {
    const values = [
      1,
      '1',
      true,
      [1],
      { 1: 1 },
      new Uint8Array([1]),
      null,
      '',
      [],
      {},
      new Map(),
      new Set(),
      false,
      0,
    ];
    expect(new Set(values.map((value) => hash(value))).size).toBe(values.length);
    expect(hashFields({}, ['absent'])).toBe(hash(null));
    expect(hash(undefined)).toBe(hash(null));
  });

  it('does not depend on the order of keys, nor on properties that are undefined, at any depth', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(hash(reversed(value))).toBe(hash(value));
      }),
      { seed: SEED },
    );
    expect(hash({ a: 1, b: undefined })).toBe(hash({ a: 1 }));
    expect(hash([1, 2])).not.toBe(hash([2, 1]));
    expect(
      hash(
        new Map([
          ['a', 1],
          ['b', 2],
        ]),
      ),
    ).toBe(
      hash(
        new Map([
          ['b', 2],
          ['a', 1],
        ]),
      ),
    );
  });

  it('takes bytes by content, whatever view they come in', () => {
    const whole = new Uint8Array([9, 1, 2, 3, 9]);
    expect(hash(whole.subarray(1, 4))).toBe(hash(new Uint8Array([1, 2, 3])));
    expect(hash(Buffer.from([1, 2, 3]))).toBe(hash(new Uint8Array([1, 2, 3])));
  });

  it('is the same compiled as not, for every value under every declared kind', () => {
    const kinds: FieldKind[] = [
      'string',
      'bool',
      'int32',
      'int64',
      'float64',
      'bytes',
      'timestamp',
      'bigint',
      'json',
    ];
    const value = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.double(),
      fc.integer(),
      fc.bigInt(),
      fc.boolean(),
      fc.uint8Array(),
      fc.constant(null),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(value, fc.constantFrom(...kinds)), { minLength: 1, maxLength: 3 }),
        (columns) => {
          const { row, names } = rowOf(columns.map(([inner]) => inner));
          const compiled = compileFieldHash(columns.map(([, kind], i) => field(names[i]!, kind)));
          expect(compiled(row)).toBe(hashFields(row, names));
          expect(compiled(row) >>> 0).toBe(compiled(row));
        },
      ),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('reads fields whose names would be code if they were not quoted', () => {
    const name = '"];globalThis.pwned=1;//\\\n\u2028`${1}';
    expect(compileFieldHash([field(name, 'string')])({ [name]: 'apple' })).toBe(hash('apple'));
    expect('pwned' in globalThis).toBe(false);
  });

  it('refuses what has no value to hash', () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    for (const value of [() => 1, Symbol('s'), cyclic, [[() => 1]]]) {
      expect(() => hash(value)).toThrow(expect.objectContaining({ code: 'EMIT_TYPE_MISMATCH' }) as Error);
    }
  });

  it('spreads real and regular keys evenly over any number of tasks', () => {
    const keySets: Record<string, unknown[]> = {
      words: Array.from({ length: 20_000 }, (_, i) => `word${i.toString(36)}`),
      prefixed: Array.from({ length: 20_000 }, (_, i) => `${i}:customer:eu-west`),
      integers: Array.from({ length: 20_000 }, (_, i) => i),
      negatives: Array.from({ length: 20_000 }, (_, i) => -i * 1024),
      multiples: Array.from({ length: 20_000 }, (_, i) => i * 2 ** 21),
      fractions: Array.from({ length: 20_000 }, (_, i) => i / 4),
      bytes: Array.from({ length: 20_000 }, (_, i) => new Uint8Array([i & 255, i >> 8, 0, 0])),
      objects: Array.from({ length: 20_000 }, (_, i) => ({ id: i, kind: 'x' })),
    };
    for (const [name, keys] of Object.entries(keySets)) {
      for (const tasks of [2, 3, 4, 7, 16, 64, 100, 1000]) {
        const deviation = chiSquareDeviation(
          keys.map((key) => hash(key)),
          tasks,
        );
        expect(Math.abs(deviation), `${name} over ${tasks}`).toBeLessThan(5);
      }
    }
  });
});

/** How many standard deviations the chi-square statistic of hash mod tasks lies from what chance would give. */
function chiSquareDeviation(hashes: readonly number[], tasks: number): number {
  const counts = new Array<number>(tasks).fill(0);
  for (const value of hashes) counts[value % tasks]!++;
  const mean = hashes.length / tasks;
  const statistic = counts.reduce((sum, count) => sum + (count - mean) ** 2 / mean, 0);
  return (statistic - (tasks - 1)) / Math.sqrt(2 * (tasks - 1));
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}
