/**
 * One task of a bolt: its user code, its counters, and the trees that are rooted at it (what `tick` and `end` emit).
 * Rows are given to it by its executor.
 */
import { toErrorRecord, toIsobarError } from '../base/index.js';
import { isPromiseLike, type BoltTask, type ComponentDescription } from '../topology/index.js';
import type { FailureReason } from './acking/replay-policy.js';
import { TreeLedger } from './acking/tree-ledger.js';
import {
  C_ENDED,
  C_FAILED,
  C_FAILURES_BY_REASON,
  C_GENERATION,
  C_MOVABLE,
  C_PENDING,
  FAILURE_REASONS,
  type CounterBlock,
} from './counters.js';
import { OrderLines } from './order-lines.js';
import type { StreamOutputs } from './outputs.js';
import { BoltOut, type EmittingTask } from './task-out.js';
import type { LocalRoot, ThreadContext } from './thread-context.js';

export type Handler = BoltTask['process'][string];

export class BoltTaskRunner implements EmittingTask, LocalRoot {
  readonly number: number;
  readonly component: string;
  readonly context: ThreadContext;
  readonly streams: ReadonlyMap<string, StreamOutputs>;
  readonly defaultStream: StreamOutputs | undefined;
  readonly counters: Float64Array;
  /** Of executing a row. */
  readonly sketch: Int32Array;
  readonly generation: number;
  readonly task: BoltTask;
  /** By subscription. */
  readonly handlers: readonly (Handler | undefined)[];
  readonly #tickMs: number | null;
  out: BoltOut;
  isAsync = false;
  inFlight = 0;
  /** Rows of an asynchronous task that wait for an earlier row of the same key. */
  readonly lines = new OrderLines();
  /** Calls whose promise has not settled, and the anchors that user code holds. */
  readonly openCalls = new Set<{
    /** When it began, ms; later by the time that the thread has stood since. */
    sinceMs: number;
    /** The tree of the row; task 0: of none, or of several. */
    readonly rootTask: number;
    readonly rootSequence: number;
    readonly fail: (reason: FailureReason) => void;
  }>();
  readonly ledger: TreeLedger<'tick' | 'end'>;
  nextTickMs = Infinity;
  ended = false;
  ending = false;
  /** About to leave, and time is up: rows that wait for an earlier one of their key fail as moved. */
  isRefusing = false;
  /** Calls of `tick` or `end` whose promise has not settled. */
  rootedCalls = 0;
  /** End marks received, as subscription × sending task (acking off). */
  readonly endMarks = new Set<string>();

  constructor(options: {
    number: number;
    component: string;
    context: ThreadContext;
    streams: ReadonlyMap<string, StreamOutputs>;
    block: CounterBlock;
    generation: number;
    task: BoltTask;
    handlers: readonly (Handler | undefined)[];
    description: ComponentDescription;
  }) {
    this.number = options.number;
    this.component = options.component;
    this.context = options.context;
    this.streams = options.streams;
    this.defaultStream = options.streams.get('default');
    this.counters = options.block.counters;
    this.sketch = options.block.sketch;
    this.generation = options.generation;
    this.counters[C_GENERATION] = options.generation;
    this.task = options.task;
    this.handlers = options.handlers;
    const { stateful, movable } = options.description;
    this.counters[C_MOVABLE] = !stateful || movable || options.task.save !== undefined ? 1 : 0;
    this.#tickMs = options.task.tick === undefined ? null : options.description.tickMs;
    this.scheduleTick();
    this.out = new BoltOut(this);
    this.ledger = new TreeLedger({
      initialSlots: 16,
      pendingLimit: options.context.options.settings['spout.pending-limit'],
      firstSequence: firstSequence(options.context),
      onComplete: () => this.pendingChanged(),
    });
  }

  /** The next tick is due in a whole period. */
  scheduleTick(): void {
    this.nextTickMs =
      this.#tickMs === null || this.ending ? Infinity : this.context.options.clock.nowMs() + this.#tickMs;
  }

  /** No row of it is in user code, and no tree that it has rooted is pending. */
  get isIdle(): boolean {
    return (
      this.inFlight === 0 && this.openCalls.size === 0 && this.rootedCalls === 0 && this.ledger.pending === 0
    );
  }

  /** It does not leave after all. */
  stay(): void {
    this.isRefusing = false;
    this.scheduleTick();
  }

  /** Fails as moved what is in user code, or waits for its turn there, and the trees that are rooted here. */
  giveUp(): void {
    this.isRefusing = true;
    for (const call of [...this.openCalls]) {
      this.openCalls.delete(call);
      call.fail('moved');
    }
    const trees: number[] = [];
    this.ledger.forEachPending((sequence) => trees.push(sequence));
    for (const sequence of trees) this.onFail(sequence, 'moved');
  }

