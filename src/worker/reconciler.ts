/**
 * Makes a worker run what the assignment gives it, step by step, without stopping what need not stop: starts tasks, lets
 * others leave and arrive as planned, deals executors to threads, adds threads and ends those without tasks.
 *
 * Invariants
 * R1  Level-triggered: every step is decided from the newest assignment, the record of moves and what is here, never from
 *     having seen an earlier one.
 * R2  A task that runs here is stopped only when the assignment has it nowhere, or elsewhere with no move that says so; any other
 *     leaves as planned.
 * R3  For each task that is to leave this slot the record says what became of it, also when it is not here (any more).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  IsobarError,
  isSystemComponent,
  toErrorRecord,
  type Clock,
  type ErrorRecord,
  type Logger,
  type Settings,
} from '../base/index.js';
import { handoverState, type Handover, type StoredPosition } from '../coordination/index.js';
import type { Assignment, ExecutorRange, SlotAssignment, TaskMove } from '../scheduling/index.js';
import type { TopologyDescription } from '../topology/index.js';
import { Arrivals, type ExpectedTask } from './arrivals.js';
import { C_GENERATION, C_MOVABLE } from './counters.js';
import type { CrashRecord } from './crash-record.js';
import { redealToThreads } from './deal-to-threads.js';
import { Departures, type Destination } from './departures.js';
import type { ExecutorThreads } from './executor-threads.js';
import type { RouteKeeper } from './route-keeper.js';
import type { StateRecord } from './state-record.js';
import type { SupervisorLink } from './supervisor-link.js';
import { componentOf, tasksOf, type HostedTask, type TaskBook } from './task-book.js';
import type { ThreadHost } from './thread-host.js';
import type { SavedTask, TaskStart, ThreadError } from './thread-messages.js';

const CLOSE_MS = 2000;
const FLUSH_MS = 1000;

export interface ReconcilerOptions {
  readonly slot: { readonly supervisor: string; readonly port: number };
  /** Generation of this process: that of its first threads. */
  readonly generation: number;
  /** This worker's own directory. */
  readonly directory: string;
  /** Threads that `auto` means here. */
  readonly threadShare: number;
  readonly settings: Settings;
  readonly description: TopologyDescription;
  readonly crashRecord: CrashRecord;
  readonly stateRecord: StateRecord;
  readonly tasks: TaskBook;
  readonly threads: ExecutorThreads;
  readonly routes: RouteKeeper;
  readonly link: SupervisorLink;
  readonly clock: Clock;
  readonly logger: Logger;
  onError(error: ThreadError): void;
  onLostState(component: string, task: number): void;
  /** Something changed that a decision may wait for. */
  onChanged(): void;
}

/** A task that has changed its thread here and has not started there yet. */
interface Relocation {
  readonly saved: Uint8Array | null;
  readonly position: unknown;
  /** Where it came from: it goes back there when it cannot be started. */
  readonly from: number;
  failures: number;
}

