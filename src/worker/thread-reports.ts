/** What only this thread knows and the main thread is told from time to time: counters of user code, what waits, positions. */
import type { OldestPending } from '../coordination/index.js';
import { encodePlain } from './acking/plain-values.js';
import { findRow } from './find-row.js';
import type { ThreadContext } from './thread-context.js';
import type { FromThread } from './thread-messages.js';
import type { ThreadRoutes } from './thread-routes.js';
import type { ThreadTasks } from './thread-tasks.js';

const REPORT_MS = 1000;

export interface ThreadReportsOptions {
  readonly tasks: ThreadTasks;
  readonly routes: ThreadRoutes;
  readonly context: ThreadContext;
  /** By component and name. */
  readonly userCounters: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly post: (message: FromThread) => void;
}

export class ThreadReports {
  readonly #options: ThreadReportsOptions;
  #lastReport = '';
  #nextReportMs = 0;
  #nextPositionsMs = 0;

  constructor(options: ThreadReportsOptions) {
    this.#options = options;
  }

  postIfDue(nowMs: number): void {
    if (nowMs >= this.#nextPositionsMs) {
      this.#nextPositionsMs = nowMs + this.#options.context.options.settings['spout.position-interval'];
      this.postPositions();
    }
    if (nowMs >= this.#nextReportMs) {
      this.#nextReportMs = nowMs + REPORT_MS;
      this.#report(nowMs);
    }
  }

  postPositions(): void {
    const positions = this.#options.tasks.spouts.flatMap((spout) =>
      spout.tasks.map((task) => task.takePosition()).filter((position) => position !== undefined),
    );
    if (positions.length > 0) this.#options.post({ kind: 'positions', positions });
  }

  /** Where a row of that tree is, as far as this thread can see. */
  holderOf(rootTask: number, sequence: number): string | null {
    const { tasks, routes, context } = this.#options;
    return findRow(tasks.bolts, routes.links, rootTask, sequence, context.options.clock.nowMs());
  }

  /** Says nothing when nothing has changed. */
  #report(nowMs: number): void {
    const { userCounters, tasks, context, post } = this.#options;
    const counters = [...userCounters].flatMap(([component, ofComponent]) =>
      [...ofComponent].map(([name, value]) => [component, name, value] as const),
    );
    const oldest = this.#oldestPending(nowMs);
    const longCalls = tasks.longCalls(nowMs, context.options.settings['worker.stuck-warning']);
    const text = JSON.stringify([counters, oldest, longCalls]);
    if (text === this.#lastReport) return;
    this.#lastReport = text;
    post({ kind: 'report', counters, oldest, longCalls });
  }

  #oldestPending(nowMs: number): OldestPending | null {
    let oldest: OldestPending | null = null;
    for (const spout of this.#options.tasks.spouts) {
      for (const task of spout.tasks) {
        const found = task.ledger.oldest();
        if (found === undefined) continue;
        const ageMs = nowMs - found.openedMs;
        if (oldest !== null && oldest.ageMs >= ageMs) continue;
        const { position } = found.item;
        oldest = {
          component: task.component,
          task: task.number,
          ageMs,
          row: position === undefined ? `sequence ${found.sequence}` : `position ${textOf(position)}`,
          sequence: found.sequence,
          heldBy: this.holderOf(task.number, found.sequence),
        };
      }
    }
    return oldest;
  }
}

/** A position as one line; it may be any value that can be stored, so also one that JSON cannot say. */
function textOf(position: unknown): string {
  return JSON.stringify(encodePlain(position));
}
