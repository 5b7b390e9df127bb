/**
 * Outgoing side of one (sending thread, receiving thread) pair: one batch of rows, merged acks, failures and grants,
 * and the credit that each receiving component has given.
 *
 * Invariants
 * L1  Rows to one component leave in the order in which they were sent: once a row is held, later ones queue behind it.
 * L2  A row leaves only while its component's credit is positive; it costs 1 + one per 4 KB. Acks, failures and grants
 *     never wait for credit.
 * L3  A gate is blocked exactly while its component has no credit or rows are held for it.
 * L4  A mark of a planned move leaves behind all rows that were sent before it and concern it. It never waits for credit.
 * L5  A batch that is partly in the ring is not changed until all of it is (frames larger than the ring go in pieces).
 */
import {
  AckBatch,
  CreditBatch,
  EXTRA_MARK,
  KIND_ACK,
  KIND_CREDIT,
  KIND_DATA,
  KIND_FAIL,
  KIND_PRESSURE,
  KIND_MOVE,
  MOVE_PASS,
  MoveBatch,
  OutBatch,
  type RingWriter,
  type RowCodec,
  SUBSCRIPTION_MASK,
} from '../messaging/index.js';
import type { Row } from '../topology/index.js';
import { Q_SOURCE_TASK, RowQueue } from './row-queue.js';

/** Tells an executor that one of its targets takes no more rows for now. */
export class Gate {
  blocked: boolean;

  constructor(blocked = false) {
    this.blocked = blocked;
  }
}

/** A gate that several have a hand in: blocked while any of them has closed it, so that one look does for all. */
export class SharedGate extends Gate {
  #closed = 0;

  close(): void {
    this.#closed++;
    this.blocked = true;
  }

  open(): void {
    this.#closed--;
    this.blocked = this.#closed > 0;
  }
}

/** What an executor has before routes have told it where its targets are: it takes and reads nothing. */
export const NO_ROUTES_YET: readonly Gate[] = [new Gate(true)];

/** Is any of the gates closed? */
export function isBlocked(gates: readonly Gate[]): boolean {
  for (let i = 0; i < gates.length; i++) if (gates[i]!.blocked) return true;
  return false;
}

/** A ring shared by several links (those of all peers go through the main thread): one unfinished frame at a time. */
export class OutPort {
  #owner: object | null = null;
  readonly #writer: RingWriter;

  constructor(writer: RingWriter) {
    this.#writer = writer;
  }

  /** Like RingWriter.tryWrite; refuses while another owner's frame is partly in the ring. */
  tryWrite(
    owner: object,
    words: Int32Array,
    wordCount: number,
    blob: Buffer | null,
    blobBytes: number,
  ): boolean {
    if (this.#owner !== null && this.#owner !== owner) return false;
    const done = this.#writer.tryWrite(words, wordCount, blob, blobBytes);
    this.#owner = this.#writer.isUnfinished ? owner : null;
    return done;
  }

  /** Gives up the owner's frame if it is partly in the ring. */
  release(owner: object): void {
    if (this.#owner !== owner) return;
    this.#owner = null;
    this.#writer.abandonFrame();
  }

  isHeldBy(owner: object): boolean {
    return this.#owner === owner;
  }
}

export interface LinkOptions {
  readonly id: number;
  /** Index of the peer for the main thread; -1: a thread of this worker. */
  readonly peer: number;
  readonly targetThread: number;
  readonly targetGeneration: number;
  readonly sourceThread: number;
  readonly sourceGeneration: number;
  readonly port: OutPort;
  /** How many credit classes there are (see Edge.creditClass). */
  readonly creditClasses: number;
  readonly cycles: number;
  readonly credit: number;
  readonly batchRows: number;
  /** A larger row is refused. */
  readonly maxRowBytes: number;
  /** A held row was refused when its turn came; its call has long returned, so its tree must be failed here. */
  readonly onRefused: (
    error: unknown,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    several: Int32Array | null,
  ) => void;
  /** By subscription. */
  readonly codecs: readonly RowCodec[];
}

/** Rows of 4 KB and more cost more than one: credit then bounds bytes too. */
export function rowCost(blobBytes: number): number {
  return 1 + (blobBytes >>> 12);
}

export class Link {
  readonly id: number;
  readonly peer: number;
  readonly targetThread: number;
  readonly targetGeneration: number;
  readonly #options: LinkOptions;
  readonly #batch: OutBatch;
  readonly #acks = new AckBatch(1024);
  readonly #fails = new AckBatch(256, KIND_FAIL);
  readonly #grants: CreditBatch;
  readonly #pressure: CreditBatch;
  readonly #moves = new MoveBatch();
  /** Marks that rows have to leave before. */
  #marks: { readonly mark: number; readonly task: number; readonly id: number }[] = [];
  readonly #credit: Int32Array;
  readonly #gates: Gate[];
  readonly #held: (RowQueue | undefined)[];
  /** Held rows that are extra in their cycle, by credit class. */
  readonly #heldExtra: Int32Array;
  #heldTotal = 0;

  constructor(options: LinkOptions) {
    this.id = options.id;
    this.peer = options.peer;
    this.targetThread = options.targetThread;
    this.targetGeneration = options.targetGeneration;
    this.#options = options;
    this.#batch = new OutBatch(options.batchRows, options.maxRowBytes);
    this.#grants = new CreditBatch(options.creditClasses);
    this.#pressure = new CreditBatch(options.cycles);
    this.#heldExtra = new Int32Array(options.creditClasses);
    this.#credit = new Int32Array(options.creditClasses).fill(options.credit);
    this.#gates = Array.from({ length: options.creditClasses }, () => new Gate());
    this.#held = new Array<RowQueue | undefined>(options.creditClasses).fill(undefined);
  }

  gate(creditClass: number): Gate {
    return this.#gates[creditClass]!;
  }

  heldRows(creditClass: number): number {
    return this.#held[creditClass]?.size ?? 0;
  }

  heldExtra(creditClass: number): number {
    return this.#heldExtra[creditClass]!;
  }

  get heldTotal(): number {
    return this.#heldTotal;
  }

  /** Sends a row, or holds it (L1, L2). */
  send(
    creditClass: number,
    subscription: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    edgeHigh: number,
    edgeLow: number,
    several: Int32Array | null,
    row: Row | null,
  ): void {
    if (this.#gates[creditClass]!.blocked || !this.#batchTakesRows()) {
      this.#hold(creditClass).push(
        row,
        several,
        subscription,
        targetTask,
        sourceTask,
        rootTask,
        rootGeneration,
        rootSequence,
        edgeHigh,
        edgeLow,
        -1,
        0,
      );
      this.#heldTotal++;
      if ((subscription & EXTRA_MARK) !== 0) this.#heldExtra[creditClass]!++;
      this.#gates[creditClass]!.blocked = true;
      return;
    }
    this.#add(
      creditClass,
      subscription,
      targetTask,
      sourceTask,
      rootTask,
      rootGeneration,
      rootSequence,
      edgeHigh,
      edgeLow,
      several,
      row,
    );
  }

