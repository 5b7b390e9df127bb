/** The way between two threads: a ring in each direction. */
import { HEADER_WORDS } from './frames.js';
import type { Host, Link } from './host.js';
import { Ring } from './ring.js';

const FRAMES_PER_POLL = 16;

export class RingLink implements Link {
  readonly #out: Ring;
  readonly #in: Ring;

  constructor(out: SharedArrayBuffer, into: SharedArrayBuffer) {
    this.#out = new Ring(out);
    this.#in = new Ring(into);
  }

  send(
    kind: number,
    rows: number,
    words: Int32Array,
    wordCount: number,
    text: Buffer,
    textBytes: number,
  ): boolean {
    const byteLength = (HEADER_WORDS + wordCount) * 4 + textBytes;
    const firstByte = this.#out.reserve(byteLength);
    if (firstByte < 0) return false;
    const to = this.#out.words;
    const firstWord = firstByte >> 2;
    to[firstWord] = kind;
    to[firstWord + 1] = rows;
    to[firstWord + 2] = textBytes;
    to.set(words.subarray(0, wordCount), firstWord + HEADER_WORDS);
    if (textBytes > 0) text.copy(this.#out.bytes, firstByte + (HEADER_WORDS + wordCount) * 4, 0, textBytes);
    this.#out.publish(byteLength);
    return true;
  }

  poll(host: Host): number {
    return this.#in.drain(
      (words, firstWord, bytes, firstByte) => host.receive(words, firstWord, bytes, firstByte),
      FRAMES_PER_POLL,
    );
  }

  /** Blocks the thread until the other one sends, for `longestMs` at most. */
  sleep(longestMs: number): void {
    this.#in.sleep(longestMs);
  }
}
