/**
 * Runs the tasks of one executor of a bolt, one row at a time, on its thread. Which tasks these are can change.
 *
 * Invariants
 * B1  A row is taken only while every component that this one sends to takes rows (gates open); inside a cycle, rows of
 *     the cycle are taken even when the cycle's own gates are closed, so that a cycle never waits for itself (see
 *     cycle-pressure.ts).
 * B2  Credit for a row goes back when the row is taken from the queue.
 * B3  A synchronous `process` is called without await; one that returned a promise makes its task asynchronous: rows of
 *     one key (fields groupings) or one sender then run one after the other, up to `bolt.max-in-flight` at once
 *     (lasting-calls.ts).
 * B4  Every row is acked or failed exactly once: when `process` returned, when its promise settled, or by its anchor.
 */
import { type Clock, sketchBucket } from '../base/index.js';
import { EXTRA_MARK, SUBSCRIPTION_MASK } from '../messaging/index.js';
import { isPromiseLike, type ComponentDescription, type Row } from '../topology/index.js';
import {
  C_ACKED,
  C_BLOCKED_MS,
  C_BUSY_MS,
  C_ENDED,
  C_EXECUTED,
  C_QUEUED,
  P_CALLS,
  P_IN_CALL,
  P_TASK,
} from './counters.js';
import { sendEndMarks, type BoltTaskRunner } from './bolt-task.js';
import { LastingCalls } from './lasting-calls.js';
import { isBlocked, NO_ROUTES_YET, type Gate, type SharedGate } from './link.js';
import type { Edge } from './outputs.js';
import {
  Q_COST,
  Q_EDGE_HIGH,
  Q_EDGE_LOW,
  Q_ORIGIN,
  Q_ROOT_GENERATION,
  Q_ROOT_SEQUENCE,
  Q_ROOT_TASK,
  Q_SOURCE_TASK,
  Q_SUBSCRIPTION,
  Q_TARGET_TASK,
  RowQueue,
} from './row-queue.js';
import { cycleOverflow, LOCAL_QUEUE_ROWS, type LocalTarget, type ThreadContext } from './thread-context.js';
import { inCall, IN_PROCESS } from './user-calls.js';

const EXECUTE_SAMPLE_MASK = 31;
/** A run of one executor ends after this time, so that links are drained and other executors get their turn. */
const RUN_BUDGET_MS = 1;

/** What all executors of one bolt in a thread have in common. */
export interface BoltWiring {
  readonly component: ComponentDescription;
  readonly context: ThreadContext;
  /** Blocked while a queue of any executor of the bolt in this thread is full: of rows from outside its cycle, and of the cycle. */
  readonly gate: SharedGate;
  readonly cycleGate: SharedGate;
  /** Number of the cycle that the bolt is in; -1: none. */
  readonly cycle: number;
  /** By subscription. */
  readonly isCycleEdge: readonly boolean[];
  /** By subscription: hash of the key of fields groupings. */
  readonly keyHashes: readonly (((row: Row) => number) | undefined)[];
  /** By subscription: name of the input. */
  readonly inputs: readonly string[];
  /** End marks that a task waits for (acking off). */
  readonly expectedEndMarks: number;
}

export class BoltExecutor implements LocalTarget {
  readonly component: ComponentDescription;
  /** Number of the cycle that the bolt is in; -1: none. */
  readonly cycle: number;
  readonly gate: SharedGate;
  readonly cycleGate: SharedGate;
  readonly tasks: BoltTaskRunner[] = [];
  /** Lowest number of its tasks. */
  #firstTask = 0;
  /** By place among the component's tasks. */
  readonly #taskAt: (BoltTaskRunner | undefined)[] = [];
  /** This executor has closed the gate of its bolt. */
  #isFull = false;
  #isCycleFull = false;
  readonly #componentIndex: number;
  readonly #context: ThreadContext;
  readonly #clock: Clock;
  readonly #progress: Int32Array;
  readonly #maxInFlight: number;
  readonly #isManual: boolean;
  readonly #queue = new RowQueue();
  readonly #cycleQueue = new RowQueue();
  /** Rows in it that are extra in the cycle. */
  #cycleExtra = 0;
  readonly #queueLimit: number;
  readonly #isCycleEdge: readonly boolean[];
  readonly #lasting: LastingCalls;
  /** Gates of receiving components outside this one's cycle, and inside it. */
  #gates: readonly Gate[] = NO_ROUTES_YET;
  #cycleGates: readonly Gate[] = [];
  readonly #inputs: readonly string[];
  /** Number of end marks that a task waits for (acking off). */
  readonly #expectedEndMarks: number;
  #checkMask = 31;
  /** Credit of rows taken in this run that has not gone back yet. */
  #grantOrigin = -1;
  #grantClass = 0;
  #grantCost = 0;

