/**
 * The XOR ledger of one root task: knows when every row that a tree consists of has been acked (Storm's acker), for trees
 * that are all rooted at this task. Called by the task's own thread only; knows nothing of rows, links or clocks.
 *
 * A tree is a sequence number; its slot is `sequence & mask` of one Int32Array with four words a slot (sequence, XOR
 * high, XOR low, state), so that an ack touches one cache line and no hash table. A slot whose tree is slow is not waited
 * for: its sequence numbers are skipped while it is pending.
 *
 * Invariants
 * L1  A busy slot holds the sequence number of its tree; an ack that names another one is late or unknown and dropped.
 * L2  A tree completes exactly once, when it is committed and its XOR is zero, and never before it is committed.
 * L3  Two pending trees never share a sequence number, even after 2³² of them: a number is given out only if its slot
 *     is free, and growing keeps different slots different.
 * L4  `marked` and `#unmoved` count the pending trees whose state says so.
 * L5  A tree that is not committed is still in its emitter's hands: it can be marked, and is never taken.
 */

/** A tree that was taken out of the ledger. */
export interface TakenTree<Item> {
  readonly sequence: number;
  readonly item: Item;
}

export interface PendingTree<Item> extends TakenTree<Item> {
  /** Milliseconds, as given to `reserve`. */
  readonly openedMs: number;
}

export interface TreeLedgerOptions<Item> {
  /** Rounded up to a power of two; default 1,024. */
  readonly initialSlots?: number;
  /** Pending trees at which `isFull` says so; `reserve` itself never refuses. */
  readonly pendingLimit: number;
  /** The first sequence number to give out; default 0. */
  readonly firstSequence?: number;
  /** Called when a tree is complete, after it was removed; may call the ledger. */
  readonly onComplete: (item: Item, sequence: number, openedMs: number) => void;
}

/** Words of a slot. */
const SEQUENCE = 0;
const HIGH = 1;
const LOW = 2;
const STATE = 3;

/** Bits of a state; 0: the slot is free. */
const BUSY = 1;
const COMMITTED = 2;
const MARKED = 4;
/** Has made progress since it was marked. */
const MOVED = 8;
/** Has made progress since `takeQuiet` looked last. */
const STIRRED = 16;
/** Committed and not marked: an ack has nothing to note. */
const OPEN = BUSY | COMMITTED;

/** `takeQuiet` looks at all trees at most this many times per quiet time. */
const LOOKS_PER_QUIET_TIME = 8;

export class TreeLedger<Item> {
  readonly #pendingLimit: number;
  readonly #onComplete: (item: Item, sequence: number, openedMs: number) => void;
  #mask: number;
  #words: Int32Array;
  #items: (Item | undefined)[];
  #openedMs: Float64Array;
  /** Times of progress of marked trees; empty until something is marked for the first time. */
  #progressMs = new Float64Array(0);
  #next: number;
  #pending = 0;
  #marked = 0;
  #unmoved = 0;
  #oldestSequence = 0;
  #oldestOpenedMs = NaN;
  #nextLookMs = -Infinity;
  #lookQuietMs = -1;

