/**
 * When a supervisor writes its folded heartbeat: periodically, more seldom while there is nothing new, and within
 * milliseconds when something changed that a decision waits for. One write at a time; changes during a write make one
 * more.
 */
import type { CancelTimer, Clock, Logger } from '../base/index.js';
import type { WorkerHeartbeat } from '../coordination/index.js';

const COALESCE_MS = 5;

export class HeartbeatPublisher {
  readonly #publish: () => Promise<void>;
  readonly #hasNews: () => boolean;
  readonly #quietIntervalMs: number;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #stopPeriod: CancelTimer;
  #isScheduled = false;
  #publishing: Promise<void> | undefined;
  #isStale = false;
  /** When the last write that succeeded began. */
  #publishedMs = -Infinity;
  #isClosed = false;

  constructor(options: {
    publish: () => Promise<void>;
    /** There is something that the last write did not say. */
    hasNews: () => boolean;
    intervalMs: number;
    /** Longest time between two writes. */
    quietIntervalMs: number;
    clock: Clock;
    logger: Logger;
  }) {
    this.#publish = options.publish;
    this.#hasNews = options.hasNews;
    this.#quietIntervalMs = options.quietIntervalMs;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#stopPeriod = options.clock.every(options.intervalMs, () => {
      const isDue = this.#clock.nowMs() - this.#publishedMs >= this.#quietIntervalMs;
      if (isDue || this.#hasNews()) void this.now();
    });
  }

  /** Publishes in a few milliseconds, together with what else changes until then. */
  soon(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    this.#clock.after(COALESCE_MS, () => {
      this.#isScheduled = false;
      void this.now();
    });
  }

  /** Resolves when what holds now has been published, or could not be. Never rejects. */
  now(): Promise<void> {
    this.#isStale = true;
    this.#publishing ??= this.#publishUntilFresh();
    return this.#publishing;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopPeriod();
  }

  async #publishUntilFresh(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      const nowMs = this.#clock.nowMs();
      try {
        await this.#publish();
        this.#publishedMs = nowMs;
      } catch (error) {
        // The next period says it again, with what has changed by then.
        this.#publishedMs = -Infinity;
        this.#logger.debug('heartbeat.not-published', { message: String(error) });
        this.#isStale = false;
      }
    }
    // In the same turn as the last look at #isStale, or a change in between is lost.
    this.#publishing = undefined;
  }
}

/**
 * The part of a heartbeat that decisions wait for: starts, ends, losses, and quiet tasks. Totals and depths are not in
 * it: they can wait for the period.
 */
export function decisionKey(heartbeat: WorkerHeartbeat): string {
  const { workerId, ready, assignmentVersion, tasks, threads, errors, lostStates, deadLetterFiles } =
    heartbeat;
  const isIdle = heartbeat.isIdle === true;
  const rows: (string | number)[] = [workerId, ready ? 1 : 0, isIdle ? 1 : 0, assignmentVersion];
  for (const task of tasks) {
    const isQuiet = task.pending === 0 && task.queued === 0;
    // A running task turns quiet and busy all the time; only where sources have come to rest does somebody wait for it.
    rows.push(task.task, task.generation, task.ended ? 1 : 0, task.stopped ? 1 : 0);
    if (task.isRunning === false) rows.push('starting');
    if (task.ended || task.stopped) rows.push(isQuiet ? 1 : 0);
  }
  for (const { index, generation, state } of threads) rows.push(index, generation, state === 'dead' ? 1 : 0);
  rows.push(errors.length, lostStates.length, deadLetterFiles.length);
  return rows.join(' ');
}
