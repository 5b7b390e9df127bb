/**
 * Frames between two hosts: words on their way to the host that counts them, and acks on their way back. Both are
 * batches in typed arrays that are filled in place.
 *
 *     word 0 kind, word 1 rows, word 2 bytes of text (rounded up to 4)
 *     words: rows of [sequence, edge high, edge low, length] (unacked: [length]), then the text, Latin-1
 *     acks:  rows of [sequence, high, low]
 */

export const WORDS_FRAME = 1;
export const ACKS_FRAME = 2;
export const HEADER_WORDS = 3;
export const ACKED_ROW_WORDS = 4;
export const UNACKED_ROW_WORDS = 1;
export const ACK_WORDS = 3;
const BATCH_ROWS = 1000;
const LONGEST_WORD = 10;
/** Words that one sentence may add after `hasRoom` was asked. */
const SENTENCE_WORDS = 6;

/** Where frames go. */
export interface FrameSink {
  /** Whether the frame was taken; false: the way is full, keep it. */
  send(
    kind: number,
    rows: number,
    words: Int32Array,
    wordCount: number,
    text: Buffer,
    textBytes: number,
  ): boolean;
}

export class WordBatch {
  readonly #words: Int32Array;
  readonly #text = Buffer.alloc((BATCH_ROWS + SENTENCE_WORDS) * LONGEST_WORD + 4);
  readonly #rowWords: number;
  #rows = 0;
  #textBytes = 0;

  constructor(acking: boolean) {
    this.#rowWords = acking ? ACKED_ROW_WORDS : UNACKED_ROW_WORDS;
    this.#words = new Int32Array((BATCH_ROWS + SENTENCE_WORDS) * this.#rowWords);
  }

  get isFull(): boolean {
    return this.#rows >= BATCH_ROWS;
  }

  add(word: string, sequence: number, high: number, low: number): void {
    const text = this.#text;
    const length = word.length;
    let at = this.#textBytes;
    for (let i = 0; i < length; i++) text[at++] = word.charCodeAt(i);
    this.#textBytes = at;
    const words = this.#words;
    let to = this.#rows++ * this.#rowWords;
    if (this.#rowWords === ACKED_ROW_WORDS) {
      words[to++] = sequence;
      words[to++] = high;
      words[to++] = low;
    }
    words[to] = length;
  }

  /** Whether the batch is empty now. */
  flush(sink: FrameSink): boolean {
    if (this.#rows === 0) return true;
    const textBytes = (this.#textBytes + 3) & ~3;
    if (!sink.send(WORDS_FRAME, this.#rows, this.#words, this.#rows * this.#rowWords, this.#text, textBytes))
      return false;
    this.#rows = 0;
    this.#textBytes = 0;
    return true;
  }
}

/** Acks for the other host's trees; those of one tree that follow each other are merged into one. */
export class AckBatch {
  readonly #words: Int32Array;
  readonly #noText = Buffer.alloc(0);
  #rows = 0;

  /** @param mostRows the acks that can be owed at once: pending trees of the other host times words */
  constructor(mostRows: number) {
    this.#words = new Int32Array(mostRows * ACK_WORDS);
  }

  get isFull(): boolean {
    return this.#rows >= BATCH_ROWS;
  }

  add(sequence: number, high: number, low: number): void {
    const words = this.#words;
    const at = this.#rows * ACK_WORDS;
    if (at > 0 && words[at - 3] === sequence) {
      words[at - 2]! ^= high;
      words[at - 1]! ^= low;
      return;
    }
    words[at] = sequence;
    words[at + 1] = high;
    words[at + 2] = low;
    this.#rows++;
  }

  /** Whether the batch is empty now. A long one leaves in several frames. */
  flush(sink: FrameSink): boolean {
    let from = 0;
    while (from < this.#rows) {
      const rows = Math.min(BATCH_ROWS, this.#rows - from);
      const part = from === 0 ? this.#words : this.#words.subarray(from * ACK_WORDS);
      if (!sink.send(ACKS_FRAME, rows, part, rows * ACK_WORDS, this.#noText, 0)) break;
      from += rows;
    }
    if (from > 0) this.#words.copyWithin(0, from * ACK_WORDS, this.#rows * ACK_WORDS);
    this.#rows -= from;
    return this.#rows === 0;
  }
}

/** Turns repeated short texts into the same string object, which is cheaper than making a new one each time. */
export class WordCache {
  readonly #slots: string[] = new Array<string>(1 << 14).fill('');

  get(bytes: Buffer, from: number, length: number): string {
    let hash = 0x811c9dc5;
    for (let i = 0; i < length; i++) hash = Math.imul(hash ^ bytes[from + i]!, 0x01000193);
    const slot = (hash ^ (hash >>> 15)) & (this.#slots.length - 1);
    const known = this.#slots[slot]!;
    if (known.length === length) {
      let i = 0;
      while (i < length && known.charCodeAt(i) === bytes[from + i]) i++;
      if (i === length) return known;
    }
    const made = bytes.toString('latin1', from, from + length);
    this.#slots[slot] = made;
    return made;
  }
}