  onAck(sequence: number, high: number, low: number): void {
    this.ledger.xor(sequence, high, low);
  }

  onFail(sequence: number, reason: FailureReason): void {
    const what = this.ledger.remove(sequence);
    if (what !== undefined) this.onRootLost(what, reason);
  }

  /**
   * A failed tick or end tree is counted and reported, not replayed; but rows of `end` that went with a thread or a move
   * are not user code's fault, and there is no later call that makes up for them: `end` is called again.
   */
  onRootLost(what: 'tick' | 'end', reason: FailureReason): void {
    this.countFailure(reason);
    if (what === 'end' && this.ended && (reason === 'lost' || reason === 'moved')) {
      this.ended = false;
      this.ending = false;
      this.counters[C_ENDED] = 0;
      this.context.options.wake();
    }
    this.pendingChanged();
  }

  countFailure(reason: FailureReason): void {
    this.counters[C_FAILED]!++;
    this.counters[C_FAILURES_BY_REASON + FAILURE_REASONS.indexOf(reason)]!++;
  }

  /** Calls `run` rooted at this task: what it emits makes a tree of its own. */
  runRooted(what: 'tick' | 'end', run: (out: BoltOut) => unknown, onDone: () => void): void {
    const { context } = this;
    const out = this.out;
    const sequence = context.acking ? this.ledger.reserve(what, context.turnMs) : 0;
    out.begin(context.acking ? this.number : 0, this.generation, sequence, null, true);
    const close = (): void => {
      out.open = false;
      if (context.acking) this.ledger.commit(sequence, out.edgesHigh, out.edgesLow);
      this.pendingChanged();
      onDone();
    };
    const abandon = (reason: FailureReason): void => {
      out.open = false;
      if (context.acking) this.ledger.remove(sequence);
      this.countFailure(reason);
      this.pendingChanged();
      onDone();
    };
    let answer: unknown;
    try {
      answer = run(out);
    } catch (error) {
      reportUserError(this, error, what);
      abandon('user');
      return;
    }
    if (!isPromiseLike(answer)) {
      close();
      return;
    }
    this.out = new BoltOut(this);
    this.pendingChanged();
    this.rootedCalls++;
    const settle = (act: () => void): void => {
      if (call.expired) return;
      this.openCalls.delete(call);
      this.rootedCalls--;
      act();
      context.options.wake();
    };
    const call = {
      sinceMs: context.options.clock.nowMs(),
      rootTask: 0,
      rootSequence: 0,
      expired: false,
      fail: (reason: FailureReason): void => {
        call.expired = true;
        this.rootedCalls--;
        abandon(reason);
      },
    };
    this.openCalls.add(call);
    void Promise.resolve(answer).then(
      () => settle(close),
      (error: unknown) => {
        reportUserError(this, error, what);
        settle(() => abandon('user'));
      },
    );
  }

  pendingChanged(): void {
    this.counters[C_PENDING] = this.ledger.pending;
    if (this.ended && this.ledger.pending === 0) this.context.options.post({ kind: 'changed' });
  }
}

/** Tells every receiver that this task will send nothing more (acking off). */
export function sendEndMarks(task: EmittingTask): void {
  for (const stream of task.streams.values()) {
    for (const { edge } of stream.outputs) {
      for (let target = edge.firstTask; target < edge.firstTask + edge.taskCount; target++) {
        task.context.send(edge, 0, target, task.number, 0, 0, 0, 0, 0, null, null);
      }
    }
  }
}

export function reportUserError(task: EmittingTask, error: unknown, call: string): void {
  const fault = toIsobarError(error, 'USER_CODE_FAILED', {
    where: `component "${task.component}", task ${task.number}, ${call}`,
  });
  task.context.options.logger.warn('user-code.failed', {
    component: task.component,
    task: task.number,
    call,
    code: fault.code,
    message: fault.message,
    stack: fault.stack,
  });
  const record = toErrorRecord(fault);
  task.context.userErrors.set(task.number, record);
  task.context.options.post({
    kind: 'error',
    error: { component: task.component, task: task.number, error: record },
  });
}

/**
 * Where a root task starts to count. Somewhere else in each life: tasks that stop and start again in one generation must
 * not take late acks of their former trees for acks of the new ones.
 */
export function firstSequence(context: ThreadContext): number {
  return Math.floor(context.options.random() * 2 ** 32) | 0;
}
