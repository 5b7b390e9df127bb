/**
 * Runs a topology in executor threads that share one JavaScript thread: the real loops, rings, links and ledgers,
 * without worker processes. Their turns interleave at every yield. For tests.
 */
import {
  compileSettings,
  silentLogger,
  systemClock,
  toIsobarError,
  type ErrorRecord,
  type IsobarError,
  type RawSettings,
} from '../../base/index.js';
import type { LongCall, StoredPosition, TopologyPhase } from '../../coordination/index.js';
import { allocateRing, Doorbell } from '../../messaging/index.js';
import { planTopology, type ComponentTasks, type ExecutorRange } from '../../scheduling/index.js';
import { buildTopology, graphStages } from '../../topology/index.js';
import { EdgeIds } from '../acking/edge-ids.js';
import {
  C_ACKED,
  C_DEAD_LETTERS,
  C_ENDED,
  C_EXECUTED,
  C_FAILED,
  C_PENDING,
  C_QUEUED,
  C_REPLAYED,
  C_STOPPED,
  PROGRESS_WORDS,
} from '../counters.js';
import { dealToThreads } from '../deal-to-threads.js';
import { EndpointTable } from '../endpoints.js';
import { rangesOf, TaskBook, tasksOf, type HostedTask } from '../task-book.js';
import { createFactory } from '../executor-factory.js';
import { ExecutorThread } from '../executor-thread.js';
import { ThreadContext } from '../thread-context.js';
import type { FromThread, SavedTask, TaskStart, ThreadError, ToThread } from '../thread-messages.js';

export interface HarnessOptions {
  readonly threads: number;
  readonly settings?: RawSettings;
  readonly deadLetterDirectory?: string;
  readonly positions?: readonly StoredPosition[];
  /** Thread of a task; default: dealt as a worker deals. */
  readonly place?: (component: string, task: number) => number;
}

export interface TaskTotals {
  acked: number;
  failed: number;
  executed: number;
  replayed: number;
  deadLetters: number;
  pending: number;
  queued: number;
  ended: boolean;
  stopped: boolean;
}

const FIELD_OF: Readonly<Record<string, number>> = {
  acked: C_ACKED,
  failed: C_FAILED,
  executed: C_EXECUTED,
  replayed: C_REPLAYED,
  deadLetters: C_DEAD_LETTERS,
  pending: C_PENDING,
  queued: C_QUEUED,
};

interface HarnessThread {
  readonly index: number;
  generation: number;
  thread: ExecutorThread;
  context: ThreadContext;
  doorbell: SharedArrayBuffer;
  started: Set<number>;
  running: Promise<void>;
  /** A crashed thread is heard no more. */
  muted: boolean;
  /** Messages are handled one after the other, as in a real thread. */
  handled: Promise<void>;
}

export class ThreadHarness {
  readonly errors: ThreadError[] = [];
  readonly storedPositions = new Map<number, StoredPosition>();
  readonly deadLetterFiles = new Set<string>();
  /** Calls whose promise has been open for long, by thread, as last reported. */
  readonly longCalls = new Map<number, readonly LongCall[]>();
  /** What ended a thread's handling of messages, where it was not a crash that was asked for. */
  readonly crashes: string[] = [];
  /** What ended threads, as they tell it. */
  readonly faults: IsobarError[] = [];
  readonly tasks: readonly ComponentTasks[];
  readonly book = new TaskBook();
  /** How often a thread has told of tasks that run. */
  startedMessages = 0;
  #executors: readonly ExecutorRange[];
  readonly #stages: string[][];
  readonly #acking: boolean;
  readonly #options: HarnessOptions;
  readonly #definition: unknown;
  readonly #settings: RawSettings;
  readonly #endpoints = new EndpointTable();
  readonly #threads: HarnessThread[] = [];
  readonly #rings = new Map<string, SharedArrayBuffer>();
  #phase: TopologyPhase | undefined;
  readonly #onStopped = new Map<number, () => void>();
  readonly #onPrepared = new Map<number, (failure: ErrorRecord | null) => void>();
  /** Tasks on their way, with the number of their move. */
  readonly #held = new Map<number, number>();
  readonly #onSaved = new Map<number, (saved: SavedTask) => void>();
  readonly #cuts = new Map<number, Set<number>>();
  #moves = 0;
  #version = 0;
  #areRoutesHeld = false;
  #generation = 1;

