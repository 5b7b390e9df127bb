/**
 * The grouping hash: which task a key goes to. Published in docs/grouping-hash.md with vectors; it never changes, since
 * saved state is spread over tasks by it.
 *
 * Equal values hash equally whatever they are declared as: 1, 1n and 1.0; -0 and 0; NaN and NaN; objects whatever the
 * order of their keys. Strings go through an FNV-1a loop over UTF-16 units (one multiplication a unit), everything else
 * through the block step of MurmurHash3 x86_32, whose finaliser ends every hash.
 */
import { IsobarError } from '../../base/index.js';
import type { FieldDescription, Row } from '../../topology/index.js';

const FNV_PRIME = 0x01000193;
const START = 0x811c9dc5 | 0;

const TAG_NULL = 0;
const TAG_FALSE = 1;
const TAG_TRUE = 2;
const TAG_NUMBER = 3;
const TAG_BIGINT = 4;
const TAG_STRING = 5;
const TAG_BYTES = 6;
const TAG_LIST = 7;
const TAG_OBJECT = 8;
const TAG_DATE = 9;
const TAG_MAP = 10;
const TAG_SET = 11;

/** Where the hash of a row whose first key is a string starts. */
const STRING_START = absorbWord(START, TAG_STRING);
const NUMBER_START = absorbWord(START, TAG_NUMBER);

const DEEPEST = 200;

const double = new Float64Array(1);
const doubleWords = new Int32Array(double.buffer);
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
const LOW_WORD = LITTLE_ENDIAN ? 0 : 1;
const HIGH_WORD = 1 - LOW_WORD;

/** Hash (uint32) of the named fields of a row, in that order; a field that is absent counts as null. */
export function hashFields(row: Row, fields: readonly string[]): number {
  let hash = START;
  for (const field of fields) hash = absorb(hash, row[field], 0);
  return finish(hash) >>> 0;
}

/**
 * The same hash as a function of its own, with the fields in the order given. Declared kinds do not matter: what counts
 * is the value.
 */
export function compileFieldHash(fields: readonly FieldDescription[]): (row: Row) => number {
  const hash = compileSignedFieldHash(fields);
  return (row) => hash(row) >>> 0;
}

/**
 * As {@link compileFieldHash}, with the hash as an int32: a uint32 above 2³¹ that leaves a function which is not inlined
 * is boxed on the heap.
 */
export function compileSignedFieldHash(fields: readonly FieldDescription[]): (row: Row) => number {
  const readers = fields.map((field) => compileReader(field.name));
  const [read] = readers;
  if (readers.length === 1 && read !== undefined) return (row) => hashKey(read(row));
  return (row) => {
    let hash = START;
    for (let i = 0; i < readers.length; i++) hash = absorb(hash, readers[i]!(row), 0);
    return finish(hash);
  };
}

/**
 * Reads one field. Generated, because closures made from one piece of source share its inline caches: with several
 * keyed streams in a thread `row[name]` goes through the megamorphic path (some 5 ns more).
 */
export function compileReader(name: string): (row: Row) => unknown {
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the name is quoted; nothing else goes in
  return new Function('row', `return row[${JSON.stringify(name)}];`) as (row: Row) => unknown;
}

/** Hash (int32) of a key of one field. */
export function hashKey(value: unknown): number {
  if (typeof value === 'string') return finish(absorbUnits(STRING_START, value));
  return finish(typeof value === 'number' ? absorbDouble(NUMBER_START, value) : absorb(START, value, 0));
}

/** Takes a value of any kind into the hash. `depth`: how many objects it is inside of. */
function absorb(hash: number, value: unknown, depth: number): number {
  switch (typeof value) {
    case 'string':
      return absorbUnits(absorbWord(hash, TAG_STRING), value);
    case 'number':
      return absorbDouble(absorbWord(hash, TAG_NUMBER), value);
    case 'boolean':
      return absorbWord(hash, value ? TAG_TRUE : TAG_FALSE);
    case 'bigint':
      return absorbBigInt(hash, value);
    case 'undefined':
      return absorbWord(hash, TAG_NULL);
    case 'object':
      return value === null ? absorbWord(hash, TAG_NULL) : absorbObject(hash, value, depth);
    case 'function':
    case 'symbol':
      throw unhashable(typeof value);
  }
}

