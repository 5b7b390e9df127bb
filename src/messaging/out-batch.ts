/** Builds the outgoing DATA frames for one destination thread, row by row, in memory that is used again. */
import { IsobarError } from '../base/index.js';
import type { Row } from '../topology/index.js';
import { type ByteReader, ByteWriter } from './bytes.js';
import type { RowCodec } from './codec.js';
import {
  END_MARK,
  H_BLOB_BYTES,
  H_COUNT,
  H_ENDPOINT,
  H_KIND,
  H_SOURCE_GENERATION,
  H_SOURCE_THREAD,
  H_TARGET_GENERATION,
  H_TARGET_THREAD,
  HEADER_WORDS,
  ROW_WORDS,
} from './frame.js';

/** A batch whose blob has grown past this leaves without waiting for more rows. */
const FULL_BLOB_BYTES = 256 * 1024;
const INITIAL_BLOB_BYTES = 8192;

/** The words and the blob of one frame; `words` and `blob` are others after a row has made them grow. */
export class OutBatch {
  /** Rows added since the last `clear`. */
  rows = 0;
  /** Header and rows; the first `wordCount` words count. */
  words: Int32Array;
  readonly #capacityRows: number;
  readonly #maxRowBytes: number;
  readonly #writer = new ByteWriter(INITIAL_BLOB_BYTES);

  /** `maxRowBytes`: a larger row is refused with ROW_TOO_LARGE (default: no limit). */
  constructor(capacityRows: number, maxRowBytes = Number.POSITIVE_INFINITY) {
    this.#capacityRows = capacityRows;
    this.#maxRowBytes = maxRowBytes;
    this.words = new Int32Array(HEADER_WORDS + Math.min(capacityRows, 64) * ROW_WORDS);
  }

  get isFull(): boolean {
    return this.rows >= this.#capacityRows || this.#writer.position > FULL_BLOB_BYTES;
  }

  get wordCount(): number {
    return HEADER_WORDS + this.rows * ROW_WORDS;
  }

  get blob(): Buffer {
    return this.#writer.buffer;
  }

  get blobBytes(): number {
    return this.#writer.position;
  }

  /**
   * Adds a row (or, with codec or row null, an end mark) and returns its bytes in the blob. `several`: the anchors of a
   * row with several, 5 words each. When it throws (ROW_TOO_LARGE), the batch is as before. Takes rows past its capacity
   * too: the bound is the caller's to keep.
   */
  addRow(
    subscription: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    edgeHigh: number,
    edgeLow: number,
    several: Int32Array | null,
    codec: RowCodec | null,
    row: Row | null,
  ): number {
    const writer = this.#writer;
    const start = writer.position;
    const isRow = codec !== null && row !== null;
    if (several !== null) writeSeveral(writer, several);
    if (isRow) codec.encode(row, writer);
    const bytes = writer.position - start;
    if (bytes > this.#maxRowBytes) this.#refuse(start, bytes);
    let at = HEADER_WORDS + this.rows * ROW_WORDS;
    if (at + ROW_WORDS > this.words.length) this.#growWords();
    const words = this.words;
    // In the order of the R_ constants.
    words[at++] = isRow ? subscription : subscription | END_MARK;
    words[at++] = targetTask;
    words[at++] = sourceTask;
    words[at++] = rootTask;
    words[at++] = rootGeneration;
    words[at++] = rootSequence;
    words[at++] = edgeHigh;
    words[at++] = edgeLow;
    words[at] = bytes;
    this.rows++;
    return bytes;
  }

  /** Fills the header: `words` and `blob` are then a whole frame, until the next `addRow` or `clear`. */
  seal(
    kind: number,
    sourceThread: number,
    sourceGeneration: number,
    targetThread: number,
    targetGeneration: number,
    endpoint: number,
  ): void {
    writeHeader(
      this.words,
      kind,
      sourceThread,
      sourceGeneration,
      targetThread,
      targetGeneration,
      this.rows,
      this.#writer.position,
      endpoint,
    );
  }

  clear(): void {
    this.rows = 0;
    this.#writer.reset();
  }

  #growWords(): void {
    const words = new Int32Array(HEADER_WORDS + 2 * (this.words.length - HEADER_WORDS) + ROW_WORDS);
    words.set(this.words);
    this.words = words;
  }

  #refuse(start: number, bytes: number): never {
    this.#writer.position = start;
    throw new IsobarError('ROW_TOO_LARGE', `a row of ${bytes} bytes is too large`, {
      expected: `at most ${this.#maxRowBytes} bytes`,
      found: `${bytes} bytes`,
    });
  }
}

/** Fills the header words of a frame. */
export function writeHeader(
  words: Int32Array,
  kind: number,
  sourceThread: number,
  sourceGeneration: number,
  targetThread: number,
  targetGeneration: number,
  count: number,
  blobBytes: number,
  endpoint: number,
): void {
  words[H_KIND] = kind;
  words[H_SOURCE_THREAD] = sourceThread;
  words[H_SOURCE_GENERATION] = sourceGeneration;
  words[H_TARGET_THREAD] = targetThread;
  words[H_TARGET_GENERATION] = targetGeneration;
  words[H_COUNT] = count;
  words[H_BLOB_BYTES] = blobBytes;
  words[H_ENDPOINT] = endpoint;
}

function writeSeveral(writer: ByteWriter, several: Int32Array): void {
  writer.ensure(4 + 4 * several.length);
  const view = writer.view;
  let position = writer.position;
  view.setUint32(position, several.length, true);
  for (const word of several) view.setInt32((position += 4), word, true);
  writer.position = position + 4;
}

/**
 * Reads the anchors that stand before the fields of a row whose root task is -1. `end`: where the row ends in the
 * reader's memory. Throws PEER_PROTOCOL_ERROR for anchors that do not fit in there.
 */
export function readSeveral(reader: ByteReader, end: number): Int32Array {
  const view = reader.view;
  let position = reader.position;
  const length = position + 4 <= end ? view.getUint32(position, true) : Infinity;
  if (length > (end - position - 4) / 4) {
    throw new IsobarError('PEER_PROTOCOL_ERROR', 'a row is shorter than its anchors', {
      expected: `at most ${end - position} bytes of anchors`,
      found: `${length} words`,
    });
  }
  const several = new Int32Array(length);
  for (let i = 0; i < several.length; i++) several[i] = view.getInt32((position += 4), true);
  reader.position = position + 4;
  return several;
}
