/**
 * Growing bytes to write to, bytes to read from, and the two things that every encoder shares: strings and big integers.
 *
 * A string is one byte (its length, if it has at most {@link SHORT_CHARACTERS} characters, all Latin-1) and its
 * characters, or a tag, its length in bytes (uint32) and the bytes in the encoding that the tag names. A single call into
 * C++ for a string costs 60 to 70 ns, so short ones are written by a loop and read through a cache.
 */

/** Up to this length a loop is quicker than a call into C++. */
export const SHORT_CHARACTERS = 24;
/** First bytes that are no length. */
export const STRING_NULL = 252;
const STRING_LATIN1 = 253;
const STRING_UTF8 = 254;
/** For strings with lone surrogates, which UTF-8 cannot carry. */
const STRING_UTF16 = 255;
/** A short string's largest size: its length and its characters. */
export const SHORT_STRING_BYTES = 1 + SHORT_CHARACTERS;

/** Buffers larger than this are given back instead of being kept for the next frame. */
export const KEPT_BUFFER_BYTES = 1024 * 1024;

/** The unchecked string methods of Node's Buffer, which its type declarations leave out. */
export interface StringBuffer extends Buffer {
  utf8Write(text: string, offset: number): number;
  ucs2Write(text: string, offset: number): number;
  latin1Slice(from: number, to: number): string;
  utf8Slice(from: number, to: number): string;
  ucs2Slice(from: number, to: number): string;
}

/** Bytes that grow by doubling. Writers put bytes at `position` after asking for room with `ensure`. */
export class ByteWriter {
  buffer: StringBuffer;
  view: DataView;
  position = 0;
  readonly #initialBytes: number;

  constructor(initialBytes = 4096) {
    this.#initialBytes = Math.max(64, initialBytes);
    this.buffer = allocate(this.#initialBytes);
    this.view = viewOf(this.buffer);
  }

  /** Back to the start; a buffer that has grown very large is replaced. */
  reset(): void {
    this.position = 0;
    if (this.buffer.length > KEPT_BUFFER_BYTES && this.#initialBytes < this.buffer.length) {
      this.buffer = allocate(this.#initialBytes);
      this.view = viewOf(this.buffer);
    }
  }

  /** Makes room for `bytes` from `position` on. `buffer` and `view` may be others afterwards. */
  ensure(bytes: number): void {
    const needed = this.position + bytes;
    if (needed > this.buffer.length) this.#grow(needed);
  }

  #grow(needed: number): void {
    const buffer = allocate(Math.max(needed, this.buffer.length * 2));
    this.buffer.copy(buffer, 0, 0, this.position);
    this.buffer = buffer;
    this.view = viewOf(buffer);
  }
}

/** How well the string cache serves one column; each string column of a codec has its own. */
export class StringColumn {
  cached = true;
  lookups = 0;
  hits = 0;
}

const WORD_BYTES = 4;
const CACHE_SLOTS = 16_384;
/** Lookups after which the hit rate is judged. */
const JUDGED_LOOKUPS = 1024;
/** Strings read without the cache before it gets another chance. */
const REST_STRINGS = 65_536;

/** Bytes to read from, with the cache of short strings that all streams of a thread share. */
export class ByteReader {
  buffer: StringBuffer;
  view: DataView;
  position = 0;
  readonly #cache = new Array<string>(CACHE_SLOTS).fill('');
  /** First and last four bytes of each cached string (up to three bytes, and 0, of shorter ones): most are told apart by them. */
  readonly #ends = new Int32Array(2 * CACHE_SLOTS);

  constructor() {
    this.buffer = allocate(0);
    this.view = viewOf(this.buffer);
  }

  reset(buffer: Buffer, position: number): void {
    if (buffer !== this.buffer) {
      // Every Buffer has these methods; only the declarations lack them.
      this.buffer = buffer as StringBuffer;
      this.view = viewOf(buffer);
    }
    this.position = position;
  }

  /**
   * The string of `length` Latin-1 bytes at `at`. A string that was seen before comes from the cache, without allocation
   * and with its hash known; a column where fewer than half do goes without (a miss costs 40 %).
   */
  shortString(column: StringColumn, at: number, length: number): string {
    const buffer = this.buffer;
    if (!column.cached) {
      if (++column.lookups === REST_STRINGS) {
        column.cached = true;
        column.lookups = 0;
      }
      return buffer.latin1Slice(at, at + length);
    }
    if (++column.lookups === JUDGED_LOOKUPS) {
      column.cached = column.hits >= JUDGED_LOOKUPS / 2;
      column.lookups = 0;
      column.hits = 0;
    }
    const view = this.view;
    let first = 0;
    let last = 0;
    if (length >= WORD_BYTES) {
      first = view.getInt32(at, true);
      last = view.getInt32(at + length - WORD_BYTES, true);
    } else {
      for (let i = 0; i < length; i++) first = (first << 8) | buffer[at + i]!;
    }
    let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(last ^ length, 0x85ebca6b);
    for (let i = WORD_BYTES; i < length - WORD_BYTES; i += WORD_BYTES)
      hash = Math.imul(hash ^ view.getInt32(at + i, true), 0xc2b2ae35);
    // The well-mixed bits of a product are the upper ones.
    const slot = (hash ^ (hash >>> 15)) & (CACHE_SLOTS - 1);
    const ends = this.#ends;
    const known = this.#cache[slot]!;
    if (known.length === length && ends[2 * slot] === first && ends[2 * slot + 1] === last) {
      let i = WORD_BYTES;
      while (i < length - WORD_BYTES && known.charCodeAt(i) === buffer[at + i]) i++;
      if (i >= length - WORD_BYTES) {
        column.hits++;
        return known;
      }
    }
    const text = buffer.latin1Slice(at, at + length);
    this.#cache[slot] = text;
    ends[2 * slot] = first;
    ends[2 * slot + 1] = last;
    return text;
  }
}

/** Writes any string at `writer.position` and leaves room for `reserve` more bytes behind it. */
export function writeString(writer: ByteWriter, text: string, reserve: number): void {
  const length = text.length;
  if (length <= SHORT_CHARACTERS) {
    writer.ensure(SHORT_STRING_BYTES + reserve);
    const { buffer, position } = writer;
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 255) break;
      buffer[position + 1 + i] = code;
    }
    if (i === length) {
      buffer[position] = length;
      writer.position = position + 1 + length;
      return;
    }
  }
  writeLongString(writer, text, reserve);
}