  constructor(options: TreeLedgerOptions<Item>) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(1, options.initialSlots ?? 1024)));
    this.#pendingLimit = options.pendingLimit;
    this.#onComplete = options.onComplete;
    this.#mask = slots - 1;
    this.#words = new Int32Array(slots * 4);
    this.#items = new Array<Item | undefined>(slots).fill(undefined);
    this.#openedMs = new Float64Array(slots);
    this.#next = (options.firstSequence ?? 0) | 0;
  }

  /** Trees that are neither complete nor removed. */
  get pending(): number {
    return this.#pending;
  }

  /** As many trees are pending as may be. */
  get isFull(): boolean {
    return this.#pending >= this.#pendingLimit;
  }

  /** Pending trees that are marked. */
  get marked(): number {
    return this.#marked;
  }

  /** Slots, busy or free; for tests of growth. */
  get slots(): number {
    return this.#mask + 1;
  }

  /** Opens a tree and returns its sequence number (int32, wraps around). It cannot complete before `commit`. */
  reserve(item: Item, nowMs: number): number {
    let sequence = this.#next;
    if (this.#words[((sequence & this.#mask) << 2) + STATE] !== 0) sequence = this.#nextFree();
    const slot = sequence & this.#mask;
    const base = slot << 2;
    const words = this.#words;
    words[base + SEQUENCE] = sequence;
    words[base + HIGH] = 0;
    words[base + LOW] = 0;
    words[base + STATE] = BUSY;
    this.#items[slot] = item;
    this.#openedMs[slot] = nowMs;
    this.#next = (sequence + 1) | 0;
    this.#pending++;
    return sequence;
  }

  /** XORs the edges of the rows that the root emitted in; completes at once if all of them (or none) are acked. */
  commit(sequence: number, high: number, low: number): void {
    const base = (sequence & this.#mask) << 2;
    const words = this.#words;
    const state = words[base + STATE]!;
    if (state === 0 || words[base + SEQUENCE] !== sequence) return;
    const nowHigh = words[base + HIGH]! ^ high;
    const nowLow = words[base + LOW]! ^ low;
    if ((nowHigh | nowLow) === 0) {
      this.#complete(sequence & this.#mask);
      return;
    }
    words[base + HIGH] = nowHigh;
    words[base + LOW] = nowLow;
    words[base + STATE] = (state & MARKED) === 0 ? OPEN : state | COMMITTED | STIRRED;
  }

  /** XORs an ack in. Late and unknown sequence numbers are dropped. */
  xor(sequence: number, high: number, low: number): void {
    const base = (sequence & this.#mask) << 2;
    const words = this.#words;
    const state = words[base + STATE]!;
    if (state === 0 || words[base + SEQUENCE] !== sequence) return;
    const nowHigh = words[base + HIGH]! ^ high;
    const nowLow = words[base + LOW]! ^ low;
    words[base + HIGH] = nowHigh;
    words[base + LOW] = nowLow;
    if (state !== OPEN) {
      this.#noteProgress(base, state);
      if ((state & COMMITTED) === 0) return;
    }
    if ((nowHigh | nowLow) === 0) this.#complete(sequence & this.#mask);
  }

  /** Removes a pending tree and returns its item; undefined if there is no such tree. */
  remove(sequence: number): Item | undefined {
    return this.has(sequence) ? this.#free(sequence & this.#mask) : undefined;
  }

  has(sequence: number): boolean {
    const base = (sequence & this.#mask) << 2;
    return this.#words[base + STATE] !== 0 && this.#words[base + SEQUENCE] === sequence;
  }

  itemOf(sequence: number): Item | undefined {
    return this.has(sequence) ? this.#items[sequence & this.#mask] : undefined;
  }

  /**
   * The pending tree that was opened first (of those opened in the same millisecond the one with the lowest number).
   * Cost: O(1) while that tree stays pending, else one pass over the slots, 2-5 ms with a million trees.
   */
  oldest(): PendingTree<Item> | undefined {
    if (this.#pending === 0) return undefined;
    const slot = this.#oldestSequence & this.#mask;
    if (!this.has(this.#oldestSequence) || this.#openedMs[slot] !== this.#oldestOpenedMs)
      return this.#findOldest();
    return this.#pendingTree(slot);
  }

  /**
   * Something was lost: marks every pending tree (again), as not moved since `nowMs`. Returns how many are marked.
   *
   * @param openedByMs only trees that were open by then; others stay as they are
   */
  markAll(nowMs: number, openedByMs = Infinity): number {
    if (this.#progressMs.length < this.slots) this.#progressMs = new Float64Array(this.slots);
    const words = this.#words;
    let [marked, unmoved] = [0, 0];
    for (let slot = 0; slot < this.slots; slot++) {
      const at = (slot << 2) + STATE;
      const state = words[at]!;
      if (state === 0) continue;
      if (this.#openedMs[slot]! <= openedByMs) {
        words[at] = (state & OPEN) | MARKED;
        this.#progressMs[slot] = nowMs;
        marked++;
        unmoved++;
      } else if ((state & MARKED) !== 0) {
        marked++;
        if ((state & MOVED) === 0) unmoved++;
      }
    }
    this.#marked = marked;
    this.#unmoved = unmoved;
    this.#nextLookMs = -Infinity;
    return this.#marked;
  }

  /** Removes and returns, oldest first, the marked trees that made no progress since they were marked. */
  takeUnmoved(): TakenTree<Item>[] {
    if (this.#unmoved === 0) return [];
    return this.#take((slot) => (this.#words[(slot << 2) + STATE]! & MOVED) === 0);
  }

  /**
   * Removes and returns, oldest first, the marked trees whose last progress is `quietMs` or more ago.
   *
   * Acks carry no time: progress counts as made when this function next looks. It looks at all marked trees at most
   * eight times per quiet time, so a tree is taken up to an eighth (and the time between two calls) late, never early.
   */
  takeQuiet(nowMs: number, quietMs: number): TakenTree<Item>[] {
    if (this.#marked === 0 || (nowMs < this.#nextLookMs && quietMs === this.#lookQuietMs)) return [];
    const words = this.#words;
    const progressMs = this.#progressMs;
    let nextDueMs = Infinity;
    const taken = this.#take((slot) => {
      const at = (slot << 2) + STATE;
      if ((words[at]! & STIRRED) !== 0) {
        words[at]! &= ~STIRRED;
        progressMs[slot] = nowMs;
      }
      const dueMs = progressMs[slot]! + quietMs;
      if (nowMs >= dueMs) return true;
      nextDueMs = Math.min(nextDueMs, dueMs);
      return false;
    });
    this.#nextLookMs = Math.min(nextDueMs, nowMs + quietMs / LOOKS_PER_QUIET_TIME);
    this.#lookQuietMs = quietMs;
    return taken;
  }

  /** Visits all pending trees, in no particular order. `visit` must not change the ledger. */
  forEachPending(visit: (sequence: number, item: Item, openedMs: number) => void): void {
    for (let slot = 0; slot < this.slots; slot++) {
      if (this.#words[(slot << 2) + STATE] === 0) continue;
      visit(this.#words[slot << 2]!, this.#itemAt(slot), this.#openedMs[slot]!);
    }
  }

  /** Skips numbers whose slots are busy; grows first where three quarters are, so that skips stay short on average. */
  #nextFree(): number {
    let sequence = this.#next;
    while (this.#words[((sequence & this.#mask) << 2) + STATE] !== 0) {
      if (this.#pending * 4 >= this.slots * 3) this.#grow();
      else sequence = (sequence + 1) | 0;
    }
    return sequence;
  }

  #grow(): void {
    const slots = this.slots;
    const mask = slots * 2 - 1;
    const words = new Int32Array(slots * 8);
    const items = new Array<Item | undefined>(slots * 2).fill(undefined);
    const openedMs = new Float64Array(slots * 2);
    const progressMs = new Float64Array(this.#progressMs.length === 0 ? 0 : slots * 2);
    for (let slot = 0; slot < slots; slot++) {
      const from = slot << 2;
      if (this.#words[from + STATE] === 0) continue;
      const to = this.#words[from + SEQUENCE]! & mask;
      words.set(this.#words.subarray(from, from + 4), to << 2);
      items[to] = this.#items[slot];
      openedMs[to] = this.#openedMs[slot]!;
      if (progressMs.length > 0) progressMs[to] = this.#progressMs[slot]!;
    }
    this.#mask = mask;
    this.#words = words;
    this.#items = items;
    this.#openedMs = openedMs;
    this.#progressMs = progressMs;
  }

  #noteProgress(base: number, state: number): void {
    if ((state & MARKED) === 0) return;
    if ((state & MOVED) === 0) this.#unmoved--;
    this.#words[base + STATE] = state | MOVED | STIRRED;
  }

  #complete(slot: number): void {
    const sequence = this.#words[slot << 2]!;
    const openedMs = this.#openedMs[slot]!;
    // Freed first: the callback may open the next tree, and the arrays may grow in it.
    this.#onComplete(this.#free(slot), sequence, openedMs);
  }

  #free(slot: number): Item {
    const at = (slot << 2) + STATE;
    const state = this.#words[at]!;
    if ((state & MARKED) !== 0) {
      this.#marked--;
      if ((state & MOVED) === 0) this.#unmoved--;
    }
    const item = this.#itemAt(slot);
    this.#words[at] = 0;
    this.#items[slot] = undefined;
    this.#pending--;
    return item;
  }

  /** Frees the marked and committed trees that `isDue` names (called once for each of them). */
  #take(isDue: (slot: number) => boolean): TakenTree<Item>[] {
    const taken: TakenTree<Item>[] = [];
    const first = this.#next & this.#mask;
    // From the slot that comes next, the slots are in order of age but for trees that were skipped: nearly sorted.
    for (let i = 0; i < this.slots; i++) {
      const slot = (first + i) & this.#mask;
      const state = this.#words[(slot << 2) + STATE]!;
      if ((state & (MARKED | COMMITTED)) !== (MARKED | COMMITTED) || !isDue(slot)) continue;
      taken.push({ sequence: this.#words[slot << 2]!, item: this.#free(slot) });
    }
    return taken.sort((a, b) => this.#age(b.sequence) - this.#age(a.sequence));
  }

  #findOldest(): PendingTree<Item> {
    const words = this.#words;
    const openedMs = this.#openedMs;
    let best = -1;
    for (let slot = 0; slot < this.slots; slot++) {
      if (words[(slot << 2) + STATE] === 0) continue;
      const earlier =
        best < 0 ||
        openedMs[slot]! < openedMs[best]! ||
        (openedMs[slot] === openedMs[best] && this.#age(words[slot << 2]!) > this.#age(words[best << 2]!));
      if (earlier) best = slot;
    }
    this.#oldestSequence = words[best << 2]!;
    this.#oldestOpenedMs = openedMs[best]!;
    return this.#pendingTree(best);
  }

  /** How many numbers ago a sequence number was given out. */
  #age(sequence: number): number {
    return (this.#next - sequence) >>> 0;
  }

  #pendingTree(slot: number): PendingTree<Item> {
    return { sequence: this.#words[slot << 2]!, item: this.#itemAt(slot), openedMs: this.#openedMs[slot]! };
  }

  /** The item of a busy slot. */
  #itemAt(slot: number): Item {
    // `Item` may itself include undefined, so presence is the slot's state, which the callers have checked.
    return this.#items[slot] as Item;
  }
}
