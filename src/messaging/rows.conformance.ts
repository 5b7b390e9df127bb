/** Generators of streams and rows with the values that links tend to spoil; shared by the tests of this folder. */
import fc from 'fast-check';
import type { FieldDescription, FieldKind, Row } from '../topology/index.js';

const NASTY_STRINGS = [
  '',
  '\u0000',
  'é',
  'ÿ'.repeat(24),
  'ÿ'.repeat(25),
  'a'.repeat(24),
  'a'.repeat(25),
  'žlutý kůň',
  '日本語'.repeat(20),
  '\ud800',
  'lone \udc00 low',
  '\udfff\ud800',
  '😀'.repeat(13),
  '\ufffd',
  `${'x'.repeat(300)}\ud9ab`,
  '__proto__',
];

export const anyString: fc.Arbitrary<string> = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  // Any UTF-16 code units, paired or not.
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map((codes) => String.fromCharCode(...codes)),
  fc.constantFrom(...NASTY_STRINGS),
);

const anyNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(
    0,
    -0,
    NaN,
    Infinity,
    -Infinity,
    5e-324,
    Number.MAX_VALUE,
    2 ** 53,
    2 ** 31,
    -(2 ** 31) - 1,
  ),
);

const anyBigInt = fc.oneof(
  fc.bigInt(),
  fc.bigInt({ min: -(2n ** 3000n), max: 2n ** 3000n }),
  fc.constantFrom(0n, -1n, 2n ** 63n - 1n, 2n ** 63n, -(2n ** 63n), -(2n ** 63n) - 1n, 2n ** 64n),
);

const anyBytes = fc.uint8Array({ maxLength: 100 });

/** Anything structured clone carries: the common shapes, and those that only V8's own codec knows. */
export const anyJson: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    anyNumber,
    anyString,
    fc.boolean(),
    fc.constantFrom(null, undefined),
    anyBigInt,
    anyBytes,
    fc.date({ noInvalidDate: true }),
    fc.constantFrom(/a+/giu),
    fc.constant(new Float64Array([1, NaN, -0])),
    fc.array(tie('value'), { maxLength: 4 }),
    // A hole is not undefined.
    fc
      .array(tie('value'), { maxLength: 2 })
      .map((items) => [...items, ...new Array<unknown>(1)].concat(new Array(1))),
    fc.dictionary(anyString, tie('value'), { maxKeys: 4 }),
    fc.array(fc.tuple(tie('value'), tie('value')), { maxLength: 3 }).map((entries) => new Map(entries)),
    fc.array(tie('value'), { maxLength: 3 }).map((items) => new Set(items)),
  ),
})).value;

const VALUES: Readonly<Record<FieldKind, fc.Arbitrary<unknown>>> = {
  string: anyString,
  bool: fc.boolean(),
  int32: fc.oneof(fc.integer(), fc.constantFrom(0, -0, 2 ** 31 - 1, -(2 ** 31))),
  int64: fc.oneof(
    fc.maxSafeInteger(),
    fc.constantFrom(0, -0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
  ),
  float64: anyNumber,
  bytes: anyBytes,
  timestamp: fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(-0, 0, 1_700_000_000_000),
  ),
  bigint: anyBigInt,
  json: anyJson.filter((value) => value !== undefined),
};

export const KINDS = Object.keys(VALUES) as FieldKind[];

const fieldName = fc.oneof(
  fc.string({ minLength: 1, maxLength: 8 }).filter((name) => name !== '__proto__'),
  fc.constantFrom(
    'constructor',
    'toString',
    '0',
    'a b',
    "quote'",
    '"',
    '\\',
    '\u2028',
    '\ud800',
    'row',
    'hasOwnProperty',
  ),
);

/** A stream with up to `maxFields` fields and some rows of it, as user code may emit them. */
export function anyStream(maxFields = 8): fc.Arbitrary<{ fields: FieldDescription[]; rows: Row[] }> {
  const field = fc.record({ name: fieldName, kind: fc.constantFrom(...KINDS), nullable: fc.boolean() });
  return fc
    .uniqueArray(field, { minLength: 0, maxLength: maxFields, selector: (each) => each.name })
    .chain((fields) =>
      fc.record({ fields: fc.constant(fields), rows: fc.array(rowOf(fields), { maxLength: 6 }) }),
    );
}

export function rowOf(fields: readonly FieldDescription[]): fc.Arbitrary<Row> {
  return fc
    .tuple(...fields.map((field) => (field.nullable ? fc.option(VALUES[field.kind]) : VALUES[field.kind])))
    .map((values) => Object.fromEntries(fields.map((field, i) => [field.name, values[i]])));
}
