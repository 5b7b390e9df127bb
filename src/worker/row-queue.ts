/**
 * A first-in first-out queue of rows with their anchors, as parallel arrays, so that a queued row costs no object of its
 * own. It grows by doubling; what bounds it is credit (rows from other threads) and gates (rows of this thread).
 */
import type { Row } from '../topology/index.js';

/** Places of a row's words. */
export const Q_SUBSCRIPTION = 0;
export const Q_TARGET_TASK = 1;
export const Q_SOURCE_TASK = 2;
export const Q_ROOT_TASK = 3;
export const Q_ROOT_GENERATION = 4;
export const Q_ROOT_SEQUENCE = 5;
export const Q_EDGE_HIGH = 6;
export const Q_EDGE_LOW = 7;
/** Link to which `cost` is granted again when the row is taken; -1: none. */
export const Q_ORIGIN = 8;
export const Q_COST = 9;
export const QUEUE_WORDS = 10;

export class RowQueue {
  #mask: number;
  #head = 0;
  size = 0;
  words: Int32Array;
  #rows: (Row | null)[];
  #several: (Int32Array | null)[];

  constructor(initialRows = 8) {
    this.#mask = initialRows - 1;
    this.words = new Int32Array(initialRows * QUEUE_WORDS);
    this.#rows = new Array<Row | null>(initialRows).fill(null);
    this.#several = new Array<Int32Array | null>(initialRows).fill(null);
  }

  push(
    row: Row | null,
    several: Int32Array | null,
    subscription: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    edgeHigh: number,
    edgeLow: number,
    origin: number,
    cost: number,
  ): void {
    if (this.size > this.#mask) this.#grow();
    const slot = (this.#head + this.size) & this.#mask;
    const at = slot * QUEUE_WORDS;
    const words = this.words;
    words[at] = subscription;
    words[at + 1] = targetTask;
    words[at + 2] = sourceTask;
    words[at + 3] = rootTask;
    words[at + 4] = rootGeneration;
    words[at + 5] = rootSequence;
    words[at + 6] = edgeHigh;
    words[at + 7] = edgeLow;
    words[at + 8] = origin;
    words[at + 9] = cost;
    this.#rows[slot] = row;
    if (several !== null) this.#several[slot] = several;
    this.size++;
  }

  /** Place of the head's words in `words`; valid until the next push. */
  get headWords(): number {
    return this.#head * QUEUE_WORDS;
  }

  get headRow(): Row | null {
    return this.#rows[this.#head]!;
  }

  get headSeveral(): Int32Array | null {
    return this.#several[this.#head]!;
  }

  /** Drops the head. */
  shift(): void {
    this.#rows[this.#head] = null;
    this.#several[this.#head] = null;
    this.#head = (this.#head + 1) & this.#mask;
    this.size--;
  }

  /** Puts the head at the end of another queue. */
  moveHeadTo(queue: RowQueue): void {
    const { words, headWords: at } = this;
    queue.push(
      this.headRow,
      this.headSeveral,
      words[at]!,
      words[at + 1]!,
      words[at + 2]!,
      words[at + 3]!,
      words[at + 4]!,
      words[at + 5]!,
      words[at + 6]!,
      words[at + 7]!,
      words[at + 8]!,
      words[at + 9]!,
    );
    this.shift();
  }

  /** Takes out the rows for one task, in order; so stay the others. */
  takeTask(task: number): RowQueue {
    const taken = new RowQueue();
    for (let left = this.size; left > 0; left--) {
      this.moveHeadTo(this.words[this.headWords + Q_TARGET_TASK] === task ? taken : this);
    }
    return taken;
  }

  /** Visits the words of each row, oldest first; `visit` returns true to stop. */
  some(visit: (words: Int32Array, at: number) => boolean): boolean {
    for (let i = 0; i < this.size; i++) {
      if (visit(this.words, ((this.#head + i) & this.#mask) * QUEUE_WORDS)) return true;
    }
    return false;
  }

  #grow(): void {
    const oldCapacity = this.#mask + 1;
    const capacity = oldCapacity * 2;
    const words = new Int32Array(capacity * QUEUE_WORDS);
    const rows = new Array<Row | null>(capacity).fill(null);
    const several = new Array<Int32Array | null>(capacity).fill(null);
    for (let i = 0; i < this.size; i++) {
      const from = (this.#head + i) & this.#mask;
      words.set(this.words.subarray(from * QUEUE_WORDS, (from + 1) * QUEUE_WORDS), i * QUEUE_WORDS);
      rows[i] = this.#rows[from]!;
      several[i] = this.#several[from]!;
    }
    this.words = words;
    this.#rows = rows;
    this.#several = several;
    this.#head = 0;
    this.#mask = capacity - 1;
  }
}
