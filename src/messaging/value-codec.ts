/**
 * Values of unknown shape (the kind `json`): everything that structured clone carries, unchanged.
 *
 * What occurs most (plain objects, arrays, Map, Set, Date, bytes and all primitives) is written by hand, tag by tag,
 * with object keys read through the string cache; anything else, and a value that is cyclic, very deep or very large, goes
 * whole through V8's own structured-clone codec. MessagePack was tried for this: it loses -0, lone surrogates, holes
 * in arrays and the key `__proto__`.
 *
 * Instances of classes arrive as plain objects of their own enumerable properties, as structured clone has it. An array
 * that has properties besides its elements (what `String.match` returns) is refused when it is emitted.
 */
import { deserialize, serialize } from 'node:v8';
import {
  ByteReader,
  ByteWriter,
  readBigInt,
  readBytes,
  readString,
  StringColumn,
  writeBigInt,
  writeBytes,
  writeString,
} from './bytes.js';

const NULL = 0;
const UNDEFINED = 1;
const TRUE = 2;
const FALSE = 3;
const INT32 = 4;
const FLOAT64 = 5;
const STRING = 6;
const ARRAY = 7;
const OBJECT = 8;
const MAP = 9;
const SET = 10;
const DATE = 11;
const BYTES = 12;
const BIGINT = 13;
const CLONE = 14;

/** Deeper or larger values, and so all cyclic ones, go through structured clone, which also keeps shared parts shared. */
const MAX_DEPTH = 200;
const MAX_NODES = 100_000;

/** The largest fixed part of a value: a tag and eight bytes. */
const ROOM = 9;

const strings = new StringColumn();
const keys = new StringColumn();
let nodes = 0;
/**
 * Refuse arrays with properties besides their elements. Finding them costs as much as writing the elements, so it is done
 * once, where a value is taken from its emitter; what is read here has none.
 */
let refusesArrayProperties = false;

/** Scratch space of {@link copyValue}. */
const scratchWriter = new ByteWriter();
const scratchReader = new ByteReader();

/**
 * The value as it would arrive over a link, sharing nothing with the original. Going through the codec itself makes a
 * row that stays in its thread equal to one that travels, whatever the value is.
 */
export function copyValue(value: unknown): unknown {
  const start = scratchWriter.position;
  const outer = refusesArrayProperties;
  try {
    refusesArrayProperties = true;
    writeValue(scratchWriter, value);
    scratchReader.reset(scratchWriter.buffer, start);
    const copy = readValue(scratchReader);
    if (scratchWriter.buffer[start] !== CLONE) return copy;
    // Structured clone may have made a simple value of one that was not; its shared parts then come apart too.
    scratchWriter.position = start;
    writeValue(scratchWriter, copy);
    scratchReader.reset(scratchWriter.buffer, start);
    return readValue(scratchReader);
  } finally {
    refusesArrayProperties = outer;
    // A getter of the value may have copied another one meanwhile: everybody leaves the position as found.
    scratchWriter.position = start;
    if (start === 0) scratchWriter.reset();
  }
}

/**
 * Writes a value at `writer.position`. Throws what structured clone throws for functions, symbols and the like, and what
 * getters of the value throw.
 */
export function writeValue(writer: ByteWriter, value: unknown): void {
  const start = writer.position;
  nodes = 0;
  if (writeSimple(writer, value, 0)) return;
  writer.position = start;
  const bytes = serialize(value);
  writer.ensure(ROOM);
  writer.buffer[writer.position++] = CLONE;
  writeBytes(writer, bytes, 0);
}

/** Reads a value at `reader.position`; nothing in it refers to the reader's memory. */
export function readValue(reader: ByteReader): unknown {
  const { buffer, view } = reader;
  const at = reader.position++;
  switch (buffer[at]!) {
    case NULL:
      return null;
    case UNDEFINED:
      return undefined;
    case TRUE:
      return true;
    case FALSE:
      return false;
    case INT32:
      reader.position = at + 5;
      return view.getInt32(at + 1, true);
    case FLOAT64:
      reader.position = at + 9;
      return view.getFloat64(at + 1, true);
    case STRING:
      return readString(reader, strings);
    case ARRAY: {
      const length = readCount(reader);
      const items: unknown[] = [];
      for (let i = 0; i < length; i++) items.push(readValue(reader));
      return items;
    }
    case OBJECT: {
      const count = readCount(reader);
      const object: Record<string, unknown> = {};
      for (let i = 0; i < count; i++) {
        const key = readString(reader, keys)!;
        const value = readValue(reader);
        if (key === '__proto__') defineOwn(object, key, value);
        else object[key] = value;
      }
      return object;
    }
    case MAP: {
      const count = readCount(reader);
      const map = new Map<unknown, unknown>();
      for (let i = 0; i < count; i++) {
        const key = readValue(reader);
        map.set(key, readValue(reader));
      }
      return map;
    }
    case SET: {
      const count = readCount(reader);
      const set = new Set<unknown>();
      for (let i = 0; i < count; i++) set.add(readValue(reader));
      return set;
    }
    case DATE:
      reader.position = at + 9;
      return new Date(view.getFloat64(at + 1, true));
    case BYTES:
      return readBytes(reader);
    case BIGINT:
      return readBigInt(reader);
    default:
      // readBytes copies first: V8 hands out typed arrays that are views of what it reads from.
      return deserialize(readBytes(reader));
  }
}

