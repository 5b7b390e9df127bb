/**
 * Runs a topology in this thread, without processes, sockets or rings: the real executors, queues, ledgers and the end protocol,
 * turn by turn, by whatever clock is given. For tests of topologies (`isobar/testing`).
 *
 * Everything is in one executor thread, and nothing but open promises of user code happens between turns, so that with a
 * clock that is moved by hand and a seed every run is the same.
 */
import {
  ACKER,
  type Clock,
  compileSettings,
  type ErrorRecord,
  isSystemComponent,
  type Logger,
  type RawSettings,
  toErrorRecord,
} from '../base/index.js';
import type { StoredPosition } from '../coordination/index.js';
import { allocateRing, Doorbell } from '../messaging/index.js';
import { planTopology, type ComponentTasks } from '../scheduling/index.js';
import { graphStages, type BuiltTopology } from '../topology/index.js';
import { EdgeIds } from './acking/edge-ids.js';
import { PROGRESS_WORDS } from './counters.js';
import { EndpointTable } from './endpoints.js';
import { createFactory } from './executor-factory.js';
import { ExecutorThread } from './executor-thread.js';
import { rangesOf, TaskBook, tasksOf } from './task-book.js';
import { ThreadContext } from './thread-context.js';
import type { FromThread, ThreadError, ToThread } from './thread-messages.js';

export interface InProcessOptions {
  readonly topology: BuiltTopology;
  /** Over those of the topology. */
  readonly settings: RawSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0 ≤ value < 1; the source of all chance. */
  readonly random: () => number;
  readonly deadLetterDirectory: string;
}

export interface InProcessTotals {
  readonly emitted: number;
  readonly executed: number;
  readonly acked: number;
  readonly failed: number;
  readonly replayed: number;
  readonly deadLetters: number;
  /** Rows that wait, and trees that are not complete. */
  readonly queued: number;
  readonly pending: number;
}

const GENERATION = 1;
const TOPOLOGY_ID = 'in-process';

export class InProcessTopology {
  readonly errors: ThreadError[] = [];
  readonly positions = new Map<number, StoredPosition>();
  readonly deadLetterFiles = new Set<string>();
  /** What the thread could not go on after. */
  broken: ErrorRecord | undefined;
  readonly #thread: ExecutorThread;
  readonly #book = new TaskBook();
  readonly #endpoints = new EndpointTable();
  readonly #tasks: readonly ComponentTasks[];
  readonly #started = new Set<number>();
  readonly #spouts: readonly string[];
  readonly #stages: string[][];
  readonly #acking: boolean;
  readonly #userCounters: ReadonlyMap<string, ReadonlyMap<string, number>>;
  #stage = -1;

