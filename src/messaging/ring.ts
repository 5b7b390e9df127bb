/**
 * A queue of frames in shared memory from exactly one thread to exactly one other.
 *
 * Layout: 64 header words, then the data, a power of two long. A record is one word (length in bytes and flags) and its
 * bytes, padded to 4; it never wraps: where it does not fit before the end, a skip word sends the reader to the start.
 * Frames above half the data go in fragments of whatever space there is.
 *
 * Invariants
 * G1  Only the producer moves `tail`, only the consumer `head`; both are byte counts modulo 2^31.
 * G2  Bytes are written before `tail` is published, and read before `head` is.
 * G3  A record with FIRST set starts a frame: what the reader has gathered of an unfinished one is dropped.
 */
import type { Doorbell } from './doorbell.js';
import { frameBytes } from './frame.js';

/** Places in the header, a cache line apart. */
const TAIL = 0;
const HEAD = 16;
/** 1: the producer found too little space and waits to be rung. */
const WAITING = 32;
const RING_HEADER_BYTES = 256;

const SKIP = 0x80000000 | 0;
const MORE = 0x40000000;
const FIRST = 0x20000000;
const LENGTH_MASK = 0x1fffffff;
const POSITION_MASK = 0x7fffffff;

const MIN_CAPACITY_BYTES = 4096;
const MAX_CAPACITY_BYTES = 1 << 28;
/** A fragment that does not end its frame has at least this many bytes, so the first one holds the frame's header. */
const MIN_FRAGMENT_BYTES = 256;

/** Shared memory for a ring of at least `capacityBytes` (a power of two from 4 KB to 256 MB is taken). */
export function allocateRing(capacityBytes: number): SharedArrayBuffer {
  let capacity = MIN_CAPACITY_BYTES;
  while (capacity < capacityBytes && capacity < MAX_CAPACITY_BYTES) capacity *= 2;
  return new SharedArrayBuffer(RING_HEADER_BYTES + capacity);
}

const NO_WORDS = new Int32Array(0);

/** The producer's end. */
export class RingWriter {
  readonly #header: Int32Array;
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #capacity: number;
  readonly #doorbell: Doorbell;
  #tail: number;
  #seenHead: number;
  /** Bytes of the unfinished frame that are in the ring already. */
  #sent = 0;

  constructor(buffer: SharedArrayBuffer, doorbell: Doorbell) {
    this.#header = new Int32Array(buffer, 0, RING_HEADER_BYTES / 4);
    this.#capacity = buffer.byteLength - RING_HEADER_BYTES;
    this.#words = new Int32Array(buffer, RING_HEADER_BYTES);
    this.#bytes = Buffer.from(buffer, RING_HEADER_BYTES, this.#capacity);
    this.#doorbell = doorbell;
    this.#tail = Atomics.load(this.#header, TAIL);
    this.#seenHead = Atomics.load(this.#header, HEAD);
  }

  /**
   * Writes a frame given as words and bytes. true: all of it is in the ring. false: there is too little space now; call
   * again with the same frame, of which a part may be in the ring. After false, the consumer rings this thread (if it was
   * given its doorbell) when it has made space.
   */
  tryWrite(words: Int32Array, wordCount: number, blob: Buffer | null, blobBytes: number): boolean {
    const length = 4 * wordCount + blobBytes;
    if (this.#sent === 0 && length + 4 <= this.#capacity / 2)
      return this.#writeWhole(words, wordCount, blob, blobBytes);
    return this.#writeFragments(words, wordCount, blob, length);
  }

  /** The same for a frame that is contiguous already. */
  tryWriteBytes(frame: Buffer): boolean {
    return this.tryWrite(NO_WORDS, 0, frame, frame.length);
  }

  /** A frame is partly in the ring: the next one written must be the same. */
  get isUnfinished(): boolean {
    return this.#sent > 0;
  }

  /** Gives the unfinished frame up; the reader drops its part when the next frame comes. */
  abandonFrame(): void {
    this.#sent = 0;
  }

  #free(): number {
    return this.#capacity - ((this.#tail - this.#seenHead) & POSITION_MASK);
  }

