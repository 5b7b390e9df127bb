/**
 * Rows of this thread for one task that is on its way to another place. They wait here, in order, until it has arrived; the
 * gates close as those of a link without credit do, so that a sender holds only what one call emits beyond that.
 */
import { EXTRA_MARK, SUBSCRIPTION_MASK } from '../messaging/index.js';
import type { Row } from '../topology/index.js';
import { Gate } from './link.js';
import type { Edge } from './outputs.js';
import { Q_SOURCE_TASK, Q_SUBSCRIPTION, Q_TARGET_TASK, RowQueue } from './row-queue.js';
import { cycleOverflow, type LocalTarget, type ThreadContext } from './thread-context.js';

export class HeldRows implements LocalTarget {
  readonly gate = new Gate();
  readonly cycleGate = new Gate();
  readonly #edges: readonly Edge[];
  readonly #limit: number;
  readonly #extraLimit: number;
  readonly #queue = new RowQueue();
  #cycleRows = 0;
  #extra = 0;
  #cycle = -1;

  constructor(context: ThreadContext, edges: readonly Edge[]) {
    const { settings } = context.options;
    this.#edges = edges;
    this.#limit = settings['messaging.credit'];
    this.#extraLimit = settings['cycle.reserve'];
  }

  get size(): number {
    return this.#queue.size;
  }

  /** Number of the cycle that the task is in; -1: none, or no row of it waits. */
  get cycle(): number {
    return this.#cycle;
  }

  /** Rows of that cycle. */
  get queuedOfCycle(): number {
    return this.#cycleRows;
  }

  accept(
    row: Row | null,
    several: Int32Array | null,
    edge: Edge,
    subscription: number,
    targetTask: number,
    sourceTask: number,
    rootTask: number,
    rootGeneration: number,
    rootSequence: number,
    edgeHigh: number,
    edgeLow: number,
  ): void {
    if ((subscription & EXTRA_MARK) !== 0 && this.#extra >= this.#extraLimit) throw cycleOverflow(edge);
    this.#count(subscription, 1);
    this.#queue.push(
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
    this.#updateGates();
  }

  /** Rows that had been sent before, and have not left. */
  take(rows: RowQueue): void {
    while (rows.size > 0) {
      this.#count(rows.words[rows.headWords + Q_SUBSCRIPTION]!, 1);
      rows.moveHeadTo(this.#queue);
    }
    this.#updateGates();
  }

  /** Does a row of that task wait here, on an edge that is not part of a cycle? */
  hasRowOf(sourceTask: number): boolean {
    return this.#queue.some(
      (words, at) =>
        words[at + Q_SOURCE_TASK] === sourceTask && !this.#edgeOf(words[at + Q_SUBSCRIPTION]!).inCycle,
    );
  }

  /** The task has arrived: sends all rows on. */
  release(context: ThreadContext): void {
    const queue = this.#queue;
    while (queue.size > 0) {
      const { words, headWords: at, headSeveral: several } = queue;
      const [rootTask, generation, sequence] = [words[at + 3]!, words[at + 4]!, words[at + 5]!];
      const target = words[at + Q_TARGET_TASK]!;
      const marked = words[at + Q_SUBSCRIPTION]!;
      this.#count(marked, -1);
      try {
        context.send(
          this.#edgeOf(marked),
          marked & EXTRA_MARK,
          target,
          words[at + Q_SOURCE_TASK]!,
          rootTask,
          generation,
          sequence,
          words[at + 6]!,
          words[at + 7]!,
          several,
          queue.headRow,
        );
      } catch {
        // Only a cycle that has used up its reserve refuses a row; its call has long returned.
        if (several !== null) context.failSeveral(several, 'overflow', target);
        else if (rootTask !== 0) context.fail(rootTask, generation, sequence, 'overflow', target);
      }
      queue.shift();
    }
    this.#updateGates();
  }

  #edgeOf(marked: number): Edge {
    return this.#edges[marked & SUBSCRIPTION_MASK]!;
  }

  #count(marked: number, by: 1 | -1): void {
    const { inCycle, cycle } = this.#edgeOf(marked);
    if (!inCycle) return;
    this.#cycle = cycle;
    this.#cycleRows += by;
    if ((marked & EXTRA_MARK) !== 0) this.#extra += by;
  }

  #updateGates(): void {
    const isFull = this.#queue.size >= this.#limit;
    this.gate.blocked = isFull;
    this.cycleGate.blocked = isFull;
  }
}
