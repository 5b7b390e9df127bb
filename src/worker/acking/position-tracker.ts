/**
 * Tells up to which row of one spout task all is done, so that a source goes on reading there after a restart.
 *
 * Rows are kept in chunks of 32: a mask of done rows and the positions that may still be asked for. A chunk whose rows
 * are all done is dropped, and leaves its last position with the next chunk that is still there. So memory follows the
 * rows pending: one row held back keeps one chunk, however many are read and done after it.
 *
 * Invariants
 * P1  Live chunks are linked in the order of reading; each has a row pending, but for the newest, which may have none.
 * P2  Between two linked chunks all rows are done, and `before` of the later one is the last of them (if there are any).
 * P3  A chunk keeps the positions of rows that are pending, and of done rows whose successor is not done or is in the
 *     next chunk.
 */
import { IsobarError } from '../../base/index.js';

/** A row, and that all is done up to it. */
export interface CommittedPosition {
  readonly readIndex: number;
  readonly position: unknown;
}

const CHUNK_ROWS = 32;
const ALL_DONE = -1;
const CACHE_SLOTS = 256;
const MOST_SPARE_CHUNKS = 64;

class Chunk {
  /** Read index of the first row, divided by 32. */
  ordinal = -1;
  /** A bit per row; set: done. */
  done = 0;
  readonly positions: unknown[] = new Array<unknown>(CHUNK_ROWS).fill(undefined);
  previous: Chunk | undefined = undefined;
  next: Chunk | undefined = undefined;
  before: CommittedPosition | undefined = undefined;
}

export class PositionTracker {
  readonly #chunks = new Map<number, Chunk>();
  /** Chunks by the low bits of their ordinal, in front of the map. */
  readonly #cache = new Array<Chunk | undefined>(CACHE_SLOTS).fill(undefined);
  readonly #spare: Chunk[] = [];
  #head: Chunk | undefined = undefined;
  #tail: Chunk | undefined = undefined;
  #added = 0;
  #pendingRows = 0;

  /** A row with a position was read. Returns its read index: 0, 1, 2, … */
  add(position: unknown): number {
    const readIndex = this.#added++;
    const place = readIndex & (CHUNK_ROWS - 1);
    if (place === 0) this.#append(readIndex / CHUNK_ROWS);
    this.#tail!.positions[place] = position;
    this.#pendingRows++;
    return readIndex;
  }

  /** All is done with that row. Rows may be done in any order; a second time changes nothing. */
  done(readIndex: number): void {
    const ordinal = Math.floor(readIndex / CHUNK_ROWS);
    const cached = this.#cache[ordinal & (CACHE_SLOTS - 1)];
    const chunk = cached?.ordinal === ordinal ? cached : this.#find(readIndex, ordinal);
    if (chunk === undefined) return;
    const place = readIndex & (CHUNK_ROWS - 1);
    const bit = 1 << place;
    if ((chunk.done & bit) !== 0) return;
    if (readIndex >= this.#added) throw notRead(readIndex);
    const done = chunk.done | bit;
    chunk.done = done;
    this.#pendingRows--;
    const { positions } = chunk;
    if (place < CHUNK_ROWS - 1 && (done & (bit << 1)) !== 0) positions[place] = undefined;
    if (place > 0 && (done & (bit >>> 1)) !== 0) positions[place - 1] = undefined;
    if (done === ALL_DONE && chunk !== this.#tail) this.#drop(chunk);
  }

  /** The newest row such that it and every earlier one is done; undefined if there is none since the start. */
  get committed(): CommittedPosition | undefined {
    const head = this.#head;
    if (head === undefined) return undefined;
    // Done rows at the chunk's start: the number of its trailing ones.
    const pending = ~head.done;
    const doneRows = pending === 0 ? CHUNK_ROWS : 31 - Math.clz32(pending & -pending);
    if (doneRows === 0) return head.before;
    return { readIndex: head.ordinal * CHUNK_ROWS + doneRows - 1, position: head.positions[doneRows - 1] };
  }

  /** Rows that were read and are not done. */
  get pendingRows(): number {
    return this.#pendingRows;
  }

  /** How many positions are kept, and how many places for one: what memory there is in use; for tests. */
  get retained(): { readonly positions: number; readonly places: number } {
    let positions = 0;
    for (let chunk = this.#head; chunk !== undefined; chunk = chunk.next) {
      positions += chunk.positions.filter((position) => position !== undefined).length;
      if (chunk.before !== undefined) positions++;
    }
    return { positions, places: (this.#chunks.size + this.#spare.length) * CHUNK_ROWS + CACHE_SLOTS };
  }

  #append(ordinal: number): void {
    const chunk = this.#spare.pop() ?? new Chunk();
    const tail = this.#tail;
    chunk.ordinal = ordinal;
    chunk.done = 0;
    chunk.before = undefined;
    chunk.previous = tail;
    chunk.next = undefined;
    this.#tail = chunk;
    if (tail === undefined) this.#head = chunk;
    else tail.next = chunk;
    this.#chunks.set(ordinal, chunk);
    this.#cache[ordinal & (CACHE_SLOTS - 1)] = chunk;
    if (tail?.done === ALL_DONE) this.#drop(tail);
  }

  /** Drops a chunk that is all done and not the newest. */
  #drop(chunk: Chunk): void {
    const next = chunk.next!;
    const last = CHUNK_ROWS - 1;
    // Chunks between this one and the next may have been dropped earlier: what they left is newer than this chunk.
    next.before ??= { readIndex: chunk.ordinal * CHUNK_ROWS + last, position: chunk.positions[last] };
    next.previous = chunk.previous;
    if (chunk.previous === undefined) this.#head = next;
    else chunk.previous.next = next;
    this.#chunks.delete(chunk.ordinal);
    const slot = chunk.ordinal & (CACHE_SLOTS - 1);
    if (this.#cache[slot] === chunk) this.#cache[slot] = undefined;
    chunk.ordinal = -1;
    chunk.positions[last] = undefined;
    chunk.before = undefined;
    chunk.previous = undefined;
    chunk.next = undefined;
    if (this.#spare.length < MOST_SPARE_CHUNKS) this.#spare.push(chunk);
  }

  /** A chunk that is not in the cache; undefined if its rows are all done and it was dropped. */
  #find(readIndex: number, ordinal: number): Chunk | undefined {
    if (!(readIndex >= 0 && readIndex < this.#added)) throw notRead(readIndex);
    const chunk = this.#chunks.get(ordinal);
    if (chunk !== undefined) this.#cache[ordinal & (CACHE_SLOTS - 1)] = chunk;
    return chunk;
  }
}

function notRead(readIndex: number): IsobarError {
  return new IsobarError('INTERNAL', `a row was reported done that was never read (read index ${readIndex})`);
}