  constructor(wiring: BoltWiring) {
    const { context } = wiring;
    this.component = wiring.component;
    this.cycle = wiring.cycle;
    this.#context = context;
    this.#clock = context.options.clock;
    this.#progress = context.options.progress;
    this.#maxInFlight = context.options.settings['bolt.max-in-flight'];
    this.#isManual = wiring.component.manual;
    this.gate = wiring.gate;
    this.cycleGate = wiring.cycleGate;
    this.#isCycleEdge = wiring.isCycleEdge;
    this.#lasting = new LastingCalls(wiring.component, context, wiring.keyHashes);
    this.#inputs = wiring.inputs;
    this.#componentIndex = context.componentIndex.get(wiring.component.id)!;
    this.#queueLimit = Math.min(LOCAL_QUEUE_ROWS, context.options.settings['messaging.credit']);
    this.#expectedEndMarks = wiring.expectedEndMarks;
  }

  /** Takes a task in, with the rows that wait for it where it was in another executor of this thread before. */
  add(task: BoltTaskRunner, waiting: readonly RowQueue[] = []): void {
    let place = this.tasks.length;
    while (place > 0 && this.tasks[place - 1]!.number > task.number) place--;
    this.tasks.splice(place, 0, task);
    if (place === 0) this.#indexTasks();
    else this.#taskAt[task.number - this.#firstTask] = task;
    for (const rows of waiting) {
      while (rows.size > 0) {
        const isOfCycle = this.#isOfCycle(rows.words[rows.headWords]!);
        rows.moveHeadTo(isOfCycle ? this.#cycleQueue : this.#queue);
      }
    }
    this.#recountExtra();
    this.#updateOwnGates();
  }

  /** Lets a task go; returns the rows that wait for it, in order. */
  remove(task: BoltTaskRunner): readonly RowQueue[] {
    this.tasks.splice(this.tasks.indexOf(task), 1);
    this.#taskAt[task.number - this.#firstTask] = undefined;
    const waiting = [this.#cycleQueue.takeTask(task.number), this.#queue.takeTask(task.number)];
    this.#recountExtra();
    this.#updateOwnGates();
    return waiting;
  }

  /** An executor has few of its component's tasks, so the table begins at its own. */
  #indexTasks(): void {
    this.#firstTask = this.tasks[0]!.number;
    this.#taskAt.length = 0;
    for (const task of this.tasks) this.#taskAt[task.number - this.#firstTask] = task;
  }

  #updateOwnGates(): void {
    const isFull = this.#queue.size >= this.#queueLimit;
    if (isFull !== this.#isFull) this.#setFull(isFull);
    const isCycleFull = this.#cycleQueue.size >= this.#queueLimit;
    if (isCycleFull !== this.#isCycleFull) this.#setCycleFull(isCycleFull);
  }

  #setFull(isFull: boolean): void {
    this.#isFull = isFull;
    if (isFull) this.gate.close();
    else this.gate.open();
  }

  #setCycleFull(isFull: boolean): void {
    this.#isCycleFull = isFull;
    if (isFull) this.cycleGate.close();
    else this.cycleGate.open();
  }

