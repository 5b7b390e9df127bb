/**
 * One task of a spout: reads rows, roots a tree for each, keeps rows with a position until their tree is complete, replays
 * what failed and dead-letters what user code cannot digest.
 *
 * Invariants
 * S1  A row with a position leaves memory only when its tree is complete or it is in the dead-letter file, on disk.
 * S2  The stored position never passes a row that S1 still keeps.
 * S3  Replays go before new rows. A row that is replayed alone has no other tree of its task beside it.
 * S4  Nothing is read while a receiver takes no rows or the limit of pending trees is reached.
 */
import { sketchBucket, toErrorRecord, toIsobarError } from '../base/index.js';
import type { StoredPosition } from '../coordination/index.js';
import type { EmitOptions, Row, RuntimeOut } from '../topology/index.js';
import type { DeadLetter, DeadLetterWriter } from './acking/dead-letters.js';
import { PositionTracker } from './acking/position-tracker.js';
import { ReplayQueue } from './acking/replay-queue.js';
import { decideAfterFailure, type FailureReason, type RowHistory } from './acking/replay-policy.js';
import { TreeLedger } from './acking/tree-ledger.js';
import { firstSequence, reportUserError, sendEndMarks } from './bolt-task.js';
import {
  C_ACKED,
  C_BLOCKED_MS,
  C_DEAD_LETTERS,
  C_EMITTED,
  C_ENDED,
  C_FAILED,
  C_FAILURES_BY_REASON,
  C_GENERATION,
  C_LAG,
  C_MOVABLE,
  C_PENDING,
  C_REPLAYED,
  C_REPLAYS_BY_REASON,
  C_STOPPED,
  C_TRANSFERRED,
  C_TREES,
  C_UNREPLAYABLE,
  FAILURE_REASONS,
  P_CALLS,
  P_IN_CALL,
  P_TASK,
  type CounterBlock,
} from './counters.js';
import { isBlocked, NO_ROUTES_YET, type Gate } from './link.js';
import type { EmitCause, StreamOutputs } from './outputs.js';
import { checkPosition } from './source-items.js';
import type { SpoutSource } from './spout-source.js';
import { canonicalRow, streamOf, type EmittingTask } from './task-out.js';
import type { LocalRoot, ThreadContext } from './thread-context.js';
import { IN_NEXT, IN_READ } from './user-calls.js';

const LATENCY_SAMPLE_MASK = 15;

/** A row that a spout task has emitted, or will emit again. */
interface SpoutRow {
  /** Canonical once it was emitted: what user code does with its own object then changes no replay. */
  row: Row;
  readonly stream: string;
  readonly position: unknown;
  /** Place among the rows with a position; -1: none, so the row cannot be replayed. */
  readonly readIndex: number;
  readonly id: unknown;
  readonly direct: number | undefined;
  history: RowHistory;
  /** Its latency is measured. */
  sampled: boolean;
  lastReason: FailureReason | null;
}

/** Crashes of its thread after which a task reads on with one row at a time, so that the row behind them is known. */
const CAUTIOUS_AFTER_CRASHES = 2;
/** Rows that a cautious task gets through before it trusts its input again. */
const CAUTIOUS_ROWS = 10_000;

/** Dead letters that wait for the disk together at most. */
const DEAD_LETTERS_AT_ONCE = 256;

const NO_HISTORY: RowHistory = { failures: 0, crashes: 0 };

