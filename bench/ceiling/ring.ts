/**
 * A ring of frames in shared memory with one writer and one reader, and the sleep of either. Frames are multiples of
 * four bytes; a frame never wraps, the writer skips the rest of the ring instead.
 *
 * Lost wake-ups are excluded by order: the reader raises its flag and then looks again, the writer publishes and then
 * looks at the flag.
 */

const CONTROL_WORDS = 64;
/** Places in the control words, on cache lines of their own. */
const TAIL = 0;
const HEAD = 16;
const BELL = 32;
const ASLEEP = 33;
const POSITION_MASK = 0x7fff_ffff;
const SKIP = -1;

export type OnFrame = (words: Int32Array, firstWord: number, bytes: Buffer, firstByte: number) => void;

/** Shared memory of a ring; `capacityBytes` is a power of two. */
export function allocateRing(capacityBytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(CONTROL_WORDS * 4 + capacityBytes);
}

export class Ring {
  readonly words: Int32Array;
  readonly bytes: Buffer;
  readonly #control: Int32Array;
  readonly #capacity: number;
  readonly #mask: number;
  #tail = 0;
  #head = 0;
  #seenHead = 0;
  #reservedAt = 0;

  constructor(memory: SharedArrayBuffer) {
    const start = CONTROL_WORDS * 4;
    this.#capacity = memory.byteLength - start;
    this.#mask = this.#capacity - 1;
    this.#control = new Int32Array(memory, 0, CONTROL_WORDS);
    this.words = new Int32Array(memory, start, this.#capacity >> 2);
    this.bytes = Buffer.from(memory, start, this.#capacity);
  }

  /** Room for a frame of `byteLength` (a multiple of 4): the byte at which it starts, or -1 when the ring is full. */
  reserve(byteLength: number): number {
    const needed = byteLength + 4;
    const offset = this.#tail & this.#mask;
    const toEnd = this.#capacity - offset;
    const skipped = toEnd < needed ? toEnd : 0;
    if (this.#free() < needed + skipped) {
      this.#seenHead = Atomics.load(this.#control, HEAD);
      if (this.#free() < needed + skipped) return -1;
    }
    if (skipped > 0) {
      this.words[offset >> 2] = SKIP;
      this.#tail = (this.#tail + skipped) & POSITION_MASK;
    }
    this.#reservedAt = this.#tail & this.#mask;
    return this.#reservedAt + 4;
  }

  /** Hands the reserved frame to the reader, and wakes it. */
  publish(byteLength: number): void {
    this.words[this.#reservedAt >> 2] = byteLength;
    this.#tail = (this.#tail + byteLength + 4) & POSITION_MASK;
    Atomics.store(this.#control, TAIL, this.#tail);
    if (Atomics.load(this.#control, ASLEEP) === 1 && Atomics.exchange(this.#control, ASLEEP, 0) === 1) {
      Atomics.add(this.#control, BELL, 1);
      Atomics.notify(this.#control, BELL, 1);
    }
  }

  /** Reads up to `most` frames. */
  drain(onFrame: OnFrame, most: number): number {
    const tail = Atomics.load(this.#control, TAIL);
    let frames = 0;
    while (this.#head !== tail && frames < most) {
      const offset = this.#head & this.#mask;
      const byteLength = this.words[offset >> 2]!;
      if (byteLength === SKIP) {
        this.#head = (this.#head + this.#capacity - offset) & POSITION_MASK;
        continue;
      }
      onFrame(this.words, (offset >> 2) + 1, this.bytes, offset + 4);
      this.#head = (this.#head + byteLength + 4) & POSITION_MASK;
      frames++;
    }
    if (frames > 0) Atomics.store(this.#control, HEAD, this.#head);
    return frames;
  }

  /** Sleeps until a frame comes, for `longestMs` at most. Blocks the thread. */
  sleep(longestMs: number): void {
    const bell = Atomics.load(this.#control, BELL);
    Atomics.store(this.#control, ASLEEP, 1);
    if (this.#head === Atomics.load(this.#control, TAIL)) Atomics.wait(this.#control, BELL, bell, longestMs);
    Atomics.store(this.#control, ASLEEP, 0);
  }

  #free(): number {
    return this.#capacity - ((this.#tail - this.#seenHead) & POSITION_MASK);
  }
}
