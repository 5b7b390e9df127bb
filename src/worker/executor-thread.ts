/**
 * The loop of one executor thread: drain the links, run bolts (sinks first) until their queues are empty or a budget is
 * spent, then spouts, flush, and let the event loop run at least every millisecond.
 *
 * It owns the thread's executors and links. It never reads the coordinator and never talks to another thread except
 * through rings; what changes around it comes as messages of the worker's main thread.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import { toErrorRecord, type Clock, type Logger } from '../base/index.js';
import type { TapRequest, TopologyPhase } from '../coordination/index.js';
import { Doorbell, H_TARGET_GENERATION } from '../messaging/index.js';
import type { BoltExecutor } from './bolt-executor.js';
import { sendEndMarks } from './bolt-task.js';
import { P_LAG_MS, P_TURNS } from './counters.js';
import { CycleLevels } from './cycle-levels.js';
import { FairTurns } from './fair-turns.js';
import type { CreatedTask, ExecutorFactory } from './executor-factory.js';
import { FrameReceiver } from './frame-receiver.js';
import { LeavingTasks } from './leaving-tasks.js';
import { LostTrees } from './lost-trees.js';
import { RowTap } from './row-tap.js';
import type { SpoutExecutor } from './spout-executor.js';
import type { ThreadContext } from './thread-context.js';
import type { FromThread, ThreadStart, ToThread } from './thread-messages.js';
import { ThreadReports } from './thread-reports.js';
import { ThreadRoutes } from './thread-routes.js';
import { ThreadTasks } from './thread-tasks.js';

const BOLT_BUDGET_ROWS = 8192;
const SPOUT_BUDGET_ROWS = 256;
const FRAMES_PER_TURN = 64;
const YIELD_MS = 1;
const MAINTENANCE_MS = 250;
/** A thread that has not looked for longer has stood still. */
const STOOD_MS = 2000;
/** Period of the maintenance of a thread that has nothing pending, and its longest sleep. */
const CALM_MS = 1000;
/** A tick that is due while its receivers take no rows must not keep the thread awake. */
const SHORTEST_SLEEP_MS = 1;
/** What could not be flushed is looked at again after 1 ms, and later each time: the bell is rung when it can be. */
const LONGEST_BLOCKED_MS = 16;

export interface ExecutorThreadOptions {
  readonly start: ThreadStart;
  readonly context: ThreadContext;
  readonly factory: ExecutorFactory;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly post: (message: FromThread, transfer?: ArrayBuffer[]) => void;
  /** The thread cannot go on. */
  readonly onBroken: (error: unknown) => void;
}