/** Writes a value tag by tag; false: it has a part that only structured clone carries (what was written is void). */
function writeSimple(writer: ByteWriter, value: unknown, depth: number): boolean {
  if (++nodes > MAX_NODES) return false;
  writer.ensure(ROOM);
  switch (typeof value) {
    case 'string':
      writer.buffer[writer.position++] = STRING;
      writeString(writer, value, 0);
      return true;
    case 'number':
      if ((value | 0) === value && !Object.is(value, -0)) {
        writer.buffer[writer.position] = INT32;
        writer.view.setInt32(writer.position + 1, value, true);
        writer.position += 5;
      } else {
        writeFloat(writer, FLOAT64, value);
      }
      return true;
    case 'boolean':
      writer.buffer[writer.position++] = value ? TRUE : FALSE;
      return true;
    case 'undefined':
      writer.buffer[writer.position++] = UNDEFINED;
      return true;
    case 'bigint':
      writer.buffer[writer.position++] = BIGINT;
      writeBigInt(writer, value, 0);
      return true;
    case 'object':
      if (value === null) {
        writer.buffer[writer.position++] = NULL;
        return true;
      }
      return depth < MAX_DEPTH && writeObject(writer, value, depth + 1);
    case 'function':
    case 'symbol':
      return false;
  }
}

function writeObject(writer: ByteWriter, value: object, depth: number): boolean {
  if (Array.isArray(value)) {
    if (refusesArrayProperties) refuseArrayProperties(value);
    writeCount(writer, ARRAY, value.length);
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (item === undefined && !(i in value)) return false;
      if (!writeSimple(writer, item, depth)) return false;
    }
    return true;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return writeProperties(writer, value, depth);
  if (prototype === Map.prototype) {
    const map = value as ReadonlyMap<unknown, unknown>;
    writeCount(writer, MAP, map.size);
    for (const [key, item] of map) {
      if (!writeSimple(writer, key, depth) || !writeSimple(writer, item, depth)) return false;
    }
    return true;
  }
  if (prototype === Set.prototype) {
    const set = value as ReadonlySet<unknown>;
    writeCount(writer, SET, set.size);
    for (const item of set) {
      if (!writeSimple(writer, item, depth)) return false;
    }
    return true;
  }
  if (prototype === Date.prototype) {
    writeFloat(writer, DATE, (value as Date).getTime());
    return true;
  }
  if (prototype === Uint8Array.prototype || prototype === Buffer.prototype) {
    writer.buffer[writer.position++] = BYTES;
    writeBytes(writer, value as Uint8Array, 0);
    return true;
  }
  if (Object.prototype.toString.call(value) === '[object Object]')
    return writeProperties(writer, value, depth);
  return false;
}

function refuseArrayProperties(value: readonly unknown[]): void {
  const names = Object.keys(value);
  if (names.length <= value.length) return;
  const name = JSON.stringify(names.find((each) => !(Number(each) < value.length)));
  throw new TypeError(`an array with properties besides its elements, such as ${name}`);
}

function writeProperties(writer: ByteWriter, value: object, depth: number): boolean {
  const names = Object.keys(value);
  writeCount(writer, OBJECT, names.length);
  for (const name of names) {
    writeString(writer, name, 0);
    if (!writeSimple(writer, (value as Record<string, unknown>)[name], depth)) return false;
  }
  return true;
}

function writeCount(writer: ByteWriter, tag: number, count: number): void {
  writer.buffer[writer.position] = tag;
  writer.view.setUint32(writer.position + 1, count, true);
  writer.position += 5;
}

function writeFloat(writer: ByteWriter, tag: number, value: number): void {
  writer.buffer[writer.position] = tag;
  writer.view.setFloat64(writer.position + 1, value, true);
  writer.position += 9;
}

function readCount(reader: ByteReader): number {
  const count = reader.view.getUint32(reader.position, true);
  reader.position += 4;
  return count;
}

/** Assignment would set the prototype instead. */
function defineOwn(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}