export class SpoutTaskRunner implements EmittingTask, LocalRoot, RuntimeOut {
  readonly number: number;
  readonly component: string;
  readonly context: ThreadContext;
  readonly streams: ReadonlyMap<string, StreamOutputs>;
  readonly defaultStream: StreamOutputs | undefined;
  readonly counters: Float64Array;
  readonly generation: number;
  readonly ledger: TreeLedger<SpoutRow>;
  source!: SpoutSource;
  readonly #completeSketch: Int32Array;
  readonly #tracker = new PositionTracker();
  readonly #deadLetters: DeadLetterWriter;
  readonly #componentOf: (task: number) => string;
  readonly #cause: EmitCause = {
    rootTask: 0,
    rootGeneration: 0,
    rootSequence: 0,
    several: null,
    edgesHigh: 0,
    edgesLow: 0,
    // A spout is in no cycle.
    hasCycleToken: false,
  };
  readonly #replays = new ReplayQueue<SpoutRow>();
  /** Dead letters that are not written yet. */
  readonly #unwritten: { readonly row: SpoutRow; readonly letter: DeadLetter }[] = [];
  #writeRetryMs = 0;
  #emits = 0;
  #reading = true;
  #stay: 'stays' | 'leaving' | 'left' = 'stays';
  readonly #isMovable: boolean;
  /**
   * Pushed by its source since it left. It may stay after all, and then they go out from here; otherwise those with a position
   * are read again at the new place, and of the others the source is told.
   */
  readonly #pushed: SpoutRow[] = [];
  #endMarksSent = false;
  #quietTold = false;
  #storedIndex = -1;
  /** Rows left to be read one at a time after crashes. */
  #cautiousRows: number;
  /** The first row read was alone in this many crashes; 0: none. */
  #suspectCrashes: number;
  #gates: readonly Gate[] = NO_ROUTES_YET;
  readonly #mayGo = (): boolean => this.#mayGoAlone();
  readonly #pendingLimit: number;

  constructor(options: {
    number: number;
    component: string;
    context: ThreadContext;
    streams: ReadonlyMap<string, StreamOutputs>;
    block: CounterBlock;
    generation: number;
    deadLetters: DeadLetterWriter;
    /** Name of a task's component; '' where there is none. */
    componentOf: (task: number) => string;
    /** Crashes of this task's thread since it last made progress. */
    crashes: number;
    /** Declared movable. */
    movable: boolean;
  }) {
    this.#isMovable = options.movable;
    this.#cautiousRows = options.crashes >= CAUTIOUS_AFTER_CRASHES ? CAUTIOUS_ROWS : 0;
    this.#suspectCrashes = Math.max(0, options.crashes - CAUTIOUS_AFTER_CRASHES);
    this.number = options.number;
    this.component = options.component;
    this.context = options.context;
    this.streams = options.streams;
    this.defaultStream = options.streams.get('default');
    this.counters = options.block.counters;
    this.generation = options.generation;
    this.counters[C_GENERATION] = options.generation;
    // Until a row without position shows that it is not.
    this.counters[C_MOVABLE] = 1;
    this.#completeSketch = options.block.sketch;
    this.#deadLetters = options.deadLetters;
    this.#componentOf = options.componentOf;
    const settings = options.context.options.settings;
    const limit = Math.min(
      settings['topology.max-spout-pending'] ?? Infinity,
      settings['spout.pending-limit'],
    );
    this.#pendingLimit = limit;
    this.ledger = new TreeLedger<SpoutRow>({
      initialSlots: 64,
      pendingLimit: limit,
      firstSequence: firstSequence(options.context),
      onComplete: (row, _sequence, openedMs) => this.#onComplete(row, openedMs),
    });
  }

  setGates(gates: readonly Gate[]): void {
    this.#gates = gates;
  }

  /** A low-level source emits. */
  emit(stream: string, row: Row, options?: EmitOptions, direct?: number): void {
    // First what may throw: a row that is refused here was never read, so no position may wait for it.
    const outputs = streamOf(this, stream);
    const canonical = canonicalRow(this, outputs, row);
    checkPosition(options?.position, this.component);
    const readIndex = options?.position === undefined ? -1 : this.#tracker.add(options.position);
    const entry = this.#newRow(canonical, stream, options?.position, readIndex, options?.id, direct);
    if (this.#stay === 'left') {
      this.#pushed.push(entry);
      return;
    }
    this.counters[C_EMITTED]!++;
    if (readIndex < 0 && (options?.id === undefined || !this.source.hearsOfFailures))
      this.#noteUnreplayable();
    this.#emitRow(entry, outputs);
    // Emitted from a callback, not within `next`: the thread may be asleep.
    if (this.context.options.progress[P_IN_CALL] === 0) this.context.options.wake();
  }

  /** Emits up to `budget` rows. */
  step(budget: number): number {
    let done = 0;
    const progress = this.context.options.progress;
    progress[P_TASK] = this.number;
    if (this.#unwritten.length > 0) this.#writeDeadLetters(this.context.options.clock.nowMs());
    while (done < budget && !isBlocked(this.#gates) && !this.ledger.isFull) {
      if (this.#cautiousRows > 0 && !this.#mayGoAlone()) break;
      const replayed = this.#replays.next(this.ledger.pending === 0, this.#mayGo);
      if (replayed === 'wait') break;
      if (replayed !== undefined) {
        this.counters[C_REPLAYED]!++;
        this.counters[C_REPLAYS_BY_REASON + FAILURE_REASONS.indexOf(replayed.lastReason ?? 'lost')]!++;
        this.#emitChecked(replayed);
        done++;
        continue;
      }
      if (
        !this.#reading ||
        this.#stay !== 'stays' ||
        this.ledger.pending + this.#unwritten.length >= this.#pendingLimit
      )
        break;
      progress[P_CALLS]!++;
      if (this.source.isLowLevel) {
        progress[P_IN_CALL] = IN_NEXT;
        const polled = this.source.poll();
        progress[P_IN_CALL] = 0;
        if (!polled) break;
        done++;
        continue;
      }
      progress[P_IN_CALL] = IN_READ;
      const next = this.source.next();
      progress[P_IN_CALL] = 0;
      if (next === undefined) break;
      const readIndex = next.position === undefined ? -1 : this.#tracker.add(next.position);
      const row = this.#newRow(
        next.row,
        next.stream ?? 'default',
        next.position,
        readIndex,
        undefined,
        undefined,
      );
      done++;
      if (readIndex < 0) this.#noteUnreplayable();
      if (this.#isPoison(row)) {
        this.#deadLetter(row, 0);
        // Before the next row goes out, which may take this thread with it.
        this.#writeDeadLetters(this.context.options.clock.nowMs());
        continue;
      }
      this.#emitChecked(row);
    }
    this.#updateState();
    return done;
  }

  onAck(sequence: number, high: number, low: number): void {
    this.ledger.xor(sequence, high, low);
  }

  onFail(sequence: number, reason: FailureReason, failingTask: number): void {
    const row = this.ledger.remove(sequence);
    if (row !== undefined) this.#onFailed(row, reason, failingTask);
  }

  /** A tree that was pending when something was lost, and made no progress since. */
  onLost(row: SpoutRow): void {
    this.#onFailed(row, 'lost', 0);
  }

  /** Marked trees whose routes stand again, or that have been quiet for `replay.quiet-time`. */
  replayLost(nowMs: number, routesStandAgain: boolean): void {
    if (this.ledger.marked === 0) return;
    if (routesStandAgain) for (const { item } of this.ledger.takeUnmoved()) this.onLost(item);
    const quietMs = this.context.options.settings['replay.quiet-time'];
    for (const { item } of this.ledger.takeQuiet(nowMs, quietMs)) this.onLost(item);
  }

  /** Stops or goes on with reading; replays go on in either case. */
  setReading(reading: boolean): void {
    this.#reading = reading;
    if (!reading) this.source.deactivate();
    this.#updateState();
  }

  /** About to leave: reads no more, and what is pending goes on to its end; or not leaving after all. */
  setLeaving(isLeaving: boolean): void {
    this.#stay = isLeaving ? 'leaving' : 'stays';
    for (const row of this.#pushed.splice(0)) {
      row.lastReason = 'moved';
      this.#replays.add(row);
    }
    this.#updateState();
  }

  /** No tree is pending and no row waits to be emitted again. */
  get isDone(): boolean {
    return this.ledger.pending + this.#waitingRows === 0;
  }

  /** Takes nothing from its source any more; another place goes on at `resumePosition`. */
  leave(): void {
    this.#stay = 'left';
    this.context.options.aloneMarks.clear(this.number);
  }

  /** It does not come back: of rows without position that are still here, their source is told that they have failed. */
  failUnread(): void {
    const rows = [...this.#replays.rows(), ...this.#pushed.splice(0)];
    this.ledger.forEachPending((_sequence, row) => rows.push(row));
    for (const { id, readIndex } of rows)
      if (readIndex < 0 && id !== undefined) this.source.fail(id, 'moved');
  }

  /** Behind the last row up to which all is done. */
  get resumePosition(): unknown {
    return this.#tracker.committed?.position ?? this.source.from;
  }

  /** The position to store, if it has moved on since the last call. */
  takePosition(): StoredPosition | undefined {
    const committed = this.#tracker.committed;
    if (committed === undefined || committed.readIndex === this.#storedIndex) return undefined;
    this.#storedIndex = committed.readIndex;
    return { task: this.number, generation: this.generation, position: committed.position };
  }

  /** Tries again to write dead letters that could not be written. */
  retryDeadLetters(nowMs: number): void {
    this.#writeDeadLetters(nowMs);
    this.#updateState();
  }

  /** No tree and no row of this task is pending. */
  get isCalm(): boolean {
    return this.counters[C_PENDING] === 0 && this.ledger.pending === 0;
  }

  get isStuckOnLimit(): boolean {
    return this.ledger.isFull;
  }

  updateDepths(): void {
    this.#updateState();
    const lag = this.source.lag();
    this.counters[C_LAG] = lag === undefined ? 0 : Math.floor(lag) + 1;
  }

  /** For the time since the last look: do receivers take no rows? */
  noteBlocked(elapsedMs: number): void {
    if (this.#reading && !this.source.ended && isBlocked(this.#gates))
      this.counters[C_BLOCKED_MS]! += elapsedMs;
  }

  resendEndMarks(): void {
    if (this.#endMarksSent) sendEndMarks(this);
  }

  /** Without acking nothing is replayed, and nobody expects it. */
  #noteUnreplayable(): void {
    if (this.context.acking) this.counters[C_UNREPLAYABLE]!++;
  }

  #newRow(
    row: Row,
    stream: string,
    position: unknown,
    readIndex: number,
    id: unknown,
    direct: number | undefined,
  ): SpoutRow {
    if (readIndex < 0 && !this.#isMovable) this.counters[C_MOVABLE] = 0;
    return {
      row,
      stream,
      position,
      readIndex,
      id,
      direct,
      history: NO_HISTORY,
      sampled: false,
      lastReason: null,
    };
  }

  /**
   * May a row go out alone? Then no other row of this task is out, and no other task of this thread has one out alone:
   * what a crash takes with it would otherwise be suspected together.
   */
  #mayGoAlone(): boolean {
    const { context } = this;
    if (this.ledger.pending > 0 || (context.aloneTask !== 0 && context.aloneTask !== this.number))
      return false;
    context.aloneTask = this.number;
    context.options.aloneMarks.set(this.number, this.#tracker.committed?.position ?? this.source.from);
    return true;
  }

  /** Emits a row; a row that cannot be emitted fails by its own fault. */
  #emitChecked(row: SpoutRow): void {
    // Counted here, so that a row that cannot even be emitted is one of the rows that the summary speaks of.
    this.counters[C_EMITTED]!++;
    let outputs: StreamOutputs;
    try {
      outputs = streamOf(this, row.stream);
      row.row = canonicalRow(this, outputs, row.row);
    } catch (error) {
      reportUserError(this, error, 'emit');
      this.#onFailed(row, 'user', this.number);
      return;
    }
    try {
      this.#emitRow(row, outputs);
    } catch (error) {
      reportUserError(this, error, 'emit');
      if (!this.context.acking) this.#finish(row);
    }
  }

  #emitRow(row: SpoutRow, outputs: StreamOutputs): void {
    const { context } = this;
    const cause = this.#cause;
    if (!context.acking) {
      cause.rootTask = 0;
      this.counters[C_TRANSFERRED]! += context.emit(outputs, row.row, this.number, cause, row.direct);
      this.#finish(row);
      return;
    }
    row.sampled = (this.#emits++ & LATENCY_SAMPLE_MASK) === 0;
    const sequence = this.ledger.reserve(row, row.sampled ? context.options.clock.nowMs() : context.turnMs);
    cause.rootTask = this.number;
    cause.rootGeneration = this.generation;
    cause.rootSequence = sequence;
    cause.edgesHigh = 0;
    cause.edgesLow = 0;
    try {
      this.counters[C_TRANSFERRED]! += context.emit(outputs, row.row, this.number, cause, row.direct);
    } catch (error) {
      this.ledger.remove(sequence);
      this.#onFailed(row, 'user', this.number);
      throw error;
    }
    this.ledger.commit(sequence, cause.edgesHigh, cause.edgesLow);
  }

  #onComplete(row: SpoutRow, openedMs: number): void {
    this.counters[C_ACKED]!++;
    if (row.sampled)
      this.#completeSketch[sketchBucket((this.context.options.clock.nowMs() - openedMs) * 1000)]!++;
    this.#finish(row);
  }

  /** A row that was alone with its thread in as many crashes as user code may fail. */
  #isPoison(row: SpoutRow): boolean {
    const crashes = this.#suspectCrashes;
    this.#suspectCrashes = 0;
    if (row.readIndex < 0 || crashes < this.context.options.settings['replay.max-failures']) return false;
    row.history = { failures: crashes, crashes };
    row.lastReason = 'lost';
    return true;
  }

  #finish(row: SpoutRow): void {
    if (row.readIndex >= 0) this.#tracker.done(row.readIndex);
    if (this.#cautiousRows > 0) {
      this.#cautiousRows--;
      if (this.#cautiousRows === 0) this.context.options.aloneMarks.clear(this.number);
      // Stored at once: after another crash the first row read is the one behind it.
      const position = this.takePosition();
      if (position !== undefined) this.context.options.post({ kind: 'positions', positions: [position] });
    }
    if (row.id !== undefined) this.source.ack(row.id);
  }

  #onFailed(row: SpoutRow, reason: FailureReason, failingTask: number): void {
    this.counters[C_FAILED]!++;
    this.counters[C_FAILURES_BY_REASON + FAILURE_REASONS.indexOf(reason)]!++;
    row.lastReason = reason;
    if (row.readIndex < 0) {
      if (row.id !== undefined) this.source.fail(row.id, reason);
      return;
    }
    const decision = decideAfterFailure(row.history, reason, {
      maxFailures: this.context.options.settings['replay.max-failures'],
      isCrash: this.context.isLossSuspicious,
    });
    row.history = decision.history;
    switch (decision.action) {
      case 'replay':
        this.#replays.add(row);
        break;
      case 'replay-alone':
        this.#replays.addAlone(row);
        break;
      case 'dead-letter':
        this.#deadLetter(row, failingTask);
        break;
    }
    this.context.options.wake();
  }

  /** Is written with what else fails in this turn: the disk is waited for once. */
  #deadLetter(row: SpoutRow, failingTask: number): void {
    const letter: DeadLetter = {
      topology: this.context.options.topologyId,
      component: this.component,
      task: this.number,
      stream: row.stream,
      row: row.row,
      position: row.position,
      failures: row.history.failures,
      failingTask,
      failingComponent: this.#componentOf(failingTask),
      error: this.context.userErrors.get(failingTask),
      reason: row.lastReason ?? 'user',
      atMs: this.context.options.clock.wallMs(),
    };
    this.#unwritten.push({ row, letter });
  }

  /** Writes the dead letters that wait, unless the last attempt has just failed. */
  #writeDeadLetters(nowMs: number): void {
    while (this.#unwritten.length > 0 && nowMs >= this.#writeRetryMs) {
      const batch = this.#unwritten.slice(0, DEAD_LETTERS_AT_ONCE);
      let path: string;
      try {
        path = this.#deadLetters.append(...batch.map(({ letter }) => letter));
      } catch (error) {
        this.#writeRetryMs = nowMs + 1000;
        const fault = toIsobarError(error, 'DEAD_LETTER_WRITE_FAILED');
        this.context.options.post({
          kind: 'error',
          error: { component: this.component, task: this.number, error: toErrorRecord(fault) },
        });
        return;
      }
      this.#unwritten.splice(0, batch.length);
      this.counters[C_DEAD_LETTERS]! += batch.length;
      this.context.options.post({ kind: 'dead-letter-file', path });
      for (const { row } of batch) this.#finish(row);
    }
  }

  get #waitingRows(): number {
    return this.#replays.size + this.#unwritten.length;
  }

  #updateState(): void {
    const pending = this.ledger.pending + this.#waitingRows + (this.#reading ? this.source.buffered : 0);
    const ended = this.source.ended && this.source.buffered === 0;
    this.counters[C_PENDING] = pending;
    const treesBefore = this.counters[C_TREES]!;
    this.counters[C_TREES] = this.ledger.pending;
    if (this.context.aloneTask === this.number && this.ledger.pending === 0) {
      this.context.aloneTask = 0;
      // Other tasks of this thread may have waited for that row.
      if (treesBefore > 0) this.context.options.wake();
    }
    this.counters[C_ENDED] = ended ? 1 : 0;
    this.counters[C_STOPPED] = this.#reading ? 0 : 1;
    if (ended && !this.context.acking && !this.#endMarksSent) {
      this.#endMarksSent = true;
      sendEndMarks(this);
    }
    const quiet = (ended || !this.#reading) && pending === 0;
    if (quiet && !this.#quietTold) this.context.options.post({ kind: 'changed' });
    this.#quietTold = quiet;
  }
}