  /** The marked number of a subscription is one of the cycle that this bolt is in. */
  #isOfCycle(marked: number): boolean {
    return this.#isCycleEdge[marked & SUBSCRIPTION_MASK] === true;
  }

  #recountExtra(): void {
    this.#cycleExtra = 0;
    this.#cycleQueue.some((words, at) => {
      if ((words[at + Q_SUBSCRIPTION]! & EXTRA_MARK) !== 0) this.#cycleExtra++;
      return false;
    });
  }

  setGates(gates: readonly Gate[], cycleGates: readonly Gate[]): void {
    this.#gates = gates;
    this.#cycleGates = cycleGates;
  }

  /** Rows of the cycle that this bolt is in. */
  get queuedOfCycle(): number {
    return this.#cycleQueue.size;
  }

  get queued(): number {
    return this.#queue.size + this.#cycleQueue.size;
  }

  someQueued(visit: (words: Int32Array, at: number) => boolean): boolean {
    return this.#queue.some(visit) || this.#cycleQueue.some(visit);
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
    if (edge.inCycle) {
      const queue = this.#cycleQueue;
      if ((subscription & EXTRA_MARK) !== 0) {
        if (this.#cycleExtra >= this.#context.options.settings['cycle.reserve']) throw cycleOverflow(edge);
        this.#cycleExtra++;
      }
      queue.push(
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
      if (queue.size >= this.#queueLimit && !this.#isCycleFull) this.#setCycleFull(true);
      return;
    }
    const queue = this.#queue;
    queue.push(
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
    if (queue.size >= this.#queueLimit && !this.#isFull) this.#setFull(true);
  }

  /** Takes a row that came over a link; credit bounds how many there can be. */
  acceptRemote(
    row: Row | null,
    several: Int32Array | null,
    words: Int32Array,
    at: number,
    origin: number,
    cost: number,
  ): void {
    const queue = this.#isOfCycle(words[at]!) ? this.#cycleQueue : this.#queue;
    if ((words[at]! & EXTRA_MARK) !== 0) this.#cycleExtra++;
    queue.push(
      row,
      several,
      words[at]!,
      words[at + 1]!,
      words[at + 2]!,
      words[at + 3]!,
      words[at + 4]!,
      words[at + 5]!,
      words[at + 6]!,
      words[at + 7]!,
      origin,
      cost,
    );
  }

  /** Runs rows until the budget is spent, the queues are empty or a gate is closed; returns how many. */
  run(budgetRows: number): number {
    if (this.#queue.size === 0 && this.#cycleQueue.size === 0) return 0;
    const startMs = this.#clock.nowMs();
    let done = 0;
    while (done < budgetRows) {
      if (isBlocked(this.#gates)) break;
      let queue: RowQueue;
      if (this.#cycleQueue.size > 0) queue = this.#cycleQueue;
      else if (this.#queue.size > 0 && !isBlocked(this.#cycleGates)) queue = this.#queue;
      else break;
      if (!this.#takeHead(queue)) break;
      done++;
      if ((done & this.#checkMask) === 0 && this.#clock.nowMs() - startMs > RUN_BUDGET_MS) break;
    }
    this.#grantTaken();
    if (done > 0) {
      const spentMs = this.#clock.nowMs() - startMs;
      const perRowMs = spentMs / done;
      this.#addTo(C_BUSY_MS, spentMs);
      this.#checkMask = perRowMs > 0.02 ? 0 : 31;
      this.#updateOwnGates();
    }
    return done;
  }

  /** For the time since the last look: were there rows, and receivers that took none? */
  noteBlocked(elapsedMs: number): void {
    const isHeldUp = isBlocked(this.#gates) || isBlocked(this.#cycleGates);
    if (isHeldUp && this.queued > 0) this.#addTo(C_BLOCKED_MS, elapsedMs);
  }

  #addTo(counter: number, value: number): void {
    const first = this.tasks[0];
    if (first !== undefined) first.counters[counter]! += value;
  }

  /** Milliseconds of the clock at which the next tick is due. */
  get nextTickMs(): number {
    let next = Infinity;
    for (const task of this.tasks) next = Math.min(next, task.nextTickMs);
    return next;
  }

  /** Runs ticks that are due, unless a receiver takes no rows. Returns how many. */
  tick(nowMs: number): number {
    const periodMs = this.component.tickMs;
    if (periodMs === null) return 0;
    let ran = 0;
    for (const task of this.tasks) {
      if (task.nextTickMs > nowMs || task.ending) continue;
      if (isBlocked(this.#gates) || isBlocked(this.#cycleGates)) continue;
      if (task.rootedCalls > 0) {
        // The last one is not done: this one is left out, so that slow ticks do not pile up.
        task.nextTickMs = nowMs + periodMs;
        continue;
      }
      // Ticks that fell due while the thread was busy are one tick.
      task.nextTickMs = nowMs + periodMs;
      task.runRooted(
        'tick',
        (out) => inCall(this.#progress, task.number, 'tick', () => task.task.tick!(out)),
        () => undefined,
      );
      ran++;
    }
    return ran;
  }

  /** Calls `end` on every task that has not ended and whose rows are all processed. Returns how many began to end. */
  end(): number {
    if (this.queued > 0 || isBlocked(this.#gates) || isBlocked(this.#cycleGates)) return 0;
    let begun = 0;
    for (const task of this.tasks) {
      if (task.ending || task.inFlight > 0 || task.openCalls.size > 0) continue;
      begun++;
      this.#endTask(task);
    }
    return begun;
  }

  #endTask(task: BoltTaskRunner): void {
    task.ending = true;
    task.nextTickMs = Infinity;
    const markEnded = (): void => {
      task.ended = true;
      if (!this.#context.acking) sendEndMarks(task);
      task.counters[C_ENDED] = 1;
      this.#context.options.post({ kind: 'changed' });
    };
    if (task.task.end === undefined) {
      markEnded();
      return;
    }
    task.runRooted(
      'end',
      (out) => inCall(this.#progress, task.number, 'end', () => task.task.end!(out)),
      markEnded,
    );
  }

  /** Nothing is queued, in user code or pending here. */
  get isCalm(): boolean {
    return (
      this.queued === 0 &&
      this.tasks.every(
        ({ inFlight, openCalls, ledger }) => inFlight === 0 && openCalls.size === 0 && ledger.pending === 0,
      )
    );
  }

  /** Fails what has been in user code for longer than the message time-out, time that the thread stood not counted. Returns how many. */
  expire(nowMs: number, stoodMs = 0): number {
    const timeoutMs = this.#context.options.settings['topology.message-timeout'];
    let expired = 0;
    for (const task of this.tasks) {
      for (const call of task.openCalls) {
        call.sinceMs = Math.min(nowMs, call.sinceMs + stoodMs);
        if (nowMs - call.sinceMs < timeoutMs) continue;
        task.openCalls.delete(call);
        call.fail('timeout');
        expired++;
      }
    }
    return expired;
  }

  /** A task stops: rows that it has not taken fail as moved, and their credit goes back. */
  refuse(waiting: readonly RowQueue[]): void {
    for (const rows of waiting) while (rows.size > 0) this.#refuseHead(rows);
    this.#grantTaken();
  }

  #refuseHead(queue: RowQueue): void {
    const { headWords: at, words, headSeveral: several } = queue;
    this.#giveBackCredit(queue, at);
    const task = words[at + Q_TARGET_TASK]!;
    if (several !== null) this.#context.failSeveral(several, 'moved', task);
    else if (words[at + Q_ROOT_TASK] !== 0) {
      const [root, generation] = [words[at + Q_ROOT_TASK]!, words[at + Q_ROOT_GENERATION]!];
      this.#context.fail(root, generation, words[at + Q_ROOT_SEQUENCE]!, 'moved', task);
    }
    queue.shift();
  }

  /** Does a row wait for that task? */
  hasRowFor(task: number): boolean {
    return this.someQueued((words, at) => words[at + Q_TARGET_TASK] === task);
  }

  updateDepths(): void {
    for (const task of this.tasks) {
      // In user code, rows that a manual bolt holds included.
      const inCode = Math.max(task.inFlight, task.openCalls.size);
      task.counters[C_QUEUED] = inCode + (task === this.tasks[0] ? this.queued : 0);
    }
  }

  #takeHead(queue: RowQueue): boolean {
    const at = queue.headWords;
    const words = queue.words;
    // A task that leaves takes its rows along.
    const task = this.#taskAt[words[at + Q_TARGET_TASK]! - this.#firstTask]!;
    if (task.isAsync && task.inFlight >= this.#maxInFlight) return false;
    const row = queue.headRow;
    const several = queue.headSeveral;
    const marked = words[at + Q_SUBSCRIPTION]!;
    const subscription = marked & SUBSCRIPTION_MASK;
    const isExtra = (marked & EXTRA_MARK) !== 0;
    if (isExtra) this.#cycleExtra--;
    const sourceTask = words[at + Q_SOURCE_TASK]!;
    const rootTask = words[at + Q_ROOT_TASK]!;
    const rootGeneration = words[at + Q_ROOT_GENERATION]!;
    const rootSequence = words[at + Q_ROOT_SEQUENCE]!;
    const edgeHigh = words[at + Q_EDGE_HIGH]!;
    const edgeLow = words[at + Q_EDGE_LOW]!;
    this.#giveBackCredit(queue, at);
    queue.shift();
    if (row === null) {
      this.#onEndMark(task, subscription, sourceTask);
      return true;
    }
    const { tap } = this.#context;
    if (tap !== null) tap.onTaken(task.number, this.#inputs[subscription] ?? '', row, this.#context.turnMs);
    if (task.isAsync || this.#isManual) {
      this.#lasting.run(task, {
        row,
        subscription,
        sourceTask,
        rootTask,
        rootGeneration,
        rootSequence,
        several,
        edgeHigh,
        edgeLow,
        hasCycleToken: !isExtra,
      });
      return true;
    }
    const out = task.out;
    out.begin(rootTask, rootGeneration, rootSequence, several, !isExtra);
    const executed = ++task.counters[C_EXECUTED]!;
    const sampled = (executed & EXECUTE_SAMPLE_MASK) === 0;
    const startMs = sampled ? this.#clock.nowMs() : 0;
    const progress = this.#progress;
    progress[P_TASK] = task.number;
    progress[P_IN_CALL] = IN_PROCESS;
    progress[P_CALLS]!++;
    let answer: unknown;
    try {
      answer = task.handlers[subscription]!(row, out);
    } catch (error) {
      progress[P_IN_CALL] = 0;
      out.open = false;
      this.#lasting.failRow(task, { rootTask, rootGeneration, rootSequence, several }, error);
      return true;
    }
    progress[P_IN_CALL] = 0;
    if (answer !== undefined && isPromiseLike(answer)) {
      this.#lasting.takeOver(task, out, answer, {
        row,
        subscription,
        sourceTask,
        rootTask,
        rootGeneration,
        rootSequence,
        several,
        edgeHigh,
        edgeLow,
        hasCycleToken: !isExtra,
      });
      return true;
    }
    out.open = false;
    if (sampled) task.sketch[sketchBucket((this.#clock.nowMs() - startMs) * 1000)]!++;
    task.counters[C_ACKED]!++;
    if (rootTask !== 0) {
      if (several === null) {
        this.#context.ack(
          rootTask,
          rootGeneration,
          rootSequence,
          edgeHigh ^ out.edgesHigh,
          edgeLow ^ out.edgesLow,
        );
      } else {
        this.#context.ackSeveral(several, out.edgesHigh, out.edgesLow);
      }
    }
    return true;
  }

  #giveBackCredit(queue: RowQueue, at: number): void {
    const origin = queue.words[at + Q_ORIGIN]!;
    if (origin < 0) return;
    const creditClass = this.#isOfCycle(queue.words[at + Q_SUBSCRIPTION]!)
      ? this.#componentIndex + this.#context.reachable.length
      : this.#componentIndex;
    if (origin !== this.#grantOrigin || creditClass !== this.#grantClass) {
      this.#grantTaken();
      this.#grantOrigin = origin;
      this.#grantClass = creditClass;
    }
    this.#grantCost += queue.words[at + Q_COST]!;
  }

  /** Rows of one sender come in runs: their credit goes back once a run, not once a row. */
  #grantTaken(): void {
    if (this.#grantCost > 0) this.#context.grant(this.#grantOrigin, this.#grantClass, this.#grantCost);
    this.#grantCost = 0;
  }

  #onEndMark(task: BoltTaskRunner, subscription: number, sourceTask: number): void {
    task.endMarks.add(`${subscription}/${sourceTask}`);
  }

  /** Acking off: ends tasks that have the end marks of all their senders. */
  endMarkedTasks(): number {
    if (isBlocked(this.#gates)) return 0;
    let begun = 0;
    for (const task of this.tasks) {
      if (task.ending || task.inFlight > 0 || task.rootedCalls > 0) continue;
      if (task.endMarks.size < this.#expectedEndMarks) continue;
      begun++;
      this.#endTask(task);
    }
    return begun;
  }
}
