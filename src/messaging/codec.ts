/**
 * One codec per stream: checks emitted rows, writes them into frames and reads them back.
 *
 * The three functions of a codec are generated from the stream's fields, each a straight line without a loop over fields:
 * rows then have one hidden class per stream, and V8 compiles the whole line. Names enter the source only as JSON string
 * literals, so no name can become code.
 *
 * Invariants
 * C1  decode(encode(canonical(row))) equals canonical(row), for every row that canonical accepts.
 * C2  A canonical row shares no memory with the row that it was made from.
 * C3  A row with an own enumerable key that is not a declared field has no canonical row.
 */
import { IsobarError } from '../base/index.js';
import type { FieldDescription, Row } from '../topology/index.js';
import {
  type ByteReader,
  type ByteWriter,
  readBigInt,
  readBytes,
  readLongString,
  SHORT_CHARACTERS,
  SHORT_STRING_BYTES,
  STRING_NULL,
  StringColumn,
  writeBigInt,
  writeBytes,
  writeLongString,
} from './bytes.js';
import { copyBytes, createRepairs } from './field-faults.js';
import { readValue, writeValue } from './value-codec.js';

/** What a stream's rows go through. */
export interface RowCodec {
  readonly fields: readonly FieldDescription[];
  /**
   * The declared fields in declared order, values checked and copied where they could change later. An absent nullable
   * field becomes null; -0 in an integer field becomes 0. Throws EMIT_FIELD_MISSING, EMIT_TYPE_MISMATCH or
   * EMIT_FIELD_UNDECLARED with `expected`, `found` and `field`; the caller knows `where`.
   */
  canonical(row: Row): Row;
  /** Writes a canonical row at `writer.position`; one of a stream with more fields will do (see row-view.ts). */
  encode(canonicalRow: Row, writer: ByteWriter): void;
  /** Reads a row at `reader.position`; nothing in it refers to the reader's memory. */
  decode(reader: ByteReader): Row;
}

/** Builds the codec of a stream. Throws FIELD_NAME_ILLEGAL for a field named `__proto__`. */
export function createRowCodec(fields: readonly FieldDescription[]): RowCodec {
  for (const field of fields) {
    if (field.name === '__proto__') {
      throw new IsobarError('FIELD_NAME_ILLEGAL', 'a field cannot be named __proto__', { found: field.name });
    }
  }
  return {
    fields,
    canonical: generate(canonicalSource(fields), fields) as RowCodec['canonical'],
    encode: generate(encodeSource(fields), fields) as RowCodec['encode'],
    decode: generate(decodeSource(fields), fields) as RowCodec['decode'],
  };
}

/** What generated code may call, by the name that it uses. */
const RUNTIME = {
  copyBytes,
  readBigInt,
  readBytes,
  readLongString,
  readValue,
  writeBigInt,
  writeBytes,
  writeLongString,
  writeValue,
};

function generate(source: string, fields: readonly FieldDescription[]): unknown {
  const scope = {
    ...RUNTIME,
    repairs: createRepairs(fields),
    columns: fields.map(() => new StringColumn()),
  };
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the file's header says why
  const make = new Function(...Object.keys(scope), source) as (...values: unknown[]) => unknown;
  return make(...Object.values(scope));
}

// ── canonical ──

function canonicalSource(fields: readonly FieldDescription[]): string {
  const lines = fields.map((field, i) => {
    const name = JSON.stringify(field.name);
    // A name that every object inherits must be the row's own.
    const read =
      field.name in Object.prototype
        ? `Object.hasOwn(row, ${name}) ? row[${name}] : undefined`
        : `row[${name}]`;
    return `let v${i} = ${read};\n${canonicalField(field, i)}`;
  });
  // A row's keys mostly come in the order of the row before: comparing with that is one pass without a look-up.
  return `const repair = repairs.fields;
let order = repairs.names;
return function canonical(row) {
  if (typeof row !== 'object' || row === null) repairs.noRow(row);
  ${lines.join('\n  ')}
  let k = 0;
  for (const key in row) if (key !== order[k++]) { order = repairs.checkKeys(row, order); break; }
  return { ${fields.map((field, i) => `${JSON.stringify(field.name)}: v${i}`).join(', ')} };
};`;
}

/** The plain test of a good value; `repair` answers for everything else with null, or throws. */
function canonicalField(field: FieldDescription, i: number): string {
  const v = `v${i}`;
  const repair = `${v} = repair[${i}](${v}, row);`;
  switch (field.kind) {
    case 'string':
      return `if (typeof ${v} !== 'string') ${repair}`;
    case 'bool':
      return `if (typeof ${v} !== 'boolean') ${repair}`;
    case 'bigint':
      return `if (typeof ${v} !== 'bigint') ${repair}`;
    case 'int32':
      return `if (typeof ${v} !== 'number' || (${v} | 0) !== ${v}) ${repair} else ${v} = ${v} | 0;`;
    case 'int64':
      // Adding 0 makes 0 of -0.
      return `if (!Number.isSafeInteger(${v})) ${repair} else ${v} = ${v} + 0;`;
    case 'float64':
      return `if (typeof ${v} !== 'number') ${repair}`;
    case 'timestamp':
      return `if (!Number.isFinite(${v})) ${repair}`;
    case 'bytes':
      return `const copy${i} = copyBytes(${v}); if (copy${i} !== null) ${v} = copy${i}; else ${repair}`;
    case 'json':
      return `switch (typeof ${v}) {
    case 'string': case 'number': case 'boolean': case 'bigint': break;
    default: if (${v} !== null) ${repair}
  }`;
  }
}

