/**
 * Reads one spout task's source, whatever its style, and hands out one row at a time. It owns where reading goes on
 * after an error: a source that throws is opened again behind the last row that it gave, with back-off.
 */
import type { Clock, Settings } from '../base/index.js';
import {
  isPromiseLike,
  type RuntimeOut,
  type RuntimeSource,
  type RuntimeSpout,
  type SourceRow,
  type TaskContext,
} from '../topology/index.js';
import { checkItem } from './source-items.js';
import { areCallsFollowed, type CallName, followed } from './user-calls.js';

export interface SpoutSourceOptions {
  readonly spout: RuntimeSpout;
  readonly context: TaskContext;
  readonly from: unknown;
  readonly clock: Clock;
  readonly settings: Settings;
  /** Low-level sources emit through this. */
  readonly out: RuntimeOut;
  readonly onError: (error: unknown, call: string) => void;
  /** Runs user code in the name of this task. */
  readonly inCall: <T>(call: CallName, run: () => T) => T;
  /** A promise settled: the thread should look again. */
  readonly wake: () => void;
}

/** First pause before a source that had nothing is asked again; it doubles up to `spout.idle-backoff-max`. */
const SHORTEST_REST_MS = 1;

type Reader = Iterator<SourceRow | readonly SourceRow[]> | AsyncIterator<SourceRow | readonly SourceRow[]>;
type Step = IteratorResult<SourceRow | readonly SourceRow[]>;

export class SpoutSource {
  readonly #options: SpoutSourceOptions;
  #reader: Reader | undefined;
  #lowLevel: RuntimeSource | undefined;
  #from: unknown;
  #rows: readonly SourceRow[] = [];
  #at = 0;
  #waiting = false;
  #idle = false;
  #pauseUntilMs = 0;
  #pauseMs = 0;
  #restMs = SHORTEST_REST_MS;
  #openingSinceMs: number | null = null;
  #closed = false;
  /** A low-level source that has been told to be active. */
  #isActive = false;
  ended = false;
  /** As the last row that was handed out said; low-level sources are asked. */
  #lag: number | undefined;
  #isLagKnown = true;

  constructor(options: SpoutSourceOptions) {
    this.#options = options;
    this.#from = options.from;
    this.#pauseMs = options.settings['worker.restart-backoff'];
  }

