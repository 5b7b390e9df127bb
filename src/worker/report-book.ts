/** What a worker keeps for its heartbeats beyond counters: errors, lost states, dead-letter files. Bounded. */
import { type ErrorRecord, errorKind, type LogFile } from '../base/index.js';
import type { LongCall, LostState, OldestPending, ReportedError } from '../coordination/index.js';
import type { ThreadError } from './thread-messages.js';

/** Kinds of errors kept of each component, so that one that fails in many ways does not push out the others'. */
const MAX_ERRORS_OF_COMPONENT = 8;
const MAX_LOST_STATES = 1024;

export class ReportBook {
  readonly #errors = new Map<string, ReportedError>();
  readonly #lostStates: LostState[] = [];
  readonly #deadLetterFiles = new Set<string>();
  readonly #counters = new Map<
    number,
    readonly (readonly [component: string, name: string, value: number])[]
  >();
  readonly #oldest = new Map<number, OldestPending | null>();
  readonly #longCalls = new Map<number, readonly LongCall[]>();

  /** Counts an error with those of its kind. */
  addError(error: ThreadError, wallMs: number): void {
    const key = errorKind(error.component, error.error);
    const before = this.#errors.get(key);
    this.#errors.delete(key);
    this.#errors.set(key, {
      component: error.component,
      task: error.task,
      error: error.error,
      count: (before?.count ?? 0) + 1,
      firstMs: before?.firstMs ?? wallMs,
      lastMs: wallMs,
    });
    const ofComponent = [...this.#errors].filter(([, { component }]) => component === error.component);
    const [oldest] = ofComponent;
    if (oldest !== undefined && ofComponent.length > MAX_ERRORS_OF_COMPONENT) this.#errors.delete(oldest[0]);
  }

  /** Records of the worker's log that could not be written so far, what user code printed among them. */
  setUnwrittenRecords(log: Pick<LogFile, 'unwritten' | 'lastFailure' | 'path'>, wallMs: number): void {
    const count = log.unwritten;
    if (count === 0) return;
    const error: ErrorRecord = {
      code: 'OUTPUT_LOST',
      message: "records of a worker's log, what was printed among them, could not be written",
      details: {
        expected: 'a log that can be written',
        ...(log.lastFailure === null ? {} : { found: log.lastFailure }),
        where: log.path,
      },
    };
    const key = errorKind('', error);
    const before = this.#errors.get(key);
    if (count === (before?.count ?? 0)) return;
    const firstMs = before?.firstMs ?? wallMs;
    this.#errors.set(key, { component: '', task: 0, error, count, firstMs, lastMs: wallMs });
  }

  addLostState(lost: LostState): void {
    if (this.#lostStates.length < MAX_LOST_STATES) this.#lostStates.push(lost);
  }

  addDeadLetterFile(path: string): void {
    this.#deadLetterFiles.add(path);
  }

  setThreadReport(
    thread: number,
    counters: readonly (readonly [component: string, name: string, value: number])[],
    oldest: OldestPending | null,
    longCalls: readonly LongCall[],
  ): void {
    this.#counters.set(thread, counters);
    this.#oldest.set(thread, oldest);
    this.#longCalls.set(thread, longCalls);
  }

  forgetThread(thread: number): void {
    this.#oldest.delete(thread);
    this.#longCalls.delete(thread);
  }

  longCalls(thread: number): readonly LongCall[] {
    return this.#longCalls.get(thread) ?? [];
  }

  get errors(): readonly ReportedError[] {
    return [...this.#errors.values()];
  }

  get lostStates(): readonly LostState[] {
    return this.#lostStates;
  }

  get deadLetterFiles(): readonly string[] {
    return [...this.#deadLetterFiles];
  }

  /** Sums of user counters, by component and name. */
  userCounters(component: string): Record<string, number> {
    const sums: Record<string, number> = {};
    for (const counters of this.#counters.values()) {
      for (const [owner, name, value] of counters)
        if (owner === component) sums[name] = (sums[name] ?? 0) + value;
    }
    return sums;
  }

  get oldestPending(): OldestPending | null {
    let oldest: OldestPending | null = null;
    for (const candidate of this.#oldest.values()) {
      if (candidate !== null && (oldest === null || candidate.ageMs > oldest.ageMs)) oldest = candidate;
    }
    return oldest;
  }
}
