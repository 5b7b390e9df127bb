import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasCode, type IsobarError } from '../base/index.js';
import type { FieldDescription, FieldKind, Row } from '../topology/index.js';
import { ByteReader, ByteWriter, StringColumn, writeString } from './bytes.js';
import { createRowCodec } from './codec.js';
import { anyStream } from './rows.conformance.js';

const SEED = 20_261;

function field(name: string, kind: FieldKind, nullable = false): FieldDescription {
  return { name, kind, nullable };
}

function fault(kind: FieldKind, value: unknown): IsobarError {
  try {
    createRowCodec([field('x', kind)]).canonical({ x: value });
  } catch (error) {
    return error as IsobarError;
  }
  throw new Error(`${kind} took the value`);
}

describe('a row codec', () => {
  it('reads back what it wrote, row after row, unchanged', () => {
    const reader = new ByteReader();
    fc.assert(
      fc.property(anyStream(), fc.integer({ min: 0, max: 5 }), ({ fields, rows }, offset) => {
        const codec = createRowCodec(fields);
        const canonical = rows.map((row) => codec.canonical(row));
        const writer = new ByteWriter(64);
        writer.ensure(offset);
        writer.position = offset;
        for (const row of canonical) codec.encode(row, writer);
        reader.reset(writer.buffer, offset);
        const read = canonical.map(() => codec.decode(reader));
        deepStrictEqual(read, canonical);
        expect(reader.position).toBe(writer.position);
      }),
      { seed: SEED, numRuns: 1500 },
    );
  });

  it('gives the declared fields in declared order and nothing else', () => {
    const codec = createRowCodec([field('b', 'int32'), field('a', 'string')]);
    const row = codec.canonical({ a: 'x', b: 2 });
    expect(Object.keys(row)).toEqual(['b', 'a']);
  });

  it('takes a row whatever the order of its keys, and refuses it with a further one, at any place', () => {
    const codec = createRowCodec([
      field('a', 'int32'),
      field('b', 'int32', true),
      field('0', 'string', true),
      field('c', 'string', true),
    ]);
    fc.assert(
      fc.property(
        fc.shuffledSubarray(['b', 'c', '0']),
        fc.array(fc.constantFrom('d', 'A', '1', 'toString', '__proto__', 'constructor'), { maxLength: 1 }),
        fc.nat({ max: 4 }),
        (given, further, place) => {
          const keys = ['a', ...given];
          keys.splice(place, 0, ...further);
          const row = Object.fromEntries(keys.map((key) => [key, key === 'a' ? 1 : null]));
          if (further.length === 0)
            expect(codec.canonical(row)).toEqual({ a: 1, b: null, '0': null, c: null });
          else
            expect(() => codec.canonical(row)).toThrow(
              expect.objectContaining({ code: 'EMIT_FIELD_UNDECLARED' }),
            );
        },
      ),
      // More changes of the order than a codec follows.
      { seed: SEED, numRuns: 1000 },
    );
  });

  it('refuses an undeclared key also where its value is undefined, or where getters stand for declared fields', () => {
    const codec = createRowCodec([field('word', 'string')]);
    class Event {
      readonly inner = 'x';
      get word(): string {
        return this.inner;
      }
    }
    expect(() => codec.canonical({ word: 'x', more: undefined })).toThrow(
      expect.objectContaining({ code: 'EMIT_FIELD_UNDECLARED' }),
    );
    expect(() => codec.canonical(new Event() as unknown as Row)).toThrow(
      expect.objectContaining({ code: 'EMIT_FIELD_UNDECLARED' }),
    );
  });

  it('does not mind what a row inherits, hides or has under a symbol', () => {
    const codec = createRowCodec([field('word', 'string')]);
    const row = Object.create({ inherited: 1, method() {} }) as Record<string | symbol, unknown>;
    row['word'] = 'x';
    row[Symbol('s')] = 1;
    Object.defineProperty(row, 'hidden', { value: 1, enumerable: false });
    for (let i = 0; i < 3; i++) expect(codec.canonical(row as Row)).toEqual({ word: 'x' });
  });

  it('says which key is not declared, and which field it may have meant', () => {
    const codec = createRowCodec([field('word', 'string'), field('count', 'int64', true)]);
    expect(() => codec.canonical({ word: 'x', cuont: 1 })).toThrow(
      expect.objectContaining({
        message: 'the row has "cuont", which is not a field of the stream; did you mean "count"?',
        details: {
          expected: 'only the declared fields: word, count',
          found: '"cuont"',
          field: 'cuont',
          closest: 'count',
        },
      }),
    );
    expect(() => codec.canonical({ word: 'x', user: 1 })).toThrow(
      'the row has "user", which is not a field of the stream',
    );
    expect(() => codec.canonical({ word: 'x', ['y'.repeat(100_000)]: 1 })).toThrow(/the row has "y{100}…"/u);
    expect(() => codec.canonical({ wrod: 'x' })).toThrow(
      'the field "word" is missing; the row has "wrod" instead',
    );
    expect(() => createRowCodec([]).canonical({ a: 1 })).toThrow(
      expect.objectContaining({ code: 'EMIT_FIELD_UNDECLARED' }),
    );
  });

  it('makes a canonical row canonical without changing it', () => {
    fc.assert(
      fc.property(anyStream(), ({ fields, rows }) => {
        const codec = createRowCodec(fields);
        for (const row of rows) {
          const once = codec.canonical(row);
          deepStrictEqual(codec.canonical(once), once);
        }
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('keeps a row apart from later changes of the values that it was made from', () => {
    const codec = createRowCodec([field('bytes', 'bytes'), field('json', 'json')]);
    const bytes = Buffer.from([1, 2, 3]);
    const json = { list: [1, 2], map: new Map([['a', { deep: 1 }]]) };
    const row = codec.canonical({ bytes, json });
    bytes[0] = 9;
    json.list.push(3);
    json.map.get('a')!.deep = 2;
    deepStrictEqual(row['bytes'], new Uint8Array([1, 2, 3]));
    deepStrictEqual(row['json'], { list: [1, 2], map: new Map([['a', { deep: 1 }]]) });
  });

  it('reads values that do not depend on the bytes they were read from', () => {
    const codec = createRowCodec([field('bytes', 'bytes'), field('json', 'json'), field('s', 'string')]);
    const row = codec.canonical({
      bytes: new Uint8Array([1]),
      json: [new Uint8Array([2]), new Float64Array([3])],
      s: 'long '.repeat(20),
    });
    const writer = new ByteWriter();
    codec.encode(row, writer);
    const reader = new ByteReader();
    reader.reset(writer.buffer, 0);
    const read = codec.decode(reader);
    writer.buffer.fill(0xaa);
    deepStrictEqual(read, row);
  });

  it('carries megabyte strings in each encoding', () => {
    const codec = createRowCodec([field('s', 'string'), field('n', 'int32')]);
    for (const part of ['abcd', 'éabc', '日本', '\ud800x']) {
      const row = codec.canonical({ s: part.repeat(400_000), n: 7 });
      const writer = new ByteWriter(64);
      codec.encode(row, writer);
      const reader = new ByteReader();
      reader.reset(writer.buffer, 0);
      const read = codec.decode(reader);
      expect(read['s'] === row['s']).toBe(true);
      expect(read['n']).toBe(7);
    }
  });

  it('carries cyclic, shared, very deep and very large json values', () => {
    const codec = createRowCodec([field('j', 'json')]);
    const cyclic: { self?: unknown; list: unknown[] } = { list: [1] };
    cyclic.self = cyclic;
    let deep: unknown = 'end';
    for (let i = 0; i < 1000; i++) deep = { deep };
    let shared: unknown[] = [];
    for (let i = 0; i < 40; i++) shared = [shared, shared];
    const large = Array.from({ length: 150_000 }, (_, i) => i);
    for (const value of [cyclic, deep, large]) {
      const row = codec.canonical({ j: value });
      const writer = new ByteWriter();
      codec.encode(row, writer);
      const reader = new ByteReader();
      reader.reset(writer.buffer, 0);
      deepStrictEqual(codec.decode(reader), row);
    }
    // 2^40 paths, 41 arrays: kept as they are, never walked path by path.
    const row = codec.canonical({ j: shared });
    const top = row['j'] as unknown[];
    expect(top[0]).toBe(top[1]);
  });

  it('makes plain objects of instances, on each link alike', () => {
    class Point {
      x = 1;
      get double(): number {
        return 2 * this.x;
      }
    }
    class Tagged {
      y = 2;
      readonly [Symbol.toStringTag] = 'Tagged';
    }
    const codec = createRowCodec([field('j', 'json')]);
    const row = codec.canonical({ j: [new Point(), new Tagged(), Object.create(null)] });
    deepStrictEqual(row['j'], [{ x: 1 }, { y: 2 }, {}]);
  });

  it('makes 0 of -0 in integer fields and leaves it in others', () => {
    const codec = createRowCodec([
      field('i', 'int32'),
      field('l', 'int64'),
      field('f', 'float64'),
      field('t', 'timestamp'),
    ]);
    const row = codec.canonical({ i: -0, l: -0, f: -0, t: -0 });
    deepStrictEqual(row, { i: 0, l: 0, f: -0, t: -0 });
  });

  it('takes an absent nullable field as null', () => {
    const codec = createRowCodec([field('s', 'string', true), field('toString', 'json', true)]);
    deepStrictEqual(codec.canonical({}), { s: null, toString: null });
  });

  it.each([
    ['int32', 1.5],
    ['int32', NaN],
    ['int32', 2 ** 31],
    ['int32', '1'],
    ['int32', 1n],
    ['int64', 2 ** 53],
    ['int64', 0.5],
    ['int64', Infinity],
    ['int64', 1n],
    ['float64', '1'],
    ['timestamp', NaN],
    ['timestamp', -Infinity],
    ['timestamp', new Date(0)],
    ['string', 1],
    ['string', null],
    ['bool', 1],
    ['bigint', 1],
    ['bytes', [1]],
    ['bytes', 'x'],
    ['json', () => 1],
    ['json', Symbol('x')],
    ['json', { f: () => 1 }],
    ['json', [Promise.resolve()]],
  ] as const)('refuses in a field of kind %s the value %o', (kind, value) => {
    const error = fault(kind, value);
    expect(hasCode(error, 'EMIT_TYPE_MISMATCH')).toBe(true);
    expect(error.details.expected).toBeTruthy();
    expect(error.details.found).toBeTruthy();
    expect(error.message).toContain('"x"');
  });

  it('says which declared field is missing, inherited names included', () => {
    expect(hasCode(fault('string', undefined), 'EMIT_FIELD_MISSING')).toBe(true);
    expect(() => createRowCodec([field('constructor', 'json')]).canonical({})).toThrow(
      expect.objectContaining({ code: 'EMIT_FIELD_MISSING' }),
    );
  });

  it.each([null, undefined, 'row', 5])('refuses %o as a row', (row) => {
    // What JavaScript callers may pass.
    expect(() => createRowCodec([]).canonical(row as never)).toThrow(
      expect.objectContaining({ code: 'EMIT_TYPE_MISMATCH' }),
    );
  });

  it('lets a getter that fails speak for itself, and goes on', () => {
    const codec = createRowCodec([field('j', 'json')]);
    const bad = {
      get x(): number {
        throw new RangeError('mine');
      },
    };
    expect(() => codec.canonical({ j: bad })).toThrow(/mine/);
    deepStrictEqual(codec.canonical({ j: [1] }), { j: [1] });
  });

  it('refuses what cannot be looked at with a code, whatever the field takes', () => {
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const transferred = new Uint8Array(4);
    structuredClone(transferred.buffer, { transfer: [transferred.buffer] });
    const lying = {
      get [Symbol.toStringTag](): string {
        throw new Error('no');
      },
    };
    const kinds = [
      'string',
      'bool',
      'int32',
      'int64',
      'float64',
      'bytes',
      'timestamp',
      'bigint',
      'json',
    ] as const;
    for (const kind of kinds) {
      const codec = createRowCodec([{ name: 'v', kind, nullable: false }]);
      for (const v of [revoked.proxy, transferred, lying, new Proxy(new Uint8Array(2), {})]) {
        const isData = kind === 'json' && (v === lying || v === transferred);
        if (isData) continue;
        expect(() => codec.canonical({ v })).toThrow(expect.objectContaining({ code: 'EMIT_TYPE_MISMATCH' }));
      }
    }
  });

  it('refuses json arrays with properties besides their elements, which would not arrive', () => {
    const codec = createRowCodec([{ name: 'v', kind: 'json', nullable: false }]);
    const match = /b/.exec('abc')!;
    for (const v of [
      match,
      { deep: [match] },
      new Map([['m', match]]),
      Object.assign([1, 2], { extra: 3 }),
    ]) {
      expect(() => codec.canonical({ v })).toThrow(
        /an array with properties besides its elements, such as "(index|extra)"/,
      );
    }
    expect(codec.canonical({ v: [...match] })).toEqual({ v: ['b'] });
    expect(codec.canonical({ v: [1, , 3] })).toEqual({ v: [1, , 3] });
  });

  it('refuses a field named __proto__', () => {
    expect(() => createRowCodec([field('__proto__', 'string')])).toThrow(
      expect.objectContaining({ code: 'FIELD_NAME_ILLEGAL' }),
    );
  });
});

describe('the string cache', () => {
  function read(reader: ByteReader, column: StringColumn, text: string): string {
    const writer = new ByteWriter();
    writeString(writer, text, 0);
    reader.reset(writer.buffer, 0);
    return reader.shortString(column, 1, text.length);
  }

  it('tells strings of every length apart, wherever they differ, while one takes the place of the other', () => {
    const reader = new ByteReader();
    const column = new StringColumn();
    for (let length = 0; length <= 24; length++) {
      const texts = Array.from({ length }, (_, at) => `${'m'.repeat(at)}ÿ${'m'.repeat(length - at - 1)}`);
      for (const first of ['m'.repeat(length), ...texts]) {
        for (const second of texts) {
          // Never judged: the cache is what is looked at.
          column.lookups = 0;
          for (const text of [first, second]) expect(read(reader, column, text)).toBe(text);
        }
      }
    }
  });

  it('switches off for a column whose strings do not repeat, and stays on for one whose do', () => {
    const reader = new ByteReader();
    const different = new StringColumn();
    const repeating = new StringColumn();
    for (let i = 0; i < 5000; i++) {
      expect(read(reader, different, `key-${i}`)).toBe(`key-${i}`);
      expect(read(reader, repeating, `word-${i % 50}`)).toBe(`word-${i % 50}`);
    }
    expect(different.cached).toBe(false);
    expect(repeating.cached).toBe(true);
  });

  it('gives a column another chance later', () => {
    const reader = new ByteReader();
    const column = new StringColumn();
    for (let i = 0; i < 2000; i++) read(reader, column, `key-${i}`);
    expect(column.cached).toBe(false);
    for (let i = 0; i < 70_000; i++) read(reader, column, 'same');
    expect(column.cached).toBe(true);
  });
});