  get #task(): number {
    return this.#options.context.task;
  }

  /** Rows that the source has yet to give; undefined: it does not say. */
  lag(): number | undefined {
    if (this.ended) return this.#lag === undefined && this.#lowLevel?.lag === undefined ? undefined : 0;
    const source = this.#lowLevel;
    if (source?.lag === undefined) return this.#lag;
    if (!this.#isLagKnown) return undefined;
    try {
      const lag = this.#options.inCall('lag', () => source.lag?.());
      return isRowCount(lag) ? lag : undefined;
    } catch (error) {
      // Said once: nothing depends on it.
      this.#isLagKnown = false;
      this.#options.onError(error, 'lag');
      return undefined;
    }
  }

  /** Where this life began to read. */
  get from(): unknown {
    return this.#options.from;
  }

  /** Rows that were read and not handed out yet. */
  get buffered(): number {
    return this.#rows.length - this.#at;
  }

  /** When to look again although nothing woke the thread, ms of the clock; Infinity: only when woken. */
  get retryAtMs(): number {
    if (this.ended || this.#waiting) return Infinity;
    if (this.#idle) return this.#pauseUntilMs;
    return this.#pauseUntilMs > this.#options.clock.nowMs() ? this.#pauseUntilMs : Infinity;
  }

  /** A promise of its own is open. */
  get isWaiting(): boolean {
    return this.#waiting;
  }

  /** A low-level source that is told of failures can emit its rows again itself. */
  get hearsOfFailures(): boolean {
    return this.#lowLevel?.fail !== undefined;
  }

  /** Since when the promise of `open` has been open (ms, by the clock); null: it is not. */
  get openingSinceMs(): number | null {
    return this.#openingSinceMs;
  }

  get isLowLevel(): boolean {
    return this.#options.spout.open !== undefined;
  }

  /** The next row of a generator; undefined when there is none now. */
  next(): SourceRow | undefined {
    if (this.#at < this.#rows.length) return this.#handOut();
    if (!this.#mayRead()) return undefined;
    try {
      const reader = (this.#reader ??= this.#openReader());
      const step = areCallsFollowed() ? followed(this.#task, () => reader.next()) : reader.next();
      if (isPromiseLike(step)) {
        this.#waitFor(step, (settled) => this.#onStep(settled));
        return undefined;
      }
      this.#onStep(step);
    } catch (error) {
      this.#onFailure(error, 'read');
      return undefined;
    }
    return this.#at < this.#rows.length ? this.#handOut() : undefined;
  }

  /** Lets a low-level source emit. Returns whether it may have. */
  poll(): boolean {
    if (!this.#mayRead()) return false;
    try {
      if (this.#lowLevel === undefined) {
        const { spout, context } = this.#options;
        const opened = this.#options.inCall('open', () => spout.open!(context, this.#from));
        if (isPromiseLike(opened)) {
          this.#openingSinceMs = context.clock.nowMs();
          this.#waitFor(opened, (source) => {
            this.#lowLevel = source;
            // Nobody had it when the task was closed.
            if (this.#closed) void this.close();
          });
          return false;
        }
        this.#lowLevel = opened;
      }
      if (!this.#isActive) {
        this.#isActive = true;
        this.#callBack('activate', () => this.#lowLevel?.activate?.());
      }
      const source = this.#lowLevel;
      const { out } = this.#options;
      const answer = areCallsFollowed() ? followed(this.#task, () => source.next(out)) : source.next(out);
      if (isPromiseLike(answer)) {
        this.#waitFor(answer, (settled) => this.#onAnswer(settled));
        return false;
      }
      this.#onAnswer(answer);
      return answer !== 'idle';
    } catch (error) {
      this.#onFailure(error, 'next');
      return false;
    }
  }

  ack(id: unknown): void {
    this.#askSoon();
    this.#callBack('ack', () => this.#lowLevel?.ack?.(id));
  }

  fail(id: unknown, reason: string): void {
    this.#askSoon();
    this.#callBack('fail', () => this.#lowLevel?.fail?.(id, reason));
  }

  /** Nothing will be asked for until the next {@link poll}. */
  deactivate(): void {
    if (!this.#isActive) return;
    this.#isActive = false;
    this.#callBack('deactivate', () => this.#lowLevel?.deactivate?.());
  }

  /** Ends reading for good. */
  async close(): Promise<void> {
    this.#closed = true;
    try {
      await this.#options.inCall('close', (): unknown => {
        if (this.#lowLevel !== undefined) return this.#lowLevel.close?.();
        return this.#waiting ? undefined : this.#reader?.return?.();
      });
    } catch (error) {
      this.#options.onError(error, 'close');
    }
  }

  #handOut(): SourceRow | undefined {
    const row = this.#rows[this.#at++]!;
    try {
      checkItem(row, this.#options.context.component);
    } catch (error) {
      this.#refuse(error);
      return undefined;
    }
    if (row.position !== undefined) this.#from = row.position;
    if (isRowCount(row.lag)) this.#lag = row.lag;
    return row;
  }

  /** What was read is not what it must be: as if `read` had thrown in its place. */
  #refuse(error: unknown): void {
    this.#rows = [];
    this.#at = 0;
    const reader = this.#reader;
    this.#onFailure(error, 'read');
    try {
      const returned: unknown = this.#options.inCall('close', () => reader?.return?.());
      if (isPromiseLike(returned))
        void Promise.resolve(returned).then(undefined, (fault: unknown) =>
          this.#options.onError(fault, 'close'),
        );
    } catch (fault) {
      this.#options.onError(fault, 'close');
    }
  }

  #mayRead(): boolean {
    if (this.ended || this.#waiting || this.#closed) return false;
    if (this.#pauseUntilMs > 0) {
      if (this.#options.clock.nowMs() < this.#pauseUntilMs) return false;
      this.#pauseUntilMs = 0;
      this.#idle = false;
    }
    return true;
  }

  #openReader(): Reader {
    const rows = this.#options.spout.read!(this.#options.context, this.#from);
    if (Symbol.asyncIterator in rows) return rows[Symbol.asyncIterator]();
    return rows[Symbol.iterator]();
  }

  #onStep(step: Step): void {
    if (step.done === true) {
      this.ended = true;
      return;
    }
    this.#pauseMs = this.#options.settings['worker.restart-backoff'];
    this.#rows = isRows(step.value) ? step.value : [step.value];
    this.#at = 0;
    if (this.#rows.length === 0) this.#rest();
    else this.#restMs = SHORTEST_REST_MS;
  }

  /** Nothing to read now: asks again in a moment, and later each time, so that an idle source costs next to nothing. */
  #rest(): void {
    this.#idle = true;
    this.#pauseUntilMs = this.#options.clock.nowMs() + this.#restMs;
    this.#restMs = Math.min(2 * this.#restMs, this.#options.settings['spout.idle-backoff-max']);
  }

  /** There may be something now. */
  askNow(): void {
    if (this.#idle) this.#pauseUntilMs = this.#options.clock.nowMs();
  }

  /** What an idle source waited for may just have happened. */
  #askSoon(): void {
    if (!this.#idle) return;
    this.#restMs = SHORTEST_REST_MS;
    this.#pauseUntilMs = Math.min(this.#pauseUntilMs, this.#options.clock.nowMs() + SHORTEST_REST_MS);
  }

  #onAnswer(answer: unknown): void {
    this.#pauseMs = this.#options.settings['worker.restart-backoff'];
    if (answer === 'ended') this.ended = true;
    else if (answer === 'idle') this.#rest();
    else this.#restMs = SHORTEST_REST_MS;
  }

  #waitFor<T>(promise: PromiseLike<T>, onSettled: (value: T) => void): void {
    this.#waiting = true;
    void Promise.resolve(promise).then(
      (value) => {
        this.#waiting = false;
        this.#openingSinceMs = null;
        try {
          onSettled(value);
        } catch (error) {
          // An iterator of JavaScript may give something else than a step.
          this.#onFailure(error, this.isLowLevel ? 'next' : 'read');
        }
        this.#options.wake();
      },
      (error: unknown) => {
        this.#waiting = false;
        this.#openingSinceMs = null;
        this.#onFailure(error, this.isLowLevel ? 'next' : 'read');
        this.#options.wake();
      },
    );
  }

  #onFailure(error: unknown, call: string): void {
    if (this.#closed) return;
    this.#options.onError(error, call);
    this.#reader = undefined;
    this.#pauseUntilMs = this.#options.clock.nowMs() + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, this.#options.settings['worker.restart-backoff-max']);
  }

  #callBack(call: 'ack' | 'fail' | 'activate' | 'deactivate', run: () => unknown): void {
    try {
      const answer = this.#options.inCall(call, run);
      if (isPromiseLike(answer))
        void Promise.resolve(answer).then(undefined, (error: unknown) => this.#options.onError(error, call));
    } catch (error) {
      this.#options.onError(error, call);
    }
  }
}

function isRowCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isRows(value: SourceRow | readonly SourceRow[]): value is readonly SourceRow[] {
  return Array.isArray(value);
}
