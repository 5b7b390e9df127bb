/**
 * The tasks of one executor thread: starting, closing, and grouping them into executors.
 *
 * Starting and closing wait for user code, and the thread goes on meanwhile: a `prepare` or `close` whose promise stays open
 * holds up the tasks of its own executor at most. Which calls wait, and for how long, is told.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import { IsobarError, toIsobarError } from '../base/index.js';
import type { LongCall } from '../coordination/index.js';
import type { ExecutorRange } from '../scheduling/index.js';
import { BoltExecutor, type BoltWiring } from './bolt-executor.js';
import { reportUserError } from './bolt-task.js';
import { createTask, wireBolt, type CreatedTask, type ExecutorFactory } from './executor-factory.js';
import { SpoutExecutor } from './spout-executor.js';
import type { TaskStart } from './thread-messages.js';
import { inCall } from './user-calls.js';

export interface ThreadTasksOptions {
  readonly factory: ExecutorFactory;
  /** Tasks have come or gone, or are in other executors. */
  onChanged(): void;
  onStarted(tasks: readonly CreatedTask[]): void;
  /** There is something to {@link ThreadTasks.renew}. */
  wake(): void;
  /** An arrival is there, and waits for `go`; or it is not, and never will be in this start. */
  onPrepared(task: number): void;
  onFailed(task: number, error: IsobarError): void;
  onStopped(tasks: readonly number[]): void;
  /** A task could not be created: this thread cannot do what it is there for. */
  onBroken(error: unknown): void;
}

/** An executor, as its tasks are grouped: by the first task of its range. */
type Group = number;

/** A task on its way to run; taken out of the table: it is not wanted any more. */
interface Starting {
  readonly start: TaskStart;
  state:
    | { readonly kind: 'waiting' }
    | { readonly kind: 'creating'; readonly settled: Promise<void> }
    /** It waits for the others of its executor. */
    | { readonly kind: 'created'; readonly created: CreatedTask }
    /** An arrival that waits for `go`. */
    | { readonly kind: 'prepared'; readonly created: CreatedTask };
}

interface RunningTask {
  readonly created: CreatedTask;
  group: Group;
  /** In no executor: it takes no rows and reads nothing. */
  isSuspended: boolean;
}

/** A call whose promise is open. */
interface OpenCall {
  readonly component: string;
  readonly task: number;
  readonly call: 'prepare' | 'close';
  readonly sinceMs: number;
}

/** Executors that begin to start in one go; then timers, sockets and the rows of others have their turn. */
const STARTS_AT_ONCE = 64;

export class ThreadTasks {
  /** As of the last `renew`. */
  bolts: readonly BoltExecutor[] = [];
  /** The same, in groups that are equally far from the sources: sinks first. */
  boltsByDepth: readonly (readonly BoltExecutor[])[] = [];
  spouts: readonly SpoutExecutor[] = [];
  readonly #options: ThreadTasksOptions;
  readonly #wirings = new Map<string, BoltWiring>();
  readonly #bolts = new Map<Group, BoltExecutor>();
  readonly #spouts = new Map<Group, SpoutExecutor>();
  readonly #running = new Map<number, RunningTask>();
  #groupOf: ReadonlyMap<number, Group> = new Map();
  readonly #starting = new Map<number, Starting>();
  readonly #openCalls = new Set<OpenCall>();
  /** Tasks that run and that nobody has been told of. */
  #justStarted: CreatedTask[] = [];
  /** Whether there is something to renew, be it only that tasks have come. */
  #stale: 'no' | 'started' | 'changed' = 'no';
  /** Calls of `start` that have not begun with all of theirs. */
  #starts = 0;

  constructor(options: ThreadTasksOptions) {
    this.#options = options;
  }

