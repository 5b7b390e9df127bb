/**
 * Calls of a bolt's `process` that are not over when it returns: of asynchronous tasks, whose promise settles later, and of
 * manual tasks, whose row user code holds until it acks or fails it. Invariants B3 and B4 of bolt-executor.ts hold here.
 */
import { type Clock, IsobarError, sketchBucket } from '../base/index.js';
import { isPromiseLike, type ComponentDescription, type Row } from '../topology/index.js';
import type { FailureReason } from './acking/replay-policy.js';
import { reportUserError, type BoltTaskRunner } from './bolt-task.js';
import { C_ACKED, C_EXECUTED } from './counters.js';
import { BoltOut, ManualAnchor } from './task-out.js';
import type { ThreadContext } from './thread-context.js';
import { inCall } from './user-calls.js';

/** A row that was taken from the queue. */
export interface TakenRow {
  readonly row: Row;
  readonly subscription: number;
  readonly sourceTask: number;
  /** Root task 0: it is in no tree. */
  readonly rootTask: number;
  readonly rootGeneration: number;
  readonly rootSequence: number;
  /** The anchors of a row that has several. */
  readonly several: Int32Array | null;
  readonly edgeHigh: number;
  readonly edgeLow: number;
  readonly hasCycleToken: boolean;
}

type Root = Pick<TakenRow, 'rootTask' | 'rootGeneration' | 'rootSequence' | 'several'>;

export class LastingCalls {
  readonly #component: ComponentDescription;
  readonly #context: ThreadContext;
  readonly #clock: Clock;
  /** By subscription: hash of the key of fields groupings. */
  readonly #keyHashes: readonly (((row: Row) => number) | undefined)[];

  constructor(
    component: ComponentDescription,
    context: ThreadContext,
    keyHashes: readonly (((row: Row) => number) | undefined)[],
  ) {
    this.#component = component;
    this.#context = context;
    this.#clock = context.options.clock;
    this.#keyHashes = keyHashes;
  }

  /** Gives a row to an asynchronous or manual task, when the earlier rows of its key are done. */
  run(task: BoltTaskRunner, taken: TakenRow): void {
    task.inFlight++;
    const key = this.#orderKey(taken);
    if (key === null) this.#start(task, taken, key);
    else {
      const { rootTask, rootSequence, several } = taken;
      const start = (): void => this.#start(task, taken, key);
      task.lines.enter(key, { rootTask, rootSequence, several, start });
    }
  }

  /**
   * A task that was synchronous has returned a promise: from now on it is asynchronous, and what it was given for this call
   * stays this call's.
   */
  takeOver(task: BoltTaskRunner, out: BoltOut, answer: PromiseLike<unknown>, taken: TakenRow): void {
    task.isAsync = true;
    task.out = new BoltOut(task);
    task.inFlight++;
    this.#follow(task, out, answer, this.#orderKey(taken), taken, this.#clock.nowMs(), null);
  }

  /** User code has failed a row by what it threw. */
  failRow(task: BoltTaskRunner, root: Root, error: unknown): void {
    const overflow = error instanceof IsobarError && error.code === 'CYCLE_OVERFLOW';
    reportUserError(task, error, 'process');
    this.#failRoot(task, root, overflow ? 'overflow' : 'user');
  }