  constructor(options: InProcessOptions) {
    const { topology, clock, logger, random } = options;
    const layers = [topology.description.settings, options.settings];
    const settings = compileSettings(...layers);
    const plan = planTopology(topology.description, settings);
    this.#tasks = plan.tasks;
    this.#acking = plan.tasks.some(({ component }) => component === ACKER);
    this.#stages = graphStages(topology.description).map((stage) => [...stage]);
    this.#spouts = topology.description.components.filter(({ kind }) => kind === 'spout').map(({ id }) => id);
    const executors = plan.executors.filter(({ component }) => !isSystemComponent(component));
    for (const { range, component } of executors)
      for (const task of tasksOf([range]))
        this.#book.add(task, component, this.#spouts.includes(component), 0);
    const word = (): number => 1 + Math.floor(random() * (2 ** 31 - 2));
    let wake = (): void => undefined;
    const context = new ThreadContext({
      topology,
      topologyId: TOPOLOGY_ID,
      settings,
      generation: GENERATION,
      clock,
      logger,
      edgeIds: new EdgeIds(word(), word()),
      random,
      deadLetterDirectory: options.deadLetterDirectory,
      acking: this.#acking,
      post: (message) => this.#onMessage(message),
      wake: () => wake(),
      aloneMarks: { set: () => undefined, clear: () => undefined },
      progress: new Int32Array(PROGRESS_WORDS),
    });
    const factory = createFactory(context, plan.tasks, logger);
    this.#userCounters = factory.userCounters;
    const ring = (): SharedArrayBuffer => allocateRing(4096);
    this.#thread = new ExecutorThread({
      start: {
        index: 0,
        generation: GENERATION,
        topologyId: TOPOLOGY_ID,
        topologyName: topology.description.name,
        codePath: '',
        descriptionPath: '',
        settings: layers,
        deadLetterDirectory: options.deadLetterDirectory,
        logPath: '',
        logShared: new SharedArrayBuffer(0),
        progress: new SharedArrayBuffer(PROGRESS_WORDS * 4),
        doorbell: Doorbell.allocate(),
        toMain: ring(),
        fromMain: ring(),
        mainDoorbell: Doorbell.allocate(),
      },
      context,
      factory,
      clock,
      logger,
      post: (message) => this.#onMessage(message),
      onBroken: (error) => (this.broken ??= toErrorRecord(error)),
    });
    wake = () => this.#thread.wake();
    this.#tell({ kind: 'executors', ranges: executors.map(({ range }) => range) });
    this.#tell({
      kind: 'start-tasks',
      tasks: this.#book.all().map(({ task, component, counters, crashes }) => ({
        task,
        component,
        counters,
        crashes,
        generation: GENERATION,
        position: undefined,
        saved: null,
        isArrival: false,
      })),
    });
  }

  /** One turn; returns whether anything was done. */
  turn(): boolean {
    // The end can only be near when nothing was done.
    return this.#thread.turn() > 0 || this.#advanceEnd();
  }

  /** Another turn is due at once. */
  get isWoken(): boolean {
    return this.#thread.isWoken;
  }

  /** A promise of user code is open. */
  get isAwaiting(): boolean {
    return this.#thread.isAwaiting;
  }

  /** Sources that had nothing may have something now. */
  askSources(): void {
    this.#thread.askSources();
  }

  /** A manual bolt holds rows that it has not answered for. */
  get isHolding(): boolean {
    return this.#thread.isHolding;
  }

  /** When the next turn is due if nothing happens, ms of the clock. */
  get nextDueMs(): number {
    return this.#thread.nextDueMs;
  }

  /** Every component has ended, and every tree with it. */
  get hasEnded(): boolean {
    return this.#areAllStarted && this.#areEnded(this.#userComponents);
  }

  totals(component: string): InProcessTotals {
    const reports = this.#book.taskReports().filter((report) => report.component === component);
    const sum = (field: keyof InProcessTotals): number =>
      reports.reduce((total, report) => total + report[field], 0);
    return {
      emitted: sum('emitted'),
      executed: sum('executed'),
      acked: sum('acked'),
      failed: sum('failed'),
      replayed: sum('replayed'),
      deadLetters: sum('deadLetters'),
      queued: sum('queued'),
      pending: sum('pending'),
    };
  }

  /** What user code has counted, by name. */
  counters(component: string): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#userCounters.get(component) ?? []);
  }

  /** Closes every task. */
  async close(): Promise<void> {
    this.#tell({ kind: 'stop' });
    await this.#thread.close();
  }

  get #userComponents(): readonly string[] {
    return this.#tasks.map(({ component }) => component).filter((id) => !isSystemComponent(id));
  }

  get #areAllStarted(): boolean {
    return this.#book.all().every(({ task }) => this.#started.has(task));
  }

  #areEnded(components: readonly string[]): boolean {
    return this.#book
      .taskReports()
      .every(({ component, ended, pending }) => !components.includes(component) || (ended && pending === 0));
  }

  /** The end protocol, as Nimbus leads it: sources, then stage by stage. Returns whether it went on. */
  #advanceEnd(): boolean {
    if (!this.#acking || this.#stage >= this.#stages.length - 1 || !this.#areAllStarted) return false;
    const before = this.#stage < 0 ? this.#spouts : this.#stages[this.#stage]!;
    if (!this.#areEnded(before)) return false;
    this.#stage++;
    this.#tell({ kind: 'phase', phase: { kind: 'ending', stage: this.#stage, stages: this.#stages } });
    return true;
  }

  #tell(message: ToThread): void {
    this.#thread.onMessage(message);
  }

  #onMessage(message: FromThread): void {
    switch (message.kind) {
      case 'started':
        for (const task of message.tasks) this.#started.add(task);
        this.#sendRoutes();
        return;
      case 'error':
        this.errors.push(message.error);
        return;
      case 'start-failed':
        this.broken ??= message.error;
        return;
      case 'positions':
        for (const position of message.positions) this.positions.set(position.task, position);
        return;
      case 'dead-letter-file':
        this.deadLetterFiles.add(message.path);
        return;
      default:
        return;
    }
  }

  #sendRoutes(): void {
    this.#endpoints.replace(-1, [{ index: 0, generation: GENERATION, started: rangesOf(this.#started) }]);
    const lastTask = Math.max(...this.#tasks.map(({ last }) => last));
    this.#tell({
      kind: 'routes',
      version: this.#started.size,
      tasks: this.#tasks,
      endpointOfTask: this.#endpoints.endpointOfTask(lastTask),
      held: [],
      lost: false,
      hasEnded: false,
      endpoints: this.#endpoints.all().map(({ id, thread, generation }) => ({
        id,
        thread,
        generation,
        peer: -1,
        outgoing: null,
        incoming: null,
        doorbell: null,
      })),
    });
  }
}