  ack(rootTask: number, rootGeneration: number, rootSequence: number, high: number, low: number): void {
    this.#acks.add(rootTask, rootGeneration, rootSequence, high, low);
    if (this.#acks.isFull) this.#flushControl();
  }

  fail(
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    reason: number,
    failingTask: number,
  ): void {
    this.#fails.add(rootTask, rootGeneration, rootSequence, reason, failingTask);
    if (this.#fails.isFull) this.#flushControl();
  }

  /** Grants credit to the other side for rows of a class that were taken from their queue. */
  grant(creditClass: number, cost: number): void {
    this.#grants.add(creditClass, cost);
  }

  /** Tells the other side whether this one holds many rows of a cycle. */
  setPressure(cycle: number, isPressed: boolean): void {
    this.#pressure.set(cycle, isPressed ? 1 : 0);
  }

  /** The other side granted credit; never more than was spent counts. */
  onGrant(creditClass: number, cost: number): void {
    this.#credit[creditClass] = Math.min(this.#credit[creditClass]! + cost, this.#options.credit);
    const held = this.#held[creditClass];
    if (held !== undefined && held.size > 0) this.#releaseClass(creditClass, held);
    this.#updateGate(creditClass);
  }

  /** Sends a mark of a planned move (L4). */
  mark(mark: number, task: number, id: number): void {
    this.#marks.push({ mark, task, id });
  }

  /** Takes out the rows for one task that have not left yet, in order. */
  takeHeldFor(task: number): RowQueue[] {
    return this.#held.flatMap((held, creditClass) => {
      if (held === undefined || held.size === 0) return [];
      const taken = held.takeTask(task);
      this.#heldTotal -= taken.size;
      taken.some((words, at) => {
        if ((words[at]! & EXTRA_MARK) !== 0) this.#heldExtra[creditClass]!--;
        return false;
      });
      this.#updateGate(creditClass);
      return [taken];
    });
  }