  #start(task: BoltTaskRunner, taken: TakenRow, key: number | null): void {
    if (task.isRefusing) {
      this.#failRoot(task, taken, 'moved');
      finish(task, key);
      return;
    }
    const { row, subscription } = taken;
    const startMs = this.#clock.nowMs();
    const out = new BoltOut(task);
    out.begin(taken.rootTask, taken.rootGeneration, taken.rootSequence, taken.several, taken.hasCycleToken);
    task.counters[C_EXECUTED]!++;
    const anchor = this.#component.manual ? this.#holdRow(task, taken, startMs) : null;
    out.anchor = anchor;
    const handler = task.handlers[subscription]!;
    let answer: unknown;
    try {
      answer = inCall(this.#context.options.progress, task.number, 'process', () =>
        anchor === null ? handler(row, out) : handler(row, out, anchor),
      );
    } catch (error) {
      this.#onFailed(task, out, anchor, error);
      finish(task, key);
      return;
    }
    if (isPromiseLike(answer)) {
      task.isAsync = true;
      this.#follow(task, out, answer, key, taken, startMs, anchor);
      return;
    }
    this.#onReturned(task, out, anchor, taken, startMs);
    finish(task, key);
  }

  /** Waits for the promise of a call; one of a library of its own may throw where a promise must not. */
  #follow(
    task: BoltTaskRunner,
    out: BoltOut,
    answer: PromiseLike<unknown>,
    key: number | null,
    taken: TakenRow,
    startMs: number,
    anchor: ManualAnchor | null,
  ): void {
    if (key !== null) task.lines.hold(key);
    let settled = false;
    const call = {
      sinceMs: startMs,
      rootTask: out.rootTask,
      rootSequence: out.rootSequence,
      fail: (reason: FailureReason): void => {
        settled = true;
        out.open = false;
        this.#failRoot(task, out, reason);
        finish(task, key);
      },
    };
    if (anchor === null) task.openCalls.add(call);
    const settle = (act: () => void): void => {
      task.openCalls.delete(call);
      if (settled) return;
      settled = true;
      act();
      finish(task, key);
      this.#context.options.wake();
    };
    void Promise.resolve(answer).then(
      () => settle(() => this.#onReturned(task, out, anchor, taken, startMs)),
      (error: unknown) => settle(() => this.#onFailed(task, out, anchor, error)),
    );
  }

  #onReturned(
    task: BoltTaskRunner,
    out: BoltOut,
    anchor: ManualAnchor | null,
    { edgeHigh, edgeLow }: TakenRow,
    startMs: number,
  ): void {
    out.open = false;
    task.sketch[sketchBucket((this.#clock.nowMs() - startMs) * 1000)]!++;
    if (anchor !== null) return;
    task.counters[C_ACKED]!++;
    if (out.several !== null) {
      this.#context.ackSeveral(out.several, out.edgesHigh, out.edgesLow);
    } else if (out.rootTask !== 0) {
      const [high, low] = [edgeHigh ^ out.edgesHigh, edgeLow ^ out.edgesLow];
      this.#context.ack(out.rootTask, out.rootGeneration, out.rootSequence, high, low);
    }
  }

  #onFailed(task: BoltTaskRunner, out: BoltOut, anchor: ManualAnchor | null, error: unknown): void {
    out.open = false;
    if (anchor === null) this.failRow(task, out, error);
    else if (!anchor.settled && !anchor.expired) anchor.fail(error);
    else reportUserError(task, error, 'process');
  }

  /** User code has a row until it settles its anchor. */
  #holdRow(task: BoltTaskRunner, taken: TakenRow, sinceMs: number): ManualAnchor {
    const { rootTask, rootGeneration, rootSequence, several } = taken;
    const onSettled = (settled: ManualAnchor, failure: { error: unknown } | null): void => {
      task.openCalls.delete(call);
      if (failure !== null) this.failRow(task, taken, failure.error);
      else {
        task.counters[C_ACKED]!++;
        const { edgesHigh, edgesLow } = settled;
        // The anchor's own accumulator started at the row's edge, which `several` holds per root.
        if (several !== null) this.#context.ackSeveral(several, edgesHigh, edgesLow);
        else if (rootTask !== 0)
          this.#context.ack(rootTask, rootGeneration, rootSequence, edgesHigh, edgesLow);
      }
      this.#context.options.wake();
    };
    const anchor = new ManualAnchor({ onSettled }, taken, sinceMs);
    const call = {
      sinceMs,
      rootTask,
      rootSequence,
      fail: (reason: FailureReason): void => {
        anchor.expired = true;
        this.#failRoot(task, taken, reason);
      },
    };
    task.openCalls.add(call);
    return anchor;
  }

  #failRoot(task: BoltTaskRunner, root: Root, reason: FailureReason): void {
    task.countFailure(reason);
    const { rootTask, rootGeneration, rootSequence, several } = root;
    if (several !== null) this.#context.failSeveral(several, reason, task.number);
    else if (rootTask !== 0) this.#context.fail(rootTask, rootGeneration, rootSequence, reason, task.number);
  }

  /** What rows that must keep their order have in common; null: the bolt wants none. */
  #orderKey({ subscription, row, sourceTask }: TakenRow): number | null {
    if (this.#component.unordered) return null;
    const hash = this.#keyHashes[subscription];
    // Keys of different subscriptions may share a line: that only orders more than is promised.
    return hash === undefined ? sourceTask : hash(row);
  }
}

function finish(task: BoltTaskRunner, key: number | null): void {
  task.inFlight--;
  if (key !== null) task.lines.leave(key);
}