  constructor(definition: unknown, options: HarnessOptions) {
    this.#options = options;
    this.#definition = definition;
    const topology = buildTopology(definition);
    this.#settings = { ...topology.description.settings, ...(options.settings ?? {}) };
    const plan = planTopology(topology.description, compileSettings(this.#settings));
    this.tasks = plan.tasks;
    this.#stages = graphStages(topology.description).map((stage) => [...stage]);
    this.#acking = plan.tasks.some(({ component }) => component === '__acker');
    const runnable = plan.executors.filter(({ component }) => !component.startsWith('__'));
    const places = dealToThreads(runnable, options.threads);
    this.#executors = runnable.map(({ range }) => range);
    const spouts = this.#spouts();
    runnable.forEach(({ range, component }, i) => {
      for (const task of tasksOf([range]))
        this.book.add(
          task,
          component,
          spouts.includes(component),
          options.place?.(component, range[0]) ?? places[i]!,
        );
    });
    for (let index = 0; index < options.threads; index++) this.#threads.push(this.#createThread(index));
    for (const entry of this.#threads) this.#startTasks(entry);
  }

  /** Old trees are suspect. */
  suspect(): void {
    this.#tellAll({ kind: 'suspect' });
  }

  /** Totals of a component over its tasks. */
  totals(component: string): TaskTotals {
    const totals: TaskTotals = {
      acked: 0,
      failed: 0,
      executed: 0,
      replayed: 0,
      deadLetters: 0,
      pending: 0,
      queued: 0,
      ended: true,
      stopped: true,
    };
    for (const hosted of this.book.all()) {
      if (hosted.component !== component) continue;
      const { counters } = hosted.block;
      for (const [name, field] of Object.entries(FIELD_OF)) {
        (totals as unknown as Record<string, number>)[name]! += counters[field]!;
      }
      totals.ended &&= counters[C_ENDED] === 1;
      totals.stopped &&= counters[C_STOPPED] === 1;
    }
    return totals;
  }

  phase(phase: TopologyPhase): void {
    this.#phase = phase;
    this.#tellAll({ kind: 'phase', phase });
  }

  /**
   * Drops a thread without a word, as a crash does, and starts it again from the stored positions. `atOnce`: others hear of the loss
   * and of the replacement in one message, as of a worker that was away for a moment.
   */
  async crash(index: number, { atOnce = false } = {}): Promise<void> {
    const victim = this.#threads[index]!;
    victim.muted = true;
    // Its loop ends at the next turn, without a flush: what was batched or queued is gone.
    Object.defineProperty(victim.context, 'turnMs', {
      set() {
        throw new Error('crash');
      },
    });
    victim.thread.wake();
    this.book.noteCrash(index);
    this.book.resetDepths(index);
    victim.started.clear();
    this.#areRoutesHeld = atOnce;
    this.#sendRoutes(true, victim);
    await victim.running;
    const next = (this.#threads[index] = this.#createThread(index));
    if (!atOnce) this.#tellAll({ kind: 'mark', hasEnded: true });
    this.#startTasks(next);
    if (!atOnce) return;
    await this.until('the replacement', () => next.started.size === this.book.ofThread(index).length);
    this.#areRoutesHeld = false;
    this.#sendRoutes(true);
    this.#tellAll({ kind: 'mark', hasEnded: true });
  }

  /** Stops a task and starts it again, in another thread if one is given, without moving it as planned. */
  async move(task: number, toThread?: number): Promise<void> {
    const hosted = this.book.get(task)!;
    const from = this.#threads[hosted.thread]!;
    const stopped = new Promise<void>((resolve) => this.#onStopped.set(task, resolve));
    from.started.delete(task);
    this.#post(from, { kind: 'stop-tasks', tasks: [task] });
    this.#sendRoutes(true);
    await stopped;
    this.#tellAll({ kind: 'mark', hasEnded: true });
    hosted.thread = toThread ?? hosted.thread;
    this.#startTasks(this.#threads[hosted.thread]!, [task]);
  }

  /**
   * Moves a task to another thread as a planned move does. Resolves to what `save` said, or to the error of the new start;
   * in both cases of failure the task goes on in its old thread, and so it does if `onSaved` says that it is not wanted any more.
   */
  async plannedMove(
    task: number,
    toThread: number,
    limitMs = 5000,
    onSaved: () => 'go' | 'keep' = () => 'go',
  ): Promise<SavedTask['state'] | ErrorRecord> {
    const hosted = this.book.get(task)!;
    const from = this.#threads[hosted.thread]!;
    const id = ++this.#moves;
    const cuts = new Set<number>();
    this.#cuts.set(id, cuts);
    this.#held.set(task, id);
    this.#sendRoutes(false);
    await this.until('the cut', () => this.#endpoints.all().every((endpoint) => cuts.has(endpoint.id)));
    const saving = new Promise<SavedTask>((resolve) => this.#onSaved.set(id, resolve));
    this.#post(from, { kind: 'finish-task', task, id, limitMs });
    const saved = await saving;
    if (saved.state.kind === 'failed' || onSaved() === 'keep') {
      this.#post(from, { kind: 'keep-task', task });
      this.#held.delete(task);
      this.#sendRoutes(false);
      return saved.state;
    }
    const stopped = new Promise<void>((resolve) => this.#onStopped.set(task, resolve));
    this.#post(from, { kind: 'stop-tasks', tasks: [task] });
    await stopped;
    from.started.delete(task);
    this.#sendRoutes(false);
    const bytes = saved.state.kind === 'saved' ? saved.state.bytes : undefined;
    const failure = await this.#arrive(hosted, toThread, bytes, saved.position);
    if (failure !== null) await this.#arrive(hosted, from.index, bytes, saved.position);
    this.#held.delete(task);
    this.#sendRoutes(false);
    return failure ?? saved.state;
  }

  /** Starts a task that has moved; resolves to why it failed, or null. */
  async #arrive(
    hosted: HostedTask,
    toThread: number,
    bytes: Uint8Array | undefined,
    position: unknown,
  ): Promise<ErrorRecord | null> {
    const { task } = hosted;
    hosted.thread = toThread;
    const entry = this.#threads[toThread]!;
    const outcome = new Promise<ErrorRecord | null>((resolve) => this.#onPrepared.set(task, resolve));
    const generation = this.#generation++;
    this.#post(entry, {
      kind: 'start-tasks',
      tasks: [
        {
          ...this.#startOf(hosted, generation),
          saved: bytes === undefined ? null : { kind: 'bytes', bytes },
          position: position === undefined ? undefined : { task, generation, position },
          isArrival: true,
        },
      ],
    });
    const failure = await outcome;
    if (failure === null) {
      this.#post(entry, { kind: 'go', task });
      await this.until('the start', () => entry.started.has(task));
    }
    return failure;
  }

  /** Cuts the tasks into other executors, as a rebalance does. */
  regroup(executors: readonly ExecutorRange[]): void {
    this.#executors = executors;
    this.#tellAll({ kind: 'executors', ranges: executors });
  }

  /** As a worker says it when nothing at all has been done for the message time-out. */
  expire(): void {
    this.#tellAll({ kind: 'expire' });
  }

  /** What a thread works with; for tests that spoil it. */
  context(index: number): ThreadContext {
    return this.#threads[index]!.context;
  }

  async until(what: string, condition: () => boolean, timeoutMs = 30_000): Promise<void> {
    const endMs = performance.now() + timeoutMs;
    while (!condition()) {
      if (performance.now() > endMs)
        throw new Error(
          `${what} did not come true in ${timeoutMs} ms: ${JSON.stringify(this.errors.slice(0, 3))}`,
        );
      await new Promise<void>((resolve) => setTimeout(resolve, 1));
    }
  }

  /** Takes a bounded topology through its end, stage by stage, as Nimbus does. */
  async runToEnd(): Promise<void> {
    const spouts = this.#spouts();
    await this.until('the end of the sources', () =>
      spouts.every((id) => this.totals(id).ended && this.totals(id).pending === 0),
    );
    if (!this.#acking) {
      const all = this.tasks.map(({ component }) => component).filter((id) => !id.startsWith('__'));
      await this.until('the end of all tasks', () => all.every((id) => this.totals(id).ended));
      return;
    }
    for (let stage = 0; stage < this.#stages.length; stage++) {
      this.phase({ kind: 'ending', stage, stages: this.#stages });
      await this.until(`stage ${stage}`, () =>
        this.#stages[stage]!.every((id) => this.totals(id).ended && this.totals(id).pending === 0),
      );
    }
  }

  async close(): Promise<void> {
    for (const { thread } of this.#threads) thread.onMessage({ kind: 'stop' });
    await Promise.all(this.#threads.map(({ running }) => running));
  }

  #spouts(): string[] {
    return [...buildTopology(this.#definition).description.components]
      .filter(({ kind }) => kind === 'spout')
      .map(({ id }) => id);
  }

  #createThread(index: number): HarnessThread {
    const generation = this.#generation++;
    const doorbell = Doorbell.allocate();
    const topology = buildTopology(this.#definition);
    let wake = (): void => undefined;
    const context = new ThreadContext({
      topology,
      topologyId: 'test-1-0',
      settings: compileSettings(this.#settings),
      generation,
      clock: systemClock,
      logger: silentLogger,
      edgeIds: new EdgeIds(17 + generation, 23 + index),
      random: Math.random,
      deadLetterDirectory: this.#options.deadLetterDirectory ?? '/nonexistent',
      acking: this.#acking,
      post: (message) => this.#onMessage(entry, message),
      wake: () => wake(),
      aloneMarks: { set: () => undefined, clear: () => undefined },
      progress: new Int32Array(PROGRESS_WORDS),
    });
    const factory = createFactory(context, this.tasks, silentLogger);
    const ring = (): SharedArrayBuffer => allocateRing(4096);
    const thread = new ExecutorThread({
      start: {
        index,
        generation,
        topologyId: 'test-1-0',
        topologyName: 'test',
        codePath: '',
        descriptionPath: '',
        settings: [this.#settings],
        deadLetterDirectory: '',
        logPath: '',
        logShared: new SharedArrayBuffer(16),
        progress: new SharedArrayBuffer(PROGRESS_WORDS * 4),
        doorbell,
        toMain: ring(),
        fromMain: ring(),
        mainDoorbell: Doorbell.allocate(),
      },
      context,
      factory,
      clock: systemClock,
      logger: silentLogger,
      post: (message) => context.options.post(message),
      onBroken: (error) => this.#onFault(entry, error),
    });
    wake = () => thread.wake();
    const entry: HarnessThread = {
      index,
      generation,
      thread,
      context,
      doorbell,
      started: new Set(),
      running: Promise.resolve(),
      muted: false,
      handled: Promise.resolve(),
    };
    entry.running = thread.run().catch((error: unknown) => {
      if (!entry.muted)
        this.crashes.push(`loop: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    });
    if (this.#phase !== undefined) this.#post(entry, { kind: 'phase', phase: this.#phase });
    return entry;
  }

  #post(entry: HarnessThread, message: ToThread): void {
    entry.handled = entry.handled
      .then(() => entry.thread.onMessage(message))
      .catch((error: unknown) => this.#onFault(entry, error));
  }

  #onFault(entry: HarnessThread, error: unknown): void {
    if (entry.muted) return;
    const fault = toIsobarError(error, 'USER_CODE_FAILED');
    this.faults.push(fault);
    this.crashes.push(`${fault.code}: ${fault.message}`);
  }

  #startTasks(entry: HarnessThread, only?: readonly number[]): void {
    const hosted = this.book.ofThread(entry.index).filter(({ task }) => only?.includes(task) ?? true);
    this.#post(entry, { kind: 'executors', ranges: this.#executors });
    this.#post(entry, {
      kind: 'start-tasks',
      tasks: hosted.map((one) => this.#startOf(one, entry.generation)),
    });
  }

  #startOf({ task, component, counters, crashes }: HostedTask, generation: number): TaskStart {
    const position = [...(this.#options.positions ?? []), ...this.storedPositions.values()]
      .filter((stored) => stored.task === task)
      .at(-1);
    return { task, component, counters, crashes, generation, position, saved: null, isArrival: false };
  }

  #onMessage(entry: HarnessThread, message: FromThread): void {
    if (entry.muted) return;
    switch (message.kind) {
      case 'started':
        this.startedMessages++;
        for (const task of message.tasks) entry.started.add(task);
        this.#sendRoutes(false);
        break;
      case 'stopped':
        for (const task of message.tasks) this.#onStopped.get(task)?.();
        break;
      case 'cut':
        this.#cuts.get(message.id)?.add(message.endpoint);
        break;
      case 'task-saved':
        this.#onSaved.get(message.saved.id)?.(message.saved);
        break;
      case 'prepared':
        this.#onPrepared.get(message.task)?.(null);
        break;
      case 'start-failed':
        this.#onPrepared.get(message.task)?.(message.error);
        break;
      case 'error':
        this.errors.push(message.error);
        break;
      case 'positions':
        for (const position of message.positions) this.storedPositions.set(position.task, position);
        break;
      case 'report':
        this.longCalls.set(entry.index, message.longCalls);
        break;
      case 'dead-letter-file':
        this.deadLetterFiles.add(message.path);
        break;
      default:
        break;
    }
  }

  #tellAll(message: ToThread): void {
    for (const entry of this.#threads) if (!entry.muted) this.#post(entry, message);
  }

  #sendRoutes(lost: boolean, without?: HarnessThread): void {
    if (this.#areRoutesHeld) return;
    const alive = this.#threads.filter((entry) => entry !== without);
    this.#endpoints.replace(
      -1,
      alive.map(({ index, generation, started }) => ({
        index,
        generation,
        started: rangesOf(started),
      })),
    );
    const endpointOfTask = this.#endpoints.endpointOfTask(Math.max(...this.tasks.map(({ last }) => last)));
    const version = ++this.#version;
    for (const own of alive) {
      this.#post(own, {
        kind: 'routes',
        version,
        tasks: this.tasks,
        endpointOfTask,
        held: [...this.#held].map(([task, id]) => ({ task, id })),
        lost,
        hasEnded: lost,
        endpoints: this.#endpoints.all().map((endpoint) => {
          const other = alive.find(
            ({ index, generation }) => index === endpoint.thread && generation === endpoint.generation,
          )!;
          const near = other !== own;
          return {
            id: endpoint.id,
            thread: endpoint.thread,
            generation: endpoint.generation,
            peer: -1,
            outgoing: near ? this.#ring(own, other) : null,
            incoming: near ? this.#ring(other, own) : null,
            doorbell: near ? other.doorbell : null,
          };
        }),
      });
    }
  }

  #ring(from: HarnessThread, to: HarnessThread): SharedArrayBuffer {
    const key = `${from.generation}→${to.generation}`;
    const known = this.#rings.get(key);
    if (known !== undefined) return known;
    const ring = allocateRing(Number(this.#settings['messaging.ring-bytes'] ?? 65_536));
    this.#rings.set(key, ring);
    return ring;
  }
}