  /** Whether `bytes` are free; if not, the producer is marked as waiting. */
  #hasFree(bytes: number): boolean {
    if (this.#free() >= bytes) return true;
    this.#seenHead = Atomics.load(this.#header, HEAD);
    if (this.#free() >= bytes) return true;
    // Mark, then look again: the consumer moves the head first and looks at the mark second.
    Atomics.store(this.#header, WAITING, 1);
    this.#seenHead = Atomics.load(this.#header, HEAD);
    return this.#free() >= bytes;
  }

  #writeWhole(words: Int32Array, wordCount: number, blob: Buffer | null, blobBytes: number): boolean {
    const length = 4 * wordCount + blobBytes;
    const record = 4 + ((length + 3) & ~3);
    let offset = this.#tail & (this.#capacity - 1);
    const toEnd = this.#capacity - offset;
    if (!this.#hasFree(toEnd < record ? toEnd + record : record)) return false;
    if (toEnd < record) {
      this.#skip(offset, toEnd);
      offset = 0;
    }
    this.#words[offset >> 2] = length | FIRST;
    this.#copy(words, wordCount, blob, 0, length, offset + 4);
    this.#publish(record);
    return true;
  }

  #writeFragments(words: Int32Array, wordCount: number, blob: Buffer | null, length: number): boolean {
    while (this.#sent < length) {
      const left = length - this.#sent;
      let offset = this.#tail & (this.#capacity - 1);
      let toEnd = this.#capacity - offset;
      // Not worth a fragment unless it is the last one, or fills a good part of the ring.
      const wanted = Math.min(4 + ((left + 3) & ~3), this.#capacity / 4);
      const skipped = toEnd < Math.min(wanted, 4 + MIN_FRAGMENT_BYTES) ? toEnd : 0;
      if (!this.#hasFree(skipped + wanted)) return false;
      if (skipped > 0) {
        this.#skip(offset, toEnd);
        offset = 0;
        toEnd = this.#capacity;
      }
      const room = Math.min(this.#free(), toEnd) - 4;
      // All but the last are whole words long.
      const size = left <= room ? left : room & ~3;
      const more = this.#sent + size < length ? MORE : 0;
      this.#words[offset >> 2] = size | more | (this.#sent === 0 ? FIRST : 0);
      this.#copy(words, wordCount, blob, this.#sent, size, offset + 4);
      this.#sent += size;
      this.#publish(4 + ((size + 3) & ~3));
    }
    this.#sent = 0;
    return true;
  }

  /** Copies `size` bytes of the frame, from its byte `from` on, to `target` in the ring. */
  #copy(
    words: Int32Array,
    wordCount: number,
    blob: Buffer | null,
    from: number,
    size: number,
    target: number,
  ): void {
    let done = 0;
    if (from < 4 * wordCount) {
      const last = Math.min(wordCount, (from + size) >> 2);
      this.#words.set(words.subarray(from >> 2, last), target >> 2);
      done = 4 * last - from;
    }
    if (done < size && blob !== null) {
      const start = from + done - 4 * wordCount;
      blob.copy(this.#bytes, target + done, start, start + size - done);
    }
  }

  #skip(offset: number, toEnd: number): void {
    this.#words[offset >> 2] = SKIP;
    this.#tail = (this.#tail + toEnd) & POSITION_MASK;
  }

  #publish(record: number): void {
    this.#tail = (this.#tail + record) & POSITION_MASK;
    Atomics.store(this.#header, TAIL, this.#tail);
    this.#doorbell.ring();
  }
}

/** `words[wordStart]` is the frame's first word, `bytes[byteStart]` its first byte; valid during the call only. */
export type OnFrame = (
  words: Int32Array,
  wordStart: number,
  bytes: Buffer,
  byteStart: number,
  byteLength: number,
) => void;

/** The consumer's end. */
export class RingReader {
  readonly #header: Int32Array;
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #capacity: number;
  readonly #producer: Doorbell | null;
  #head: number;
  #publishedHead: number;
  #seenTail: number;
  #gathered: Buffer | null = null;
  #gatheredBytes = 0;

  /** `producerDoorbell`: rung when a producer that waits for space gets some. */
  constructor(buffer: SharedArrayBuffer, producerDoorbell: Doorbell | null = null) {
    this.#header = new Int32Array(buffer, 0, RING_HEADER_BYTES / 4);
    this.#capacity = buffer.byteLength - RING_HEADER_BYTES;
    this.#words = new Int32Array(buffer, RING_HEADER_BYTES);
    this.#bytes = Buffer.from(buffer, RING_HEADER_BYTES, this.#capacity);
    this.#producer = producerDoorbell;
    this.#head = Atomics.load(this.#header, HEAD);
    this.#publishedHead = this.#head;
    this.#seenTail = this.#head;
  }

  get isEmpty(): boolean {
    return this.#head === Atomics.load(this.#header, TAIL);
  }

  /** Calls `onFrame` for up to `maxFrames` whole frames and returns how many; a frame whose `onFrame` throws is consumed. */
  drain(onFrame: OnFrame, maxFrames: number): number {
    let frames = 0;
    try {
      while (frames < maxFrames && this.#hasRecord()) {
        if (this.#readRecord(onFrame)) frames++;
        // A long drain must not starve the producer of space.
        if (((this.#head - this.#publishedHead) & POSITION_MASK) > this.#capacity / 4) this.#publish();
      }
    } finally {
      if (this.#head !== this.#publishedHead) this.#publish();
    }
    return frames;
  }

  #hasRecord(): boolean {
    if (this.#head !== this.#seenTail) return true;
    this.#seenTail = Atomics.load(this.#header, TAIL);
    return this.#head !== this.#seenTail;
  }

  /** Returns whether a frame was complete with this record. */
  #readRecord(onFrame: OnFrame): boolean {
    const offset = this.#head & (this.#capacity - 1);
    const record = this.#words[offset >> 2]!;
    if (record === SKIP) {
      this.#head = (this.#head + this.#capacity - offset) & POSITION_MASK;
      return false;
    }
    const length = record & LENGTH_MASK;
    // Local only: the producer does not write here before the head is published, after the call.
    this.#head = (this.#head + 4 + ((length + 3) & ~3)) & POSITION_MASK;
    const start = offset + 4;
    if ((record & FIRST) !== 0) {
      this.#gathered = null;
      if ((record & MORE) === 0) {
        onFrame(this.#words, start >> 2, this.#bytes, start, length);
        return true;
      }
      this.#gathered = Buffer.allocUnsafeSlow((frameBytes(this.#words, start >> 2) + 3) & ~3);
      this.#gatheredBytes = 0;
    }
    const gathered = this.#gathered!;
    this.#bytes.copy(gathered, this.#gatheredBytes, start, start + length);
    this.#gatheredBytes += length;
    if ((record & MORE) !== 0) return false;
    this.#gathered = null;
    onFrame(new Int32Array(gathered.buffer, 0, gathered.length >> 2), 0, gathered, 0, this.#gatheredBytes);
    return true;
  }

  #publish(): void {
    this.#publishedHead = this.#head;
    Atomics.store(this.#header, HEAD, this.#head);
    if (Atomics.load(this.#header, WAITING) === 1) {
      Atomics.store(this.#header, WAITING, 0);
      this.#producer?.ring();
    }
  }
}