export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #departures: Departures;
  readonly #arrivals: Arrivals;
  readonly #spouts: ReadonlySet<string>;
  readonly #stateful: ReadonlySet<string>;
  #assignment: Assignment | undefined;
  /** Executors of this slot that run user code. */
  #executors: readonly ExecutorRange[] = [];
  readonly #relocations = new Map<number, Relocation>();
  /** Thread of each task that is expected. */
  readonly #threadOf = new Map<number, number>();
  /** Moves that a task of this slot was kept from; not tried again. */
  readonly #kept = new Set<string>();
  /** Steps that the record says, or that are on their way to it, of tasks that were never here. */
  readonly #reported = new Set<string>();
  /** Threads whose first start has been posted. */
  readonly #begun = new Set<string>();
  #isLaunchGenerationUsed = false;
  #isDropping = false;
  #onFlushed: (() => void) | undefined;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    const { settings, description, tasks, routes, clock, link } = options;
    this.#spouts = new Set(description.components.filter(({ kind }) => kind === 'spout').map(({ id }) => id));
    this.#stateful = new Set(description.components.filter(({ stateful }) => stateful).map(({ id }) => id));
    const handOver = (task: number, move: number, step: Handover['step']): Promise<void> => {
      if (step.kind === 'released') this.#reported.add(moveKey(task, move));
      return link.handOver([{ task, move, step }]);
    };
    this.#departures = new Departures({
      clock,
      drainMs: settings['rebalance.drain-timeout'],
      saveMs: settings['rebalance.save-timeout'],
      closeMs: CLOSE_MS,
      tasks,
      post: (thread, message) => options.threads.at(thread)?.post(message),
      cut: (task) => routes.cut(task),
      uncut: (task) => routes.uncut(task),
      isCutOff: (task) => routes.isCutOff(task),
      isElsewhere: (task) => routes.isElsewhere(task),
      store: (task, move, bytes) => this.#store(task, move, bytes),
      handOver,
      storePosition: (hosted, position) => this.#storePosition(hosted, position),
      onClosed: (hosted, to) => this.#onClosed(hosted, to),
      onRelocated: () => this.#update(),
      arriveAt: (hosted, thread, saved, position) => this.#relocate(hosted, thread, saved, position),
      onLostState: ({ component, task }) => this.#noteLostState(component, task),
      onKept: (hosted, error) => this.#onKept(hosted, error),
    });
    this.#arrivals = new Arrivals({
      clock,
      retryMs: settings['worker.restart-backoff'],
      slot: options.slot,
      canStart: ({ task }) => options.threads.at(this.#threadOf.get(task) ?? -1)?.loaded === true,
      fetch: (task, hash) => this.#fetch(task, hash),
      start: (expected, saved) => this.#startArrival(expected, saved),
      go: (task) => options.threads.at(tasks.get(task)?.thread ?? -1)?.post({ kind: 'go', task }),
      handOver,
      onLostState: ({ component, task }) => this.#noteLostState(component, task),
      onFailed: ({ task, component }, error) => {
        options.tasks.remove(task);
        options.onError({ component, task, error });
      },
      onNotFetched: ({ task, component }, error) =>
        options.onError({ component, task, error: toErrorRecord(error) }),
    });
  }

  get assignment(): Assignment | undefined {
    return this.#assignment;
  }

  /** Executors of a thread, or what it has of them. */
  executorsOf(thread: number): ExecutorRange[] {
    const { tasks } = this.#options;
    const found: ExecutorRange[] = [];
    for (const [first, last] of this.#executors) {
      for (let task = first; task <= last; task++) {
        if (tasks.get(task)?.thread !== thread) continue;
        const before = found.at(-1);
        if (task > first && before?.[1] === task - 1) found[found.length - 1] = [before[0], task];
        else found.push([task, task]);
      }
    }
    return found;
  }

  /** Component of each executor that a thread has, or is to have once there are as many threads as are wanted. */
  componentsFor(thread: number): readonly string[] {
    const assignment = this.#assignment;
    if (assignment === undefined) return [];
    const count = Math.max(this.#options.threads.count, this.#threadsWanted(assignment));
    const next = this.#runnable(assignment, this.#slotOf(assignment.target?.slots ?? [])?.executors ?? []);
    const here = new Set(this.#executors.map(([first]) => first));
    const coming = next.filter(([first]) => !here.has(first));
    return this.#placesOf(assignment, [...this.#executors, ...coming], count).flatMap(
      ({ component, place }) => (place === thread ? [component] : []),
    );
  }

  get executors(): readonly ExecutorRange[] {
    return this.#executors;
  }

  /** Every task of this slot takes rows, and every thread is there. */
  get isRunning(): boolean {
    const { tasks, threads } = this.#options;
    const hosts = threads.all();
    return (
      hosts.length === threads.count &&
      hosts.every(({ loaded }) => loaded) &&
      tasksOf(this.#executors).every((task) => tasks.get(task)?.state === 'running')
    );
  }

  /** No task is here, comes here or has still something to hand over. */
  get isEmpty(): boolean {
    return (
      this.#executors.length === 0 &&
      this.#options.threads.count === 0 &&
      this.#departures.count === 0 &&
      this.#arrivals.count === 0
    );
  }

  /** Takes a newer assignment in. */
  reconcile(assignment: Assignment): void {
    if (this.#assignment !== undefined && assignment.version <= this.#assignment.version) return;
    this.#assignment = assignment;
    this.#executors = this.#runnable(assignment, this.#slotOf(assignment.slots)?.executors ?? []);
    this.#arrivals.retryFailed();
    this.#update();
  }

  /** The record of moves has changed. */
  learn(handovers: readonly Handover[]): void {
    this.#arrivals.learn(handovers);
    if (this.#assignment !== undefined) this.#arrivals.advance();
  }

  /** Routes, tasks or threads have changed: what was waited for may have come true. */
  advance(): void {
    this.#departures.advance();
    void this.#dropThreads();
  }

  // ── what threads say ──

  onLoaded(host: ThreadHost): void {
    void this.#startPlaced(host);
    this.#arrivals.advance();
  }

  onStarted(host: ThreadHost, tasks: readonly number[]): void {
    for (const task of tasks) {
      host.started.add(task);
      const hosted = this.#options.tasks.get(task);
      if (hosted?.thread === host.index) hosted.state = 'running';
      this.#relocations.delete(task);
      this.#departures.onMoveOver(task);
    }
    this.#options.stateRecord.hold(tasks.filter((task) => this.#hasState(task)));
    this.#options.routes.schedule();
    this.#departures.advance();
    this.#options.onChanged();
  }

  onStopped(tasks: readonly number[]): void {
    for (const task of tasks) this.#departures.onStopped(task);
  }

  onSaved(saved: SavedTask): void {
    this.#departures.onSaved(saved);
  }

  onPrepared(host: ThreadHost, task: number): void {
    if (this.#arrivals.has(task)) this.#arrivals.onPrepared(task);
    else host.post({ kind: 'go', task });
  }

  onStartFailed(task: number, error: ErrorRecord): void {
    if (this.#arrivals.has(task)) {
      this.#arrivals.onStartFailed(task, error);
      return;
    }
    const hosted = this.#options.tasks.get(task);
    const relocation = this.#relocations.get(task);
    if (hosted === undefined || relocation === undefined) return;
    this.#options.onError({ component: hosted.component, task, error });
    hosted.state = 'placed';
    hosted.thread = relocation.from < this.#options.threads.count ? relocation.from : hosted.thread;
    const { clock, settings } = this.#options;
    const pauseMs = relocation.failures++ === 0 ? 0 : settings['worker.restart-backoff-max'];
    clock.after(pauseMs, () => this.#startAllPlaced());
  }

  onFlushed(): void {
    this.#onFlushed?.();
  }

  /** A thread has ended, with all that its tasks knew. Those that stay here start again when it is back. */
  onThreadGone(host: ThreadHost): void {
    const { tasks, routes } = this.#options;
    const here = tasks.ofThread(host.index);
    this.#options.stateRecord.drop(here.map(({ task }) => task));
    for (const { task, component, state } of here) {
      const isLeaving = this.#departures.has(task);
      if (state === 'running' && !isLeaving) this.#noteLostState(component, task);
    }
    tasks.noteCrash(host.index);
    tasks.resetDepths(host.index);
    for (const hosted of here) {
      hosted.state = 'placed';
      if (!this.#arrivals.has(hosted.task)) continue;
      tasks.remove(hosted.task);
      this.#arrivals.onThreadGone(hosted.task);
    }
    this.#departures.onThreadGone(host.index);
    routes.schedule(true);
    this.#options.onChanged();
  }

  // ── deciding ──

  /** Executors that run user code. */
  #runnable({ tasks }: Assignment, executors: readonly ExecutorRange[]): readonly ExecutorRange[] {
    return executors.filter(([first]) => isOfUser(componentOf(tasks, first)));
  }

  #slotOf(slots: readonly SlotAssignment[]): SlotAssignment | undefined {
    const { supervisor, port } = this.#options.slot;
    return slots.find((slot) => slot.supervisor === supervisor && slot.port === port);
  }

  #update(): void {
    const assignment = this.#assignment;
    // A thread that is being ended takes no tasks; it takes a moment.
    if (assignment === undefined || this.#isDropping) return;
    const wanted = new Set(tasksOf(this.#executors));
    const moves = new Map<number, TaskMove>();
    for (const move of assignment.moves ?? [])
      for (const task of tasksOf([move.tasks])) moves.set(task, move);
    this.#letGo(wanted, moves);
    this.#reportMissing(moves);
    this.#growThreads(assignment);
    for (const host of this.#options.threads.all()) host.post({ kind: 'executors', ranges: this.#executors });
    this.#deal(assignment, moves);
    for (const host of this.#options.threads.all())
      if (!host.loaded) host.hadTasks = this.#options.tasks.ofThread(host.index).length > 0;
    this.#startAllPlaced();
    this.#arrivals.advance();
    this.#options.routes.schedule();
    this.#options.onChanged();
    void this.#dropThreads();
  }

  /** Tasks that are here, or on their way here, and are not wanted here any more. */
  #letGo(wanted: ReadonlySet<number>, moves: ReadonlyMap<number, TaskMove>): void {
    const { tasks, threads } = this.#options;
    const dropped: number[] = [];
    for (const hosted of tasks.all()) {
      const { task } = hosted;
      if (wanted.has(task)) {
        if (this.#departures.has(task)) this.#departures.cancel(task);
        continue;
      }
      if (this.#arrivals.has(task)) {
        this.#arrivals.abandon(task);
      } else if (this.#departures.has(task)) {
        continue;
      } else {
        const move = moves.get(task);
        if (move !== undefined && this.#isFromHere(move)) {
          if (!this.#kept.has(moveKey(task, move.move)))
            this.#departures.begin(hosted, { kind: 'slot', move: move.move });
          continue;
        }
      }
      const host = threads.at(hosted.thread);
      host?.post({ kind: 'stop-tasks', tasks: [task] });
      host?.started.delete(task);
      tasks.remove(task);
      dropped.push(task);
      this.#options.routes.schedule(true);
    }
    this.#options.stateRecord.drop(dropped);
    for (const task of [...this.#threadOf.keys()]) {
      if (wanted.has(task)) continue;
      this.#arrivals.abandon(task);
      this.#threadOf.delete(task);
    }
    for (const task of this.#departures.away) if (!moves.has(task)) this.#departures.onMoveOver(task);
  }

  /** Moves from here of tasks that are not here: they went with a former life of this worker, or were never started. */
  #reportMissing(moves: ReadonlyMap<number, TaskMove>): void {
    for (const [task, move] of moves) {
      const key = moveKey(task, move.move);
      if (!isOfUser(componentOf(this.#assignment?.tasks ?? [], task))) continue;
      if (!this.#isFromHere(move) || this.#reported.has(key) || this.#kept.has(key)) continue;
      const isHere = this.#options.tasks.get(task) !== undefined && !this.#arrivals.has(task);
      if (isHere || this.#departures.has(task)) continue;
      if (handoverState(this.#arrivals.handovers, task, move.move).released !== undefined) continue;
      this.#reported.add(key);
      const step = { kind: 'released', state: { kind: 'lost' } } as const;
      void this.#options.link.handOver([{ task, move: move.move, step }]);
    }
  }

  #isFromHere({ from }: TaskMove): boolean {
    const { supervisor, port } = this.#options.slot;
    return from.supervisor === supervisor && from.port === port;
  }

  #growThreads(assignment: Assignment): void {
    const { threads, generation } = this.#options;
    const count = this.#threadsWanted(assignment);
    if (count <= threads.count) return;
    threads.grow(count, this.#isLaunchGenerationUsed ? undefined : generation);
    this.#isLaunchGenerationUsed = true;
  }

  /** As many as the executors that are here or about to come can use. */
  #threadsWanted(assignment: Assignment): number {
    const now = this.#slotOf(assignment.slots)?.executors ?? [];
    const next = this.#slotOf(assignment.target?.slots ?? [])?.executors ?? [];
    if (now.length + next.length === 0) return 0;
    const executors = Math.max(1, this.#executors.length, this.#runnable(assignment, next).length);
    const { settings, threadShare } = this.#options;
    const setting = settings['topology.executor-threads'];
    const asked = setting === 'auto' ? threadShare : setting === 'per-executor' ? executors : Number(setting);
    return Math.min(Math.max(1, asked), executors);
  }

  /** Gives each executor a thread, with as few changes as balance allows. */
  #deal(assignment: Assignment, moves: ReadonlyMap<number, TaskMove>): void {
    const { tasks, threads } = this.#options;
    if (threads.count === 0) return;
    for (const { range, component, place } of this.#placesOf(assignment, this.#executors, threads.count)) {
      for (const task of tasksOf([range])) {
        const hosted = tasks.get(task);
        if (hosted === undefined) this.#expectOrPlace(task, component, place, moves.get(task));
        else if (hosted.thread !== place && this.#mayChangeThread(task))
          this.#departures.begin(hosted, { kind: 'thread', thread: place });
      }
    }
  }

  /** Where each executor goes among so many threads, from where it is now. */
  #placesOf(
    assignment: Assignment,
    executors: readonly ExecutorRange[],
    threadCount: number,
  ): readonly { readonly range: ExecutorRange; readonly component: string; readonly place: number }[] {
    const dealt = executors.map((range) => ({
      range,
      component: componentOf(assignment.tasks, range[0]) ?? '',
      thread: this.#threadOfExecutor(range),
      movable: tasksOf([range]).every((task) => this.#mayChangeThread(task)),
    }));
    const places = redealToThreads(dealt, threadCount);
    return dealt.map(({ range, component }, i) => ({ range, component, place: places[i]! }));
  }

  /** The thread that has most of an executor's tasks; null: none. */
  #threadOfExecutor(range: ExecutorRange): number | null {
    const counts = new Map<number, number>();
    for (const task of tasksOf([range])) {
      const thread =
        this.#departures.destinationThread(task) ??
        this.#options.tasks.get(task)?.thread ??
        this.#threadOf.get(task);
      if (thread !== undefined) counts.set(thread, (counts.get(thread) ?? 0) + 1);
    }
    let best: number | null = null;
    for (const [thread, count] of counts) if (best === null || count > counts.get(best)!) best = thread;
    return best;
  }

  /** It runs, nothing else is under way with it, and what it knows can travel. */
  #mayChangeThread(task: number): boolean {
    const hosted = this.#options.tasks.get(task);
    return (
      hosted?.state === 'running' &&
      hosted.block.counters[C_MOVABLE] === 1 &&
      !this.#departures.has(task) &&
      !this.#kept.has(moveKey(task, this.#assignment?.version ?? 0))
    );
  }

  #expectOrPlace(task: number, component: string, thread: number, move: TaskMove | undefined): void {
    // What has left, and is wanted back before it is known elsewhere, is expected as any other.
    if (this.#departures.isHere(task)) return;
    if (!this.#arrivals.has(task)) this.#threadOf.set(task, thread);
    if (move !== undefined) {
      this.#arrivals.expect({ task, component, move: move.move, isReturn: this.#isFromHere(move) });
      return;
    }
    const hosted = this.#options.tasks.add(task, component, this.#spouts.has(component), thread);
    hosted.crashes = this.#options.crashRecord.crashesOf(task);
    if (this.#options.stateRecord.takeLost(task)) this.#noteLostState(component, task);
  }

  // ── starting ──

  #startAllPlaced(): void {
    for (const host of this.#options.threads.all()) if (host.loaded) void this.#startPlaced(host);
  }

  /** Starts what waits for its thread. */
  async #startPlaced(host: ThreadHost): Promise<void> {
    const { tasks } = this.#options;
    const placed = tasks
      .ofThread(host.index)
      .filter(({ task, state }) => state === 'placed' && !this.#departures.isHere(task));
    if (placed.length === 0) return;
    for (const hosted of placed) hosted.state = 'starting';
    const isFirst = !this.#begun.has(host.key) && host.hadTasks;
    this.#begun.add(host.key);
    const [positions, generation] = await Promise.all([
      this.#positionsFor(placed),
      isFirst ? host.generation : this.#options.link.nextGeneration(),
    ]);
    // What has changed while these were asked for must not start here any more.
    const wanted = placed.filter((hosted) => this.#isStarting(hosted, host));
    const positionOf = byTask(positions);
    host.post({
      kind: 'start-tasks',
      tasks: wanted.map((hosted) => this.#startOf(hosted, generation, positionOf)),
    });
  }

  async #startArrival({ task, component }: ExpectedTask, saved: TaskStart['saved']): Promise<number> {
    const { tasks, threads, link } = this.#options;
    const thread = this.#threadOf.get(task) ?? 0;
    const hosted = tasks.add(task, component, this.#spouts.has(component), thread);
    hosted.state = 'starting';
    const host = threads.at(thread);
    const [positions, generation] = await Promise.all([this.#positionsFor([hosted]), link.nextGeneration()]);
    if (host !== undefined && this.#isStarting(hosted, host)) {
      const start = { ...this.#startOf(hosted, generation, byTask(positions)), saved, isArrival: true };
      host.post({ kind: 'start-tasks', tasks: [start] });
    }
    return generation;
  }

  #isStarting(hosted: HostedTask, host: ThreadHost): boolean {
    const { tasks, threads } = this.#options;
    return (
      tasks.get(hosted.task) === hosted &&
      hosted.state === 'starting' &&
      hosted.thread === host.index &&
      threads.at(host.index) === host
    );
  }

  async #positionsFor(tasks: readonly HostedTask[]): Promise<readonly StoredPosition[]> {
    return tasks.some(({ isSpout }) => isSpout) ? this.#options.link.readPositions() : [];
  }

  #startOf(hosted: HostedTask, generation: number, stored: ReadonlyMap<number, StoredPosition>): TaskStart {
    const { task, component, counters, crashes } = hosted;
    const relocation = this.#relocations.get(task);
    const position =
      relocation?.position === undefined
        ? this.#startPosition(task, stored)
        : { task, generation, position: relocation.position };
    return {
      task,
      component,
      counters,
      crashes,
      generation,
      position,
      // A copy goes: this one is needed again if the start fails.
      saved: relocation?.saved == null ? null : { kind: 'bytes', bytes: relocation.saved },
      isArrival: relocation !== undefined,
    };
  }

  /** The stored position of a task; in the first life, a row that was out alone is met first. */
  #startPosition(task: number, stored: ReadonlyMap<number, StoredPosition>): StoredPosition | undefined {
    const { threads, crashRecord, generation } = this.#options;
    const position = threads.isFirstLife ? crashRecord.positionOf(task) : undefined;
    return position === undefined ? stored.get(task) : { task, generation, position };
  }

  // ── leaving ──

  #onClosed({ task, thread }: HostedTask, to: Destination): void {
    this.#options.threads.at(thread)?.started.delete(task);
    if (to.kind === 'slot') {
      this.#threadOf.delete(task);
      this.#options.tasks.remove(task);
      this.#options.stateRecord.drop([task]);
    }
    this.#options.routes.schedule();
    this.#options.onChanged();
  }

  #relocate(hosted: HostedTask, thread: number, saved: Uint8Array | null, position: unknown): void {
    this.#relocations.set(hosted.task, { saved, position, from: hosted.thread, failures: 0 });
    hosted.state = 'placed';
    hosted.thread = Math.min(thread, this.#options.threads.count - 1);
    this.#startAllPlaced();
  }

  async #store(task: number, move: number, bytes: Uint8Array): Promise<string> {
    const path = join(this.#options.directory, `state-${task}-${move}`);
    try {
      await writeFile(path, bytes);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new IsobarError('STATE_DIRECTORY_UNUSABLE', message, { where: path }, error);
    }
    return this.#options.link.storeState({ task, move, path });
  }

  async #fetch(task: number, hash: string): Promise<string> {
    const path = join(this.#options.directory, `arrived-${task}`);
    await this.#options.link.fetchState({ hash, path });
    return path;
  }

  async #storePosition({ task, block }: HostedTask, position: unknown): Promise<void> {
    this.#options.link.storePositions([{ task, generation: generationOf(block), position }]);
    await this.#options.link.positionsStored();
  }

  #onKept(hosted: HostedTask, error: ErrorRecord): void {
    const { task, component } = hosted;
    for (const { tasks, move } of this.#assignment?.moves ?? [])
      if (tasks[0] <= task && task <= tasks[1]) this.#kept.add(moveKey(task, move));
    this.#kept.add(moveKey(task, this.#assignment?.version ?? 0));
    if (error.code !== 'MOVE_CANCELLED') this.#options.onError({ component, task, error });
    this.#options.logger.warn('task.kept', { task, component, code: error.code, message: error.message });
    this.#options.onChanged();
  }

  #hasState(task: number): boolean {
    const component = this.#options.tasks.get(task)?.component;
    return component !== undefined && this.#stateful.has(component);
  }

  #noteLostState(component: string, task: number): void {
    if (this.#stateful.has(component)) this.#options.onLostState(component, task);
  }

  /** Ends threads that have no tasks and for which there will be none. */
  async #dropThreads(): Promise<void> {
    const { threads, tasks, routes, clock } = this.#options;
    const assignment = this.#assignment;
    const host = threads.at(threads.count - 1);
    if (assignment === undefined || this.#isDropping || host === undefined) return;
    const isNeeded =
      threads.count <= this.#threadsWanted(assignment) ||
      tasks.ofThread(host.index).length > 0 ||
      [...this.#threadOf.values()].includes(host.index) ||
      this.#departures.isAnyIn(host.index);
    if (isNeeded) return;
    this.#isDropping = true;
    // All that its tasks have sent, acks included, is on its way in order before the announcement that it leaves.
    await new Promise<void>((resolve) => {
      const cancel = clock.after(FLUSH_MS, resolve);
      this.#onFlushed = () => {
        cancel();
        resolve();
      };
      host.post({ kind: 'flush' });
    });
    while (!host.fromThread.isEmpty && !host.gone)
      await new Promise<void>((resolve) => clock.after(1, resolve));
    host.isLeaving = true;
    routes.schedule();
    await new Promise<void>((resolve) => queueMicrotask(resolve));
    const closed = threads.dropLast();
    routes.schedule();
    await closed;
    this.#isDropping = false;
    this.#update();
  }
}

function byTask(positions: readonly StoredPosition[]): ReadonlyMap<number, StoredPosition> {
  return new Map(positions.map((position) => [position.task, position]));
}

function moveKey(task: number, move: number): string {
  return `${task}/${move}`;
}

function generationOf({ counters }: HostedTask['block']): number {
  return counters[C_GENERATION]!;
}

/** A task that nobody knows runs no user code. */
function isOfUser(component: string | null | undefined): boolean {
  return typeof component === 'string' && !isSystemComponent(component);
}