/** Writes a string that is long or not Latin-1. */
export function writeLongString(writer: ByteWriter, text: string, reserve: number): void {
  const length = text.length;
  // Three bytes a character always suffice; exact room only where the difference is worth another pass.
  const room = length <= 65_536 ? 3 * length : Buffer.byteLength(text);
  writer.ensure(5 + room + reserve);
  const position = writer.position;
  let bytes = writer.buffer.utf8Write(text, position + 5);
  let tag = STRING_UTF8;
  if (bytes === length) {
    // One byte a character: the bytes are ASCII, and Latin-1 is the quickest to read.
    tag = STRING_LATIN1;
  } else if (!isWellFormed(text)) {
    tag = STRING_UTF16;
    writer.ensure(5 + 2 * length + reserve);
    bytes = writer.buffer.ucs2Write(text, position + 5);
  }
  writer.buffer[position] = tag;
  writer.view.setUint32(position + 1, bytes, true);
  writer.position = position + 5 + bytes;
}

/** Reads any string at `reader.position`; null where {@link STRING_NULL} stands. */
export function readString(reader: ByteReader, column: StringColumn): string | null {
  const position = reader.position;
  const tag = reader.buffer[position]!;
  if (tag <= SHORT_CHARACTERS) {
    reader.position = position + 1 + tag;
    return reader.shortString(column, position + 1, tag);
  }
  return readLongString(reader);
}

/** Reads a string that does not start with its length. */
export function readLongString(reader: ByteReader): string | null {
  const { buffer, view, position } = reader;
  const tag = buffer[position]!;
  if (tag === STRING_NULL) {
    reader.position = position + 1;
    return null;
  }
  const from = position + 5;
  const to = from + view.getUint32(position + 1, true);
  reader.position = to;
  if (tag === STRING_LATIN1) return buffer.latin1Slice(from, to);
  if (tag === STRING_UTF8) return buffer.utf8Slice(from, to);
  return buffer.ucs2Slice(from, to);
}

/** Writes bytes with their length. */
export function writeBytes(writer: ByteWriter, bytes: Uint8Array, reserve: number): void {
  writer.ensure(4 + bytes.length + reserve);
  writer.view.setUint32(writer.position, bytes.length, true);
  writer.buffer.set(bytes, writer.position + 4);
  writer.position += 4 + bytes.length;
}

/** Reads bytes into memory of their own: what is read must outlive the frame. */
export function readBytes(reader: ByteReader): Uint8Array {
  const from = reader.position + 4;
  const to = from + reader.view.getUint32(reader.position, true);
  // Before memory is taken for what is not there.
  if (to > reader.buffer.length) throw new RangeError(`${to - from} bytes are not there`);
  reader.position = to;
  const bytes = new Uint8Array(to - from);
  bytes.set(reader.buffer.subarray(from, to));
  return bytes;
}

const BIGINT_SMALL = 0;
const BIGINT_POSITIVE = 1;
const BIGINT_NEGATIVE = 2;

/** Writes a big integer: eight bytes where they suffice, hexadecimal digits otherwise. */
export function writeBigInt(writer: ByteWriter, value: bigint, reserve: number): void {
  if (BigInt.asIntN(64, value) === value) {
    writer.ensure(9 + reserve);
    writer.buffer[writer.position] = BIGINT_SMALL;
    writer.view.setBigInt64(writer.position + 1, value, true);
    writer.position += 9;
    return;
  }
  writer.ensure(1);
  writer.buffer[writer.position++] = value < 0n ? BIGINT_NEGATIVE : BIGINT_POSITIVE;
  writeBytes(writer, Buffer.from((value < 0n ? -value : value).toString(16), 'latin1'), reserve);
}

export function readBigInt(reader: ByteReader): bigint {
  const sign = reader.buffer[reader.position++]!;
  if (sign === BIGINT_SMALL) {
    const value = reader.view.getBigInt64(reader.position, true);
    reader.position += 8;
    return value;
  }
  const from = reader.position + 4;
  const to = from + reader.view.getUint32(reader.position, true);
  reader.position = to;
  const magnitude = BigInt(`0x${reader.buffer.latin1Slice(from, to)}`);
  return sign === BIGINT_NEGATIVE ? -magnitude : magnitude;
}

function isWellFormed(text: string): boolean {
  // In V8 since Node 20; the ES2023 declarations do not know it yet.
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

function allocate(bytes: number): StringBuffer {
  // Every Buffer has the unchecked string methods.
  return Buffer.allocUnsafeSlow(bytes) as StringBuffer;
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