function absorbUnits(hash: number, text: string): number {
  const length = text.length;
  let state = hash ^ length;
  for (let i = 0; i < length; i++) state = Math.imul(state ^ text.charCodeAt(i), FNV_PRIME);
  return state;
}

/** Two words of the IEEE 754 double, low first; -0 as 0, every NaN as the same. */
function absorbDouble(hash: number, value: number): number {
  double[0] = value + 0;
  if (value !== value) return absorbWord(absorbWord(hash, 0), 0x7ff80000);
  return absorbWord(absorbWord(hash, doubleWords[LOW_WORD]!), doubleWords[HIGH_WORD]!);
}

/** A bigint that a double can hold hashes as that number; others by sign and 32-bit digits, lowest first. */
function absorbBigInt(hash: number, value: bigint): number {
  const near = Number(value);
  if (Number.isFinite(near) && BigInt(near) === value)
    return absorbDouble(absorbWord(hash, TAG_NUMBER), near);
  let state = absorbWord(absorbWord(hash, TAG_BIGINT), value < 0n ? 1 : 0);
  let rest = value < 0n ? -value : value;
  let digits = 0;
  for (; rest > 0n; rest >>= 32n) {
    state = absorbWord(state, Number(rest & 0xffffffffn) | 0);
    digits++;
  }
  return absorbWord(state, digits);
}

function absorbObject(hash: number, value: object, depth: number): number {
  if (depth >= DEEPEST) throw unhashable(`a value that is cyclic or nested deeper than ${DEEPEST}`);
  if (value instanceof Uint8Array) return absorbBytes(hash, value);
  if (value instanceof Date) return absorbDouble(absorbWord(hash, TAG_DATE), value.getTime());
  if (value instanceof Map) return absorbPairs(absorbWord(hash, TAG_MAP), [...value], depth);
  if (value instanceof Set) {
    const elements = [...value].map((element) => [element, null] as const);
    return absorbPairs(absorbWord(hash, TAG_SET), elements, depth);
  }
  if (Array.isArray(value)) return absorbList(hash, value, depth);
  // A property that is undefined is the same as none, as in JSON.
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return absorbPairs(absorbWord(hash, TAG_OBJECT), entries, depth);
}

function absorbBytes(hash: number, bytes: Uint8Array): number {
  let state = absorbWord(hash, TAG_BYTES) ^ bytes.length;
  for (let i = 0; i < bytes.length; i++) state = Math.imul(state ^ bytes[i]!, FNV_PRIME);
  return state;
}

function absorbList(hash: number, list: readonly unknown[], depth: number): number {
  let state = absorbWord(hash, TAG_LIST);
  for (const element of list) state = absorb(state, element, depth + 1);
  return absorbWord(state, list.length);
}

/** Pairs in any order: the sum of their hashes, and how many there are. */
function absorbPairs(hash: number, pairs: readonly (readonly [unknown, unknown])[], depth: number): number {
  let sum = 0;
  for (const [key, part] of pairs) {
    sum = (sum + finish(absorb(absorb(START, key, depth + 1), part, depth + 1))) | 0;
  }
  return absorbWord(absorbWord(hash, sum), pairs.length);
}

/** The block step of MurmurHash3 x86_32. */
function absorbWord(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e2d51);
  mixed = (mixed << 15) | (mixed >>> 17);
  let state = hash ^ Math.imul(mixed, 0x1b873593);
  state = (state << 13) | (state >>> 19);
  return (Math.imul(state, 5) + 0xe6546b64) | 0;
}

/** The finaliser of MurmurHash3 x86_32, as an int32. */
function finish(hash: number): number {
  let state = hash ^ (hash >>> 16);
  state = Math.imul(state, 0x85ebca6b);
  state ^= state >>> 13;
  state = Math.imul(state, 0xc2b2ae35);
  return state ^ (state >>> 16);
}

function unhashable(found: string): IsobarError {
  return new IsobarError('EMIT_TYPE_MISMATCH', `a grouping key cannot be hashed: ${found}`, {
    expected: 'a value of a declared kind, or plain JSON-like data',
    found,
  });
}
