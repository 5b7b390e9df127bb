/**
 * Builds the outgoing ACK, FAIL, CREDIT, PRESSURE and MOVE frames for one destination thread, merging entries on the way.
 *
 * `seal` closes the entries that make up the frame; entries added before the `clear` that follows it wait for the next
 * frame. So a frame may be partly in a ring while acks go on coming in.
 */
import { ACK_WORDS, CREDIT_WORDS, HEADER_WORDS, KIND_ACK, MOVE_WORDS } from './frame.js';
import { writeHeader } from './out-batch.js';

/** Two lists of rows: the sealed one, if any, and the one that takes entries. */
abstract class ControlBatch {
  readonly capacity: number;
  readonly #rowWords: number;
  #sealed: Int32Array | null = null;
  #sealedCount = 0;
  /** Takes entries; starts with room for a header. */
  protected open: Int32Array;
  protected openCount = 0;
  #spare: Int32Array | null = null;

  constructor(capacity: number, rowWords: number) {
    this.capacity = capacity;
    this.#rowWords = rowWords;
    this.open = new Int32Array(HEADER_WORDS + Math.max(1, Math.min(capacity, 64)) * rowWords);
  }

  /** Entries of the frame: the sealed ones if it is sealed. */
  get count(): number {
    return this.#sealed === null ? this.openCount : this.#sealedCount;
  }

  /** As many entries as planned wait to be sealed; more are taken all the same. */
  get isFull(): boolean {
    return this.openCount >= this.capacity;
  }

  /** Header and entries; the first `wordCount` words count. */
  get words(): Int32Array {
    return this.#sealed ?? this.open;
  }

  get wordCount(): number {
    return HEADER_WORDS + this.count * this.#rowWords;
  }

  /** Fills the header and closes the frame; sealing it again changes only the header. */
  seal(
    kind: number,
    sourceThread: number,
    sourceGeneration: number,
    targetThread: number,
    targetGeneration: number,
    endpoint: number,
  ): void {
    if (this.#sealed === null) {
      this.#sealed = this.open;
      this.#sealedCount = this.openCount;
      this.open = this.#spare ?? new Int32Array(this.#sealed.length);
      this.#spare = null;
      this.openCount = 0;
      this.onOpened();
    }
    writeHeader(
      this.#sealed,
      kind,
      sourceThread,
      sourceGeneration,
      targetThread,
      targetGeneration,
      this.#sealedCount,
      0,
      endpoint,
    );
  }

  /** Drops the sealed entries (all entries, if it is not sealed). */
  clear(): void {
    if (this.#sealed === null) {
      this.openCount = 0;
      this.onOpened();
    } else {
      this.#spare = this.#sealed;
      this.#sealed = null;
      this.#sealedCount = 0;
    }
  }

  /** A list without entries takes them from now on. */
  protected abstract onOpened(): void;

  /** Appends room for an entry and returns its place in `open`. */
  protected append(): number {
    const at = HEADER_WORDS + this.openCount * this.#rowWords;
    if (at + this.#rowWords > this.open.length) {
      const larger = new Int32Array(HEADER_WORDS + 2 * (this.open.length - HEADER_WORDS));
      larger.set(this.open);
      this.open = larger;
    }
    this.openCount++;
    return at;
  }
}

/** Slots of the index of recent roots; a power of two. */
const MERGE_SLOTS = 512;

/** Acks, where entries of one root merge by XOR; or, with KIND_FAIL, failures, which do not merge. */
export class AckBatch extends ControlBatch {
  readonly #merges: boolean;
  /**
   * Place in `open` of the entry last added, by hash of its root. An index that is out of date does no harm: the entry
   * there is compared before it is used.
   */
  readonly #index = new Int32Array(MERGE_SLOTS);

  constructor(capacity: number, kind: number = KIND_ACK) {
    super(capacity, ACK_WORDS);
    this.#merges = kind === KIND_ACK;
  }

  /** Acks: XOR halves for a root. Failures: `high` is the reason, `low` the failing task. */
  add(rootTask: number, rootGeneration: number, rootSequence: number, high: number, low: number): void {
    if (this.#merges) {
      const slot = (rootSequence ^ Math.imul(rootTask, 0x9e3779b1)) & (MERGE_SLOTS - 1);
      const known = this.#index[slot]!;
      const open = this.open;
      if (
        known !== 0 &&
        known < HEADER_WORDS + this.openCount * ACK_WORDS &&
        open[known + 2] === rootSequence &&
        open[known] === rootTask &&
        open[known + 1] === rootGeneration
      ) {
        open[known + 3]! ^= high;
        open[known + 4]! ^= low;
        return;
      }
      this.#index[slot] = HEADER_WORDS + this.openCount * ACK_WORDS;
    }
    let at = this.append();
    const open = this.open;
    open[at++] = rootTask;
    open[at++] = rootGeneration;
    open[at++] = rootSequence;
    open[at++] = high;
    open[at] = low;
  }

  /** Nothing to do: entries are compared before they are merged into, and only those below `openCount`. */
  protected override onOpened(): void {}
}

/** One entry a component: credit granted, merged by addition; or, with KIND_PRESSURE, states by cycle, of which the last counts. */
export class CreditBatch extends ControlBatch {
  /** Place in `open` of a component's entry; 0: it has none. */
  readonly #index: Int32Array;

  constructor(componentCount: number) {
    super(componentCount, CREDIT_WORDS);
    this.#index = new Int32Array(componentCount);
  }

  add(component: number, rows: number): void {
    const known = this.#index[component]!;
    if (known !== 0) {
      this.open[known + 1]! += rows;
      return;
    }
    const at = this.append();
    this.open[at] = component;
    this.open[at + 1] = rows;
    this.#index[component] = at;
  }

  set(cycle: number, state: number): void {
    const known = this.#index[cycle]!;
    if (known === 0) this.add(cycle, state);
    else this.open[known + 1] = state;
  }

  protected override onOpened(): void {
    this.#index.fill(0);
  }
}

/** Marks of planned moves, in the order in which they were added. */
export class MoveBatch extends ControlBatch {
  constructor() {
    super(16, MOVE_WORDS);
  }

  add(mark: number, task: number, id: number): void {
    const at = this.append();
    this.open[at] = mark;
    this.open[at + 1] = task;
    this.open[at + 2] = id;
  }

  protected override onOpened(): void {}
}