export class ExecutorThread {
  readonly #start: ThreadStart;
  readonly #context: ThreadContext;
  readonly #options: ExecutorThreadOptions;
  readonly #doorbell: Doorbell;
  readonly #clock: Clock;
  readonly #tasks: ThreadTasks;
  readonly #routes: ThreadRoutes;
  readonly #cycleLevels: CycleLevels;
  readonly #leaving: LeavingTasks;
  readonly #lost: LostTrees;
  readonly #reports: ThreadReports;
  readonly #progress: Int32Array;
  #phase: TopologyPhase = { kind: 'active' };
  #stopping = false;
  #wakeRequested = false;
  #isFlushAsked = false;
  /** All that was to be sent in the last turn has been. */
  #isFlushed = true;
  #lastFlushMs = 0;
  readonly #flushMs: number;
  /** By depth of the graph. */
  readonly #boltTurns: FairTurns[] = [];
  readonly #spoutTurns = new FairTurns();
  #drainOrigin: number | null = null;
  #nextMaintenanceMs = 0;
  #maintainedMs: number;
  /** Nothing has happened since the last maintenance, and nothing is pending. */
  #isCalm = false;
  #blockedMs = SHORTEST_SLEEP_MS;
  readonly #onFrame: (
    words: Int32Array,
    at: number,
    bytes: Buffer,
    byteStart: number,
    byteLength: number,
  ) => void;

  constructor(options: ExecutorThreadOptions) {
    this.#options = options;
    this.#start = options.start;
    this.#clock = options.clock;
    this.#maintainedMs = options.clock.nowMs();
    this.#flushMs = options.context.options.settings['messaging.flush-interval'];
    this.#context = options.context;
    this.#doorbell = new Doorbell(options.start.doorbell);
    this.#routes = new ThreadRoutes(options.start, options.factory, options.post);
    this.#tasks = new ThreadTasks({
      factory: options.factory,
      onChanged: () => this.#routes.connect(this.#executors),
      onStarted: (tasks) => this.#onStarted(tasks),
      wake: () => this.wake(),
      onPrepared: (task) => options.post({ kind: 'prepared', task }),
      onFailed: (task, error) => options.post({ kind: 'start-failed', task, error: toErrorRecord(error) }),
      onStopped: (tasks) => options.post({ kind: 'stopped', tasks }),
      onBroken: (error) => options.onBroken(error),
    });
    this.#lost = new LostTrees(this.#tasks, options.context, options.clock, options.logger);
    this.#reports = new ThreadReports({
      tasks: this.#tasks,
      routes: this.#routes,
      context: options.context,
      userCounters: options.factory.userCounters,
      post: options.post,
    });
    this.#cycleLevels = new CycleLevels(options.context.cycles, options.factory.edges);
    this.#leaving = new LeavingTasks({
      factory: options.factory,
      tasks: this.#tasks,
      isSending: (task) => this.#routes.held.hasRowOf(task),
      post: options.post,
    });
    this.#progress = options.context.options.progress;
    const receiver = new FrameReceiver(options.context, options.factory, {
      post: options.post,
      onPassed: (task, id, endpoint) => this.#leaving.onPassed(task, id, endpoint),
    });
    this.#onFrame = (words, at, bytes, byteStart) => {
      if (words[at + H_TARGET_GENERATION] !== this.#start.generation) return;
      const origin = this.#drainOrigin;
      if (origin === null) receiver.receiveFromPeer(words, at, bytes, byteStart);
      else receiver.receive(words, at, bytes, byteStart, origin);
    };
  }

  /** Makes a sleeping loop look again; called when a promise settled or a message came. */
  wake(): void {
    this.#wakeRequested = true;
    this.#noteActivity();
    this.#doorbell.wakeSelf();
  }

  /** Takes a message at once; what has to wait for user code goes on by itself. */
  onMessage(message: ToThread): void {
    switch (message.kind) {
      case 'tap':
        this.#tap(message.id, message.request);
        break;
      case 'find-row': {
        const holder = this.#reports.holderOf(message.rootTask, message.sequence);
        this.#options.post({ kind: 'found-row', id: message.id, holder });
        break;
      }
      case 'executors':
        this.#tasks.regroup(message.ranges);
        break;
      case 'start-tasks':
        // Not awaited: thousands take a while, and the loop goes on meanwhile.
        void this.#tasks.start(message.tasks);
        break;
      case 'go':
        this.#tasks.go(message.task);
        break;
      case 'stop-tasks':
        // Not awaited: user code that closes slowly must not hold up what comes next.
        for (const task of message.tasks) this.#leaving.forget(task);
        void this.#tasks.stop(message.tasks);
        break;
      case 'flush':
        this.#isFlushAsked = true;
        break;
      case 'finish-task':
        this.#leaving.finish(message, this.#clock.nowMs());
        break;
      case 'keep-task':
        this.#leaving.keep(message.task);
        break;
      case 'routes':
        this.#applyRoutes(message);
        break;
      case 'mark':
        this.#lost.mark(message.hasEnded);
        this.#lost.replayUnmovedSoon();
        break;
      case 'suspect':
        this.#lost.suspect();
        break;
      case 'expire':
        this.#lost.expire();
        break;
      case 'phase':
        this.#applyPhase(message.phase);
        break;
      case 'tasks':
        // Taken by the entry, before this loop exists.
        break;
      case 'stop':
        this.#stopping = true;
        break;
    }
    this.wake();
  }

  /** Runs until told to stop, then closes every task. Rejects only when a promise of the thread itself is broken. */
  async run(): Promise<void> {
    let lastYieldMs = this.#clock.nowMs();
    let hasWorked = true;
    while (!this.#stopping) {
      const work = this.turn();
      const nowMs = this.#clock.nowMs();
      if (work === 0) {
        await this.#idle(hasWorked);
        hasWorked = false;
        lastYieldMs = this.#clock.nowMs();
      } else {
        hasWorked = true;
        if (nowMs - lastYieldMs < YIELD_MS) continue;
        await immediate();
        lastYieldMs = this.#clock.nowMs();
        this.#progress[P_LAG_MS] = Math.round(lastYieldMs - nowMs);
      }
    }
    await this.close();
  }

  /** One turn through everything that may have work; returns how much was done. */
  turn(): number {
    const turnMs = this.#clock.nowMs();
    this.#context.turnMs = turnMs;
    this.#progress[P_TURNS]!++;
    this.#wakeRequested = false;
    this.#tasks.renew();
    let work = this.#drain();
    // Executors that may fill the same receiver go first in turn, or the others would find its gate closed for ever.
    const { boltsByDepth, spouts } = this.#tasks;
    for (let depth = 0; depth < boltsByDepth.length; depth++) {
      const turns = (this.#boltTurns[depth] ??= new FairTurns());
      work += turns.each(boltsByDepth[depth]!, runOf, BOLT_BUDGET_ROWS);
    }
    work += this.#spoutTurns.each(spouts, runOf, SPOUT_BUDGET_ROWS);
    if (turnMs >= this.#nextMaintenanceMs) this.#maintain(turnMs);
    this.#lost.replayIfDue(turnMs);
    work += this.#runDue(turnMs);
    this.#cycleLevels.tell(this.#tasks.bolts, this.#routes.held.rows, this.#routes.links, false);
    this.#leaving.advance(turnMs);
    const nowMs = this.#clock.nowMs();
    this.#isFlushed = true;
    if (work === 0 || nowMs - this.#lastFlushMs >= this.#flushMs) {
      this.#isFlushed = this.#flush();
      this.#lastFlushMs = nowMs;
      if (this.#isFlushed && this.#isFlushAsked) {
        this.#isFlushAsked = false;
        this.#options.post({ kind: 'flushed' });
      }
    }
    if (work > 0) this.#noteActivity();
    return work;
  }

  /** Something has asked for another turn, or has come, since the last one began. */
  get isWoken(): boolean {
    return this.#wakeRequested || this.#hasInput();
  }

  /** A promise of user code is open: what goes on does so without a turn. */
  get isAwaiting(): boolean {
    return (
      this.#tasks.isAwaiting ||
      this.#tasks.bolts.some(
        ({ component, tasks }) => !component.manual && tasks.some(({ openCalls }) => openCalls.size > 0),
      ) ||
      this.#tasks.spouts.some(({ tasks }) => tasks.some(({ source }) => source.isWaiting))
    );
  }

  async #idle(hasWorked: boolean): Promise<void> {
    if (hasWorked) {
      // Under load the next batch is often about to arrive, and falling asleep costs more than looking again.
      await immediate();
      if (this.#stopping || this.#wakeRequested || this.#hasInput()) return;
    }
    // What could not be flushed waits for credit or for space in a ring: both ring the bell, so looking again is a precaution.
    const longestMs = this.#isFlushed ? CALM_MS : this.#blockedMs;
    this.#blockedMs = this.#isFlushed ? SHORTEST_SLEEP_MS : Math.min(2 * this.#blockedMs, LONGEST_BLOCKED_MS);
    // Rounded up: a timer cuts fractions, and waking up twice for one thing costs twice.
    const dueMs = Math.ceil(this.nextDueMs - this.#clock.nowMs());
    const hasSlept = await this.#doorbell.sleep(
      Math.max(SHORTEST_SLEEP_MS, Math.min(longestMs, dueMs)),
      () => this.#stopping || this.#wakeRequested || this.#hasInput(),
    );
    if (!hasSlept) await immediate();
  }

  /** Something has happened: what follows from it is reported within `MAINTENANCE_MS`. */
  #noteActivity(): void {
    if (!this.#isCalm) return;
    this.#isCalm = false;
    this.#nextMaintenanceMs = Math.min(this.#nextMaintenanceMs, this.#clock.nowMs() + MAINTENANCE_MS);
  }

  #hasInput(): boolean {
    for (const { reader } of this.#routes.inbound) if (!reader.isEmpty) return true;
    return false;
  }

  /** Asks sources that had nothing again, without a rest. */
  askSources(): void {
    for (const { tasks } of this.#tasks.spouts) for (const { source } of tasks) source.askNow();
  }

  /** A manual bolt holds rows that it has not answered for. */
  get isHolding(): boolean {
    return this.#tasks.bolts.some(
      ({ component, tasks }) => component.manual && tasks.some(({ openCalls }) => openCalls.size > 0),
    );
  }

  /** When a turn is due although nothing happens, ms of the clock. */
  get nextDueMs(): number {
    let due = Math.min(this.#nextMaintenanceMs, this.#leaving.nextDueMs, this.#lost.dueMs);
    for (const bolt of this.#tasks.bolts) due = Math.min(due, bolt.nextTickMs);
    for (const spout of this.#tasks.spouts) due = Math.min(due, spout.retryAtMs);
    return due;
  }

  #drain(): number {
    let frames = 0;
    for (const inbound of this.#routes.inbound) {
      this.#drainOrigin = inbound.endpoint;
      frames += inbound.reader.drain(this.#onFrame, FRAMES_PER_TURN);
    }
    return frames;
  }

  #flush(): boolean {
    let done = true;
    for (const link of this.#routes.links) if (!link.flush()) done = false;
    return done;
  }

  #onStarted(created: readonly CreatedTask[]): void {
    const reading = this.#phase.kind === 'active';
    for (const { kind, task } of created) if (kind === 'spout') task.setReading(reading);
    this.#options.post({ kind: 'started', tasks: created.map(({ task }) => task.number) });
    this.wake();
  }

  #applyRoutes(routes: Extract<ToThread, { kind: 'routes' }>): void {
    const context = this.#context;
    const stood = context.routesStand;
    const hasMoved = this.#routes.apply(routes, this.#executors);
    if (routes.lost) this.#lost.mark(routes.hasEnded);
    if (!context.acking && hasMoved) this.#resendEndMarks();
    context.routesStand = context.reachable.every((gate) => !gate.blocked);
    if (!stood && context.routesStand) this.#lost.replay(true);
    else if (routes.lost) this.#lost.replayUnmovedSoon();
    this.#options.post({ kind: 'routes-applied', version: routes.version });
  }

  get #executors(): readonly (BoltExecutor | SpoutExecutor)[] {
    return [...this.#tasks.bolts, ...this.#tasks.spouts];
  }

  #resendEndMarks(): void {
    // Marks are counted per sender, so sending them again to tasks that have them already changes nothing.
    for (const bolt of this.#tasks.bolts) for (const task of bolt.tasks) if (task.ended) sendEndMarks(task);
    for (const spout of this.#tasks.spouts) for (const task of spout.tasks) task.resendEndMarks();
  }

  #applyPhase(phase: TopologyPhase): void {
    this.#phase = phase;
    const reading = phase.kind === 'active';
    for (const spout of this.#tasks.spouts) for (const task of spout.tasks) task.setReading(reading);
  }

  /** Ticks and ends that are due. */
  #runDue(nowMs: number): number {
    let ran = 0;
    // Ends first: a tick whose promise is open holds the end up, so the next tick must not come in between.
    if (!this.#context.acking) {
      for (const bolt of this.#tasks.bolts) ran += bolt.endMarkedTasks();
    } else if (this.#phase.kind === 'ending') {
      const stage = this.#phase.stages[this.#phase.stage] ?? [];
      for (const bolt of this.#tasks.bolts) if (stage.includes(bolt.component.id)) ran += bolt.end();
    }
    for (const bolt of this.#tasks.bolts) {
      if (bolt.nextTickMs <= nowMs) ran += bolt.tick(nowMs);
    }
    return ran;
  }

  #maintain(nowMs: number): void {
    const { bolts, spouts } = this.#tasks;
    this.#isCalm = bolts.every((bolt) => bolt.isCalm) && spouts.every((spout) => spout.isCalm);
    this.#nextMaintenanceMs = nowMs + (this.#isCalm ? CALM_MS : MAINTENANCE_MS);
    const passedMs = nowMs - this.#maintainedMs;
    const elapsedMs = Math.min(passedMs, CALM_MS);
    // The process was stopped, or user code kept the thread: nothing could settle meanwhile.
    const stoodMs = passedMs > STOOD_MS ? passedMs : 0;
    this.#maintainedMs = nowMs;
    for (const bolt of bolts) {
      bolt.noteBlocked(elapsedMs);
      bolt.updateDepths();
      bolt.expire(nowMs, stoodMs);
    }
    for (const spout of spouts) {
      for (const task of spout.tasks) {
        task.noteBlocked(elapsedMs);
        task.updateDepths();
        task.retryDeadLetters(nowMs);
      }
    }
    if (this.#context.routesStand) this.#lost.replay(false);
    this.#cycleLevels.tell(this.#tasks.bolts, this.#routes.held.rows, this.#routes.links, true);
    this.#reports.postIfDue(nowMs);
  }

  /** One at a time: a second one while one is open is answered at once, with nothing. */
  #tap(id: number, request: TapRequest): void {
    const context = this.#context;
    const tasks = this.#options.factory.tasksOf(request.component);
    if (tasks === undefined || context.tap !== null) {
      this.#options.post({ kind: 'tapped', id, rows: [], seen: 0 });
      return;
    }
    const { clock } = this.#options;
    const tap = new RowTap({
      request,
      firstTask: tasks.first,
      lastTask: tasks.last,
      nowMs: this.#clock.nowMs(),
      wallMs: () => clock.wallMs(),
    });
    context.tap = tap;
    clock.after(request.windowMs, () => {
      context.tap = null;
      this.#options.post({ kind: 'tapped', id, rows: tap.rows, seen: tap.seen });
    });
  }

  /** Closes every task; the last call. */
  async close(): Promise<void> {
    this.#flush();
    this.#reports.postPositions();
    await this.#tasks.closeAll();
    this.#flush();
    this.#options.post({ kind: 'closed' });
  }
}

function runOf(executor: BoltExecutor | SpoutExecutor, budgetRows: number): number {
  return executor.run(budgetRows);
}
