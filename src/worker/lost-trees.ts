/**
 * What becomes of the trees that are rooted in this thread when something was lost: they are marked, those that make progress
 * are let go, and the rest is replayed when the routes stand again, or after a while of quiet.
 */
import type { Clock, Logger, Settings } from '../base/index.js';
import type { ThreadContext } from './thread-context.js';
import type { ThreadTasks } from './thread-tasks.js';

/** Time after a loss in which a tree that is not lost makes progress, unless it waits. */
const UNMOVED_MS = 500;

export class LostTrees {
  readonly #tasks: ThreadTasks;
  readonly #context: ThreadContext;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** When marked trees that have not moved are replayed, ms of the clock. */
  #dueMs = Infinity;

  constructor(tasks: ThreadTasks, context: ThreadContext, clock: Clock, logger: Logger) {
    this.#tasks = tasks;
    this.#context = context;
    this.#settings = context.options.settings;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** When `replayIfDue` has something to do, ms of the clock. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /**
   * Marks every pending tree that was opened up to `openedByMs`. `hasEnded`: what was lost may have ended because of one of
   * the rows that are pending.
   */
  mark(hasEnded: boolean, openedByMs = Infinity): void {
    const { bolts, spouts } = this.#tasks;
    const executors = [...spouts, ...bolts];
    const nowMs = this.#clock.nowMs();
    const isMarked = executors.some(({ tasks }) => tasks.some(({ ledger }) => ledger.marked > 0));
    this.#context.isLossSuspicious = hasEnded || (isMarked && this.#context.isLossSuspicious);
    for (const { tasks } of executors) for (const { ledger } of tasks) ledger.markAll(nowMs, openedByMs);
  }

  /** Marks the trees that are older than the message time-out: nothing is known to be lost, but nothing moves. */
  suspect(): void {
    this.mark(false, this.#clock.nowMs() - this.#settings['topology.message-timeout']);
  }

  /**
   * What was lost has been replaced in the same moment: no routes will tell when to replay. What is not lost has a moment
   * to make progress.
   */
  replayUnmovedSoon(): void {
    if (this.#context.routesStand)
      this.#dueMs = this.#clock.nowMs() + Math.min(UNMOVED_MS, this.#settings['replay.quiet-time']);
  }

  replayIfDue(nowMs: number): void {
    if (nowMs < this.#dueMs) return;
    this.#dueMs = Infinity;
    // Otherwise the routes tell.
    if (this.#context.routesStand) this.replay(true);
  }

  /** Replays marked trees that have been quiet for long; `standAgain`: and those that have not moved. */
  replay(standAgain: boolean): void {
    const nowMs = this.#clock.nowMs();
    const quietMs = this.#settings['replay.quiet-time'];
    for (const spout of this.#tasks.spouts)
      for (const task of spout.tasks) task.replayLost(nowMs, standAgain);
    for (const bolt of this.#tasks.bolts) {
      for (const task of bolt.tasks) {
        if (task.ledger.marked === 0) continue;
        if (standAgain) for (const { item } of task.ledger.takeUnmoved()) task.onRootLost(item, 'lost');
        for (const { item } of task.ledger.takeQuiet(nowMs, quietMs)) task.onRootLost(item, 'lost');
      }
    }
  }

  /** Fails the trees that are older than the message time-out: their rows are nowhere. */
  expire(): void {
    if (!this.#context.routesStand) return;
    const openedBefore = this.#clock.nowMs() - this.#settings['topology.message-timeout'];
    for (const { tasks } of [...this.#tasks.spouts, ...this.#tasks.bolts]) {
      for (const task of tasks) {
        const expired: number[] = [];
        task.ledger.forEachPending((sequence, _item, openedMs) => {
          if (openedMs <= openedBefore) expired.push(sequence);
        });
        for (const sequence of expired) task.onFail(sequence, 'timeout', 0);
        if (expired.length > 0)
          this.#logger.error('trees.expired', {
            component: task.component,
            task: task.number,
            trees: expired.length,
          });
      }
    }
  }
}