// ── encode ──

/** Room for a field's fixed part; longer values ask for more themselves. */
function fixedBytes(field: FieldDescription): number {
  switch (field.kind) {
    case 'string':
      return SHORT_STRING_BYTES;
    case 'bool':
      return 2;
    case 'int32':
      return 5;
    case 'int64':
    case 'float64':
    case 'timestamp':
      return 9;
    case 'bytes':
    case 'bigint':
    case 'json':
      return 1;
  }
}

function encodeSource(fields: readonly FieldDescription[]): string {
  const room = fields.reduce((sum, field) => sum + fixedBytes(field), 0);
  return `return function encode(row, writer) {
  writer.ensure(${room});
  let b = writer.buffer, p = writer.position;
  ${fields.map((field, i) => encodeField(field, i, room)).join('\n  ')}
  writer.position = p;
};`;
}

/** `room`: bytes that a call to a helper must leave free behind what it writes, since `ensure` was asked only once. */
function encodeField(field: FieldDescription, i: number, room: number): string {
  const v = `v${i}`;
  const read = `const ${v} = row[${JSON.stringify(field.name)}];`;
  if (field.kind === 'string') {
    const write = `const n${i} = ${v}.length;
  let k${i} = 0;
  if (n${i} <= ${SHORT_CHARACTERS}) {
    const q = p + 1;
    for (; k${i} < n${i}; k${i}++) {
      const c = ${v}.charCodeAt(k${i});
      if (c > 255) break;
      b[q + k${i}] = c;
    }
  }
  if (k${i} === n${i}) { b[p] = n${i}; p += n${i} + 1; }
  else { writer.position = p; writeLongString(writer, ${v}, ${room}); b = writer.buffer; p = writer.position; }`;
    return field.nullable
      ? `${read}\n  if (${v} === null) b[p++] = ${STRING_NULL}; else { ${write} }`
      : `${read}\n  ${write}`;
  }
  const write = encodeFixed(field, v, room);
  return field.nullable
    ? `${read}\n  if (${v} === null) b[p++] = 0; else { b[p++] = 1; ${write} }`
    : `${read}\n  ${write}`;
}

function encodeFixed(field: FieldDescription, v: string, room: number): string {
  const call = (code: string): string =>
    `writer.position = p; ${code} b = writer.buffer; p = writer.position;`;
  switch (field.kind) {
    case 'bool':
      return `b[p++] = ${v} ? 1 : 0;`;
    case 'int32':
      return `b[p] = ${v}; b[p + 1] = ${v} >> 8; b[p + 2] = ${v} >> 16; b[p + 3] = ${v} >> 24; p += 4;`;
    case 'int64':
    case 'float64':
    case 'timestamp':
      // A safe integer is exact as a double, and costs no BigInt.
      return `writer.view.setFloat64(p, ${v}, true); p += 8;`;
    case 'bytes':
      return call(`writeBytes(writer, ${v}, ${room});`);
    case 'bigint':
      return call(`writeBigInt(writer, ${v}, ${room});`);
    case 'json':
      return call(`writeValue(writer, ${v}); writer.ensure(${room});`);
    case 'string':
      throw new IsobarError('INTERNAL', 'strings have an encoding of their own');
  }
}

// ── decode ──

function decodeSource(fields: readonly FieldDescription[]): string {
  const columns = fields
    .map((field, i) => (field.kind === 'string' ? `const column${i} = columns[${i}];\n` : ''))
    .join('');
  return `${columns}return function decode(reader) {
  const b = reader.buffer;
  let p = reader.position;
  ${fields.map((field, i) => decodeField(field, i)).join('\n  ')}
  reader.position = p;
  return { ${fields.map((field, i) => `${JSON.stringify(field.name)}: v${i}`).join(', ')} };
};`;
}

function decodeField(field: FieldDescription, i: number): string {
  const v = `v${i}`;
  if (field.kind === 'string') {
    return `let ${v};
  const n${i} = b[p];
  if (n${i} <= ${SHORT_CHARACTERS}) { ${v} = reader.shortString(column${i}, p + 1, n${i}); p += n${i} + 1; }
  else { reader.position = p; ${v} = readLongString(reader); p = reader.position; }`;
  }
  const read = decodeFixed(field, v);
  return field.nullable ? `let ${v} = null;\n  if (b[p++] === 1) { ${read} }` : `let ${v};\n  ${read}`;
}

function decodeFixed(field: FieldDescription, v: string): string {
  const call = (name: string): string => `reader.position = p; ${v} = ${name}(reader); p = reader.position;`;
  switch (field.kind) {
    case 'bool':
      return `${v} = b[p++] === 1;`;
    case 'int32':
      return `${v} = b[p] | b[p + 1] << 8 | b[p + 2] << 16 | b[p + 3] << 24; p += 4;`;
    case 'int64':
    case 'float64':
    case 'timestamp':
      return `${v} = reader.view.getFloat64(p, true); p += 8;`;
    case 'bytes':
      return call('readBytes');
    case 'bigint':
      return call('readBigInt');
    case 'json':
      return call('readValue');
    case 'string':
      throw new IsobarError('INTERNAL', 'strings have an encoding of their own');
  }
}