  /**
   * Brings the executors up to date with the tasks that have come and gone, and tells of them. The loop calls it before each turn,
   * since it costs as much as there are tasks: thousands that start must not renew everything one by one. While more are
   * about to begin, as many as there are already are awaited, so that all renewals together cost no more than two.
   */
  renew(): void {
    if (this.#stale === 'no') return;
    const told = this.#running.size - this.#justStarted.length;
    if (this.#stale === 'started' && this.#starts > 0 && this.#justStarted.length < told) return;
    this.#stale = 'no';
    const started = this.#justStarted.filter((one) => this.#running.get(one.task.number)?.created === one);
    this.#justStarted = [];
    const { factory } = this.#options;
    const byDepth = new Map<number, BoltExecutor[]>();
    for (const bolt of this.#bolts.values()) {
      const depth = factory.depthOf(bolt.component.id);
      const others = byDepth.get(depth);
      if (others === undefined) byDepth.set(depth, [bolt]);
      else others.push(bolt);
    }
    this.boltsByDepth = [...byDepth].sort(([a], [b]) => b - a).map(([, bolts]) => bolts);
    this.bolts = this.boltsByDepth.flat();
    this.spouts = [...this.#spouts.values()];
    if (started.length > 0) this.#options.onStarted(started);
    this.#options.onChanged();
  }

  /** Tasks that share a range share an executor from now on, in the order of their rows. */
  regroup(ranges: readonly ExecutorRange[]): void {
    const groupOf = new Map<number, Group>();
    for (const [first, last] of ranges) for (let task = first; task <= last; task++) groupOf.set(task, first);
    this.#groupOf = groupOf;
    for (const [number, running] of this.#running) {
      // A task that is about to leave stays with those that it was with.
      const group = groupOf.get(number) ?? running.group;
      if (group === running.group) continue;
      if (running.isSuspended) {
        running.group = group;
        continue;
      }
      const waiting = this.#takeOut(number);
      running.group = group;
      this.#putIn(running.created, group, waiting);
    }
    this.#onChanged();
  }

  /** Starts tasks, those of one executor one after the other: they take rows together. */
  async start(starts: readonly TaskStart[]): Promise<void> {
    const groups = new Map<Group, Starting[]>();
    for (const start of starts) {
      const before = this.#starting.get(start.task);
      const starting: Starting = { start, state: { kind: 'waiting' } };
      this.#starting.set(start.task, starting);
      if (before !== undefined) void this.#closeStarting(before);
      const group = this.#groupFor(start.task);
      const together = groups.get(group);
      if (together === undefined) groups.set(group, [starting]);
      else together.push(starting);
    }
    this.#starts++;
    let begun = 0;
    for (const together of groups.values()) {
      if (begun > 0 && begun % STARTS_AT_ONCE === 0) await immediate();
      begun++;
      void this.#createAll(together).catch((error: unknown) => this.#options.onBroken(error));
    }
    this.#starts--;
    if (this.#stale !== 'no') this.#options.wake();
  }

  /** A prepared arrival takes rows from now on. */
  go(task: number): void {
    const starting = this.#starting.get(task);
    if (starting?.state.kind !== 'prepared') return;
    starting.state = { kind: 'created', created: starting.state.created };
    this.#activate([starting]);
  }

  /** A task that runs here, or is suspended. */
  find(task: number): CreatedTask | undefined {
    return this.#running.get(task)?.created;
  }

  /** A running task is given no more rows; those that wait fail as moved. */
  suspend(task: number): void {
    const running = this.#running.get(task);
    if (running === undefined || running.isSuspended) return;
    const executor = this.#options.factory.boltOfTask[task];
    const waiting = this.#takeOut(task);
    executor?.refuse(waiting);
    running.isSuspended = true;
    this.#options.factory.boltOfTask[task] = undefined;
    this.#onChanged();
  }

  /** A suspended task is given rows again. */
  resume(task: number): void {
    const running = this.#running.get(task);
    if (running?.isSuspended !== true) return;
    running.isSuspended = false;
    this.#putIn(running.created, running.group, []);
    this.#onChanged();
  }

  /** Stops tasks: rows that wait for them fail as moved. One that is being created is closed as soon as it is there. */
  async stop(tasks: readonly number[]): Promise<void> {
    const stopped: number[] = [];
    const closing: Promise<void>[] = [];
    for (const number of tasks) {
      const starting = this.#starting.get(number);
      const running = this.#running.get(number);
      if (starting !== undefined) {
        this.#starting.delete(number);
        closing.push(this.#closeStarting(starting));
      } else if (running !== undefined) {
        this.suspend(number);
        this.#running.delete(number);
        this.#options.factory.forget(number);
        closing.push(this.#close(running.created));
      } else continue;
      stopped.push(number);
    }
    this.#onChanged();
    await Promise.all(closing);
    if (stopped.length > 0) this.#options.onStopped(stopped);
  }

  /** Closes every task, spouts first. */
  async closeAll(): Promise<void> {
    const created = [...this.#starting.values()].flatMap(({ state }) =>
      state.kind === 'created' || state.kind === 'prepared' ? [state.created] : [],
    );
    this.#starting.clear();
    const running = [...[...this.#running.values()].map((one) => one.created), ...created];
    for (const kind of ['spout', 'bolt']) {
      await Promise.all(
        running.filter((created) => created.kind === kind).map((created) => this.#close(created)),
      );
    }
  }

  /** Calls of `prepare`, `open` and `close` whose promise has been open for at least `limitMs`. */
  longCalls(nowMs: number, limitMs: number): readonly LongCall[] {
    const open: { component: string; task: number; call: string; sinceMs: number }[] = [...this.#openCalls];
    for (const { created } of this.#running.values()) {
      const sinceMs = created.kind === 'spout' ? created.task.source.openingSinceMs : null;
      if (sinceMs !== null)
        open.push({ component: created.task.component, task: created.task.number, call: 'open', sinceMs });
    }
    return open
      .map(({ sinceMs, ...who }) => ({ ...who, forMs: Math.round(nowMs - sinceMs), isBlocking: false }))
      .filter(({ forMs }) => forMs >= limitMs);
  }

  async #createAll(together: readonly Starting[]): Promise<void> {
    for (const starting of together) {
      if (!this.#isWanted(starting)) continue;
      const settled = this.#create(starting);
      starting.state = { kind: 'creating', settled };
      await settled;
    }
    this.#activate(together);
  }

  async #create(starting: Starting): Promise<void> {
    const { start } = starting;
    const call = { component: start.component, task: start.task, call: 'prepare' as const };
    let created: CreatedTask;
    try {
      created = await this.#whileOpen(call, () => createTask(this.#options.factory, start));
    } catch (error) {
      const fault = startFault(start, error);
      if (!start.isArrival) throw fault;
      if (!this.#isWanted(starting)) return;
      this.#starting.delete(start.task);
      this.#options.onFailed(start.task, fault);
      return;
    }
    if (!this.#isWanted(starting)) {
      await this.#close(created);
      return;
    }
    starting.state = { kind: start.isArrival ? 'prepared' : 'created', created };
    if (start.isArrival) this.#options.onPrepared(start.task);
  }

  #isWanted(starting: Starting): boolean {
    return this.#starting.get(starting.start.task) === starting;
  }

  #activate(together: readonly Starting[]): void {
    const wanted = together.flatMap((starting) => {
      if (!this.#isWanted(starting) || starting.state.kind !== 'created') return [];
      this.#starting.delete(starting.start.task);
      return [starting.state.created];
    });
    if (wanted.length === 0) return;
    for (const one of wanted) {
      const group = this.#groupFor(one.task.number);
      this.#running.set(one.task.number, { created: one, group, isSuspended: false });
      this.#options.factory.context.localRoots[one.task.number] = one.task;
      this.#putIn(one, group, []);
    }
    for (const one of wanted) this.#justStarted.push(one);
    if (this.#stale === 'no') this.#stale = 'started';
    this.#options.wake();
  }

  #groupFor(task: number): Group {
    return this.#groupOf.get(task) ?? task;
  }

  #putIn(created: CreatedTask, group: Group, waiting: Parameters<BoltExecutor['add']>[1]): void {
    if (created.kind === 'spout') {
      const executor =
        this.#spouts.get(group) ??
        new SpoutExecutor(this.#options.factory.context.component(created.task.component));
      this.#spouts.set(group, executor);
      executor.add(created.task);
      return;
    }
    const { factory } = this.#options;
    const executor = this.#bolts.get(group) ?? new BoltExecutor(this.#wiringOf(created.task.component));
    this.#bolts.set(group, executor);
    executor.add(created.task, waiting);
    factory.boltOfTask[created.task.number] = executor;
    factory.context.setTarget(created.task.number, executor);
  }

  /** Takes a running task out of its executor; returns the rows that wait for it. */
  #takeOut(number: number): ReturnType<BoltExecutor['remove']> {
    const { created, group } = this.#running.get(number)!;
    if (created.kind === 'spout') {
      const executor = this.#spouts.get(group)!;
      executor.remove(created.task);
      if (executor.tasks.length === 0) this.#spouts.delete(group);
      return [];
    }
    const executor = this.#bolts.get(group)!;
    const waiting = executor.remove(created.task);
    if (executor.tasks.length === 0) this.#bolts.delete(group);
    return waiting;
  }

  #wiringOf(component: string): BoltWiring {
    const known = this.#wirings.get(component);
    if (known !== undefined) return known;
    const wiring = wireBolt(this.#options.factory, component);
    this.#wirings.set(component, wiring);
    return wiring;
  }

  #onChanged(): void {
    this.#stale = 'changed';
    this.#options.wake();
  }

  /** Resolves when the task is closed, or when its `close` has had its time: what follows does not wait for it. */
  async #close({ kind, task }: CreatedTask): Promise<void> {
    const { progress } = this.#options.factory.context.options;
    const call = { component: task.component, task: task.number, call: 'close' as const };
    const closing = this.#whileOpen(call, async () => {
      if (kind === 'spout') await task.source.close();
      else await inCall(progress, task.number, 'close', () => task.task.close?.());
    });
    try {
      if (await this.#isOpenAfterLimit(closing)) throw closeTimedOut(task.component, this.#closeLimitMs);
    } catch (error) {
      reportUserError(task, error, 'close');
    }
  }

  /** The same for a task that is not wanted any more before it runs. */
  async #closeStarting({ state }: Starting): Promise<void> {
    if (state.kind === 'created' || state.kind === 'prepared') await this.#close(state.created);
    // What its creation comes to is the business of whoever started it.
    if (state.kind === 'creating') await this.#isOpenAfterLimit(state.settled).catch(() => undefined);
  }

  get #closeLimitMs(): number {
    const { settings } = this.#options.factory.context.options;
    return Math.max(100, Math.round((settings['supervisor.worker-stop-timeout'] - 500) / 3));
  }

  /** Waits for a promise, but not for ever; rejects with it. */
  async #isOpenAfterLimit(promise: Promise<void>): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<true>((resolve) => {
      timer = setTimeout(() => resolve(true), this.#closeLimitMs);
    });
    try {
      return await Promise.race([promise.then(() => false as const), limit]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A call of a start or an end is open. */
  get isAwaiting(): boolean {
    return this.#openCalls.size > 0;
  }

  /** Runs a call and lists it as open until its promise settles. */
  async #whileOpen<T>(call: Omit<OpenCall, 'sinceMs'>, run: () => Promise<T>): Promise<T> {
    const open = { ...call, sinceMs: this.#options.factory.context.options.clock.nowMs() };
    this.#openCalls.add(open);
    try {
      return await run();
    } finally {
      this.#openCalls.delete(open);
    }
  }
}

function closeTimedOut(component: string, limitMs: number): IsobarError {
  return new IsobarError(
    'CLOSE_TIMED_OUT',
    `close of "${component}" had not settled after ${Math.round(limitMs)} ms`,
    {
      expected: 'a promise that settles',
      found: 'one that is open',
    },
  );
}

/** Whose `prepare` it was, since others may have been called by the time that the error is heard of. */
function startFault({ component, task }: TaskStart, error: unknown): IsobarError {
  const { code, message, details, cause, stack } = toIsobarError(error, 'USER_CODE_FAILED');
  const where = `component "${component}", task ${task}, prepare`;
  const fault = new IsobarError(code, message, { where, ...details, component, task }, cause);
  if (stack !== undefined) fault.stack = stack;
  return fault;
}