  /** Writes out what waits; returns whether nothing is left. */
  flush(): boolean {
    let empty = this.#flushControl();
    if (this.#heldTotal > 0) this.#releaseHeld();
    if (this.#batch.rows > 0) empty = this.#flushData() && empty;
    if (this.#marks.length > 0 || this.#moves.count > 0) empty = this.#flushMarks() && empty;
    return empty && this.#heldTotal === 0;
  }

  /** Visits the words of every held row. */
  someHeld(visit: (words: Int32Array, at: number) => boolean): boolean {
    return this.#held.some((held) => held?.some(visit) ?? false);
  }

  /** The other end is gone: what is held or batched for it is dropped (its trees have been marked). */
  close(): void {
    this.#options.port.release(this.#batch);
    this.#options.port.release(this.#acks);
    this.#options.port.release(this.#fails);
    this.#options.port.release(this.#grants);
    this.#options.port.release(this.#pressure);
    this.#options.port.release(this.#moves);
    for (const gate of this.#gates) gate.blocked = true;
  }

  #hold(creditClass: number): RowQueue {
    return (this.#held[creditClass] ??= new RowQueue(64));
  }

  #batchTakesRows(): boolean {
    if (this.#options.port.isHeldBy(this.#batch)) return this.#flushData();
    if (this.#batch.isFull) return this.#flushData();
    return true;
  }

  #add(
    creditClass: number,
    subscription: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    edgeHigh: number,
    edgeLow: number,
    several: Int32Array | null,
    row: Row | null,
  ): void {
    const codec = row === null ? null : this.#options.codecs[subscription & SUBSCRIPTION_MASK]!;
    const bytes = this.#batch.addRow(
      subscription,
      targetTask,
      sourceTask,
      rootTask,
      rootGeneration,
      rootSequence,
      edgeHigh,
      edgeLow,
      several,
      codec,
      row,
    );
    const left = this.#credit[creditClass]! - rowCost(bytes);
    this.#credit[creditClass] = left;
    if (left <= 0) this.#gates[creditClass]!.blocked = true;
    if (this.#batch.isFull) this.#flushData();
  }

  #releaseHeld(): void {
    for (let creditClass = 0; creditClass < this.#held.length; creditClass++) {
      const held = this.#held[creditClass];
      if (held !== undefined && held.size > 0) {
        this.#releaseClass(creditClass, held);
        this.#updateGate(creditClass);
      }
    }
  }

  #releaseClass(creditClass: number, held: RowQueue): void {
    while (held.size > 0 && this.#credit[creditClass]! > 0 && this.#batchTakesRows()) {
      const at = held.headWords;
      const words = held.words;
      try {
        this.#add(
          creditClass,
          words[at]!,
          words[at + 1]!,
          words[at + 2]!,
          words[at + 3]!,
          words[at + 4]!,
          words[at + 5]!,
          words[at + 6]!,
          words[at + 7]!,
          held.headSeveral,
          held.headRow,
        );
      } catch (error) {
        this.#options.onRefused(
          error,
          words[at + 2]!,
          words[at + 3]!,
          words[at + 4]!,
          words[at + 5]!,
          held.headSeveral,
        );
      }
      if ((words[at]! & EXTRA_MARK) !== 0) this.#heldExtra[creditClass]!--;
      held.shift();
      this.#heldTotal--;
    }
  }

  #updateGate(creditClass: number): void {
    this.#gates[creditClass]!.blocked = this.#credit[creditClass]! <= 0 || this.heldRows(creditClass) > 0;
  }

  #flushData(): boolean {
    const { sourceThread, sourceGeneration, port, peer } = this.#options;
    const batch = this.#batch;
    if (batch.rows === 0) return true;
    if (!port.isHeldBy(batch)) {
      batch.seal(KIND_DATA, sourceThread, sourceGeneration, this.targetThread, this.targetGeneration, peer);
    }
    if (!port.tryWrite(batch, batch.words, batch.wordCount, batch.blob, batch.blobBytes)) return false;
    batch.clear();
    return true;
  }

  #flushControl(): boolean {
    return (
      this.#flushBatch(this.#acks, KIND_ACK) &&
      this.#flushBatch(this.#fails, KIND_FAIL) &&
      this.#flushBatch(this.#grants, KIND_CREDIT) &&
      this.#flushBatch(this.#pressure, KIND_PRESSURE)
    );
  }

  #flushMarks(): boolean {
    if (this.#batch.rows > 0) return false;
    const waiting = this.#marks.filter(({ mark, task }) => mark === MOVE_PASS && this.#holdsRowOf(task));
    for (const one of this.#marks) if (!waiting.includes(one)) this.#moves.add(one.mark, one.task, one.id);
    this.#marks = waiting;
    return this.#flushBatch(this.#moves, KIND_MOVE) && waiting.length === 0;
  }

  #holdsRowOf(sourceTask: number): boolean {
    return this.someHeld((words, at) => words[at + Q_SOURCE_TASK] === sourceTask);
  }

  #flushBatch(batch: AckBatch | CreditBatch | MoveBatch, kind: number): boolean {
    const { sourceThread, sourceGeneration, port, peer } = this.#options;
    // Entries that came in while a frame was waiting make another one.
    while (batch.count > 0) {
      batch.seal(kind, sourceThread, sourceGeneration, this.targetThread, this.targetGeneration, peer);
      if (!port.tryWrite(batch, batch.words, batch.wordCount, null, 0)) return false;
      batch.clear();
    }
    return true;
  }
}
