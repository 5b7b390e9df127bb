/**
 * Runs one slot: carries out what `planSlot` decides, watches the worker process, and keeps what is known of it.
 *
 * The plan is asked after every event; results of what it asked for come back as events. A worker counts as gone only
 * when its process has been verified gone (pid and start time; a zombie is gone) and its process group was ended.
 */
import {
  type CancelTimer,
  type Channel,
  type Clock,
  type ErrorRecord,
  IsobarError,
  type Logger,
  toErrorRecord,
  isSameProcessAlive,
} from '../base/index.js';
import type { SlotReport, WorkerHeartbeat, WorkerWelcome } from '../coordination/index.js';
import {
  EMPTY_SLOT,
  planSlot,
  topologyOf,
  wakeAtMs,
  workerOf,
  type Desired,
  type SlotAction,
  type SlotEvent,
  type SlotLimits,
  type SlotState,
  type SlotWorker,
  type StopReason,
} from './slot-plan.js';
import { threadDeaths } from './thread-deaths.js';
import type { WorkerNews } from './worker-events.js';
import { killWorkerGroup, lastLines, terminateWorker, type ProcessExit } from './worker-processes.js';

const END_POLL_MS = 10;
const END_POLLS = 200;
const DISCONNECTED_POLL_MS = 500;
/** How long to wait for the exit code of a child that is gone already. */
const EXIT_CODE_WAIT_MS = 200;

const LAST_WORDS_WAIT_MS = 100;

/** A worker that has just been started. */
export interface LaunchedWorker {
  readonly worker: SlotWorker;
  readonly outputPath: string;
  readonly exited: Promise<ProcessExit>;
}

/** Everything that is needed to launch a worker; nothing of it outlives the attempt. */
export interface PreparedLaunch {
  readonly generation: number;
  launch(): Promise<LaunchedWorker>;
}

export interface SlotOptions {
  readonly port: number;
  readonly limits: SlotLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  desired(): Desired;
  /** Localises code and raises the generation; must stop waiting when the signal is aborted. */
  prepare(topologyId: string, signal: AbortSignal): Promise<PreparedLaunch>;
  /** The worker is gone; `heard`: the last heartbeat of it. */
  keepLastReport(worker: SlotWorker, heard: WorkerHeartbeat | null): void;
  /** Something that the history of the topology should know. */
  note(news: WorkerNews): void;
  /** The worker is gone: its launch record is of no use any more. */
  forget(worker: SlotWorker): void;
  /** The state, the problem or the worker of this slot has changed. */
  onChange(): void;
}

interface Watched {
  readonly worker: SlotWorker;
  readonly outputPath: string | undefined;
  /** Set for children of this process. */
  readonly exited: Promise<ProcessExit> | undefined;
}

export class Slot {
  readonly port: number;
  readonly #options: SlotOptions;
  readonly #logger: Logger;
  #state: SlotState = EMPTY_SLOT;
  readonly #events: SlotEvent[] = [];
  #isPlanning = false;
  #cancelTimer: CancelTimer | undefined;
  #preparing: AbortController | undefined;
  #prepared: PreparedLaunch | undefined;
  #watched: Watched | undefined;
  /** The worker without connection whose process is looked at. */
  #looksAt: Watched | undefined;
  #channel: Channel | undefined;
  readonly #detachWaiters: (() => void)[] = [];
  #sentVersion = 0;
  #sentPhase = '';
  #sentHandovers = '';
  #heartbeat: WorkerHeartbeat | null = null;
  #heartbeatMs: number | null = null;
  #lastProblem: ErrorRecord | null = null;
  #lastProblemMs: number | null = null;
  /** Why the worker is being stopped, if not because nothing is to run here any more. */
  #stopWhy = '';
  /** The worker that has been found running, so that it did not start now. */
  #adopted: SlotWorker | undefined;
  #restarts = 0;
  /** Highest generation launched or seen here, by topology. */
  readonly #generations = new Map<string, number>();
  #isClosed = false;

  constructor(options: SlotOptions) {
    this.port = options.port;
    this.#options = options;
    this.#logger = options.logger.child({ port: options.port });
  }

  get state(): SlotState {
    return this.#state;
  }

  get worker(): SlotWorker | undefined {
    return workerOf(this.#state);
  }

  newestGeneration(topologyId: string): number {
    return this.#generations.get(topologyId) ?? 0;
  }

  /** Decides anew: the assignment may have changed. */
  reconsider(): void {
    this.#dispatch({ kind: 'tick' });
  }

  /** Makes a process that runs already this slot's worker. */
  adopt(worker: SlotWorker, outputPath?: string): void {
    this.#noteGeneration(worker);
    this.#adopted = worker;
    this.#dispatch({ kind: 'adopted', worker });
    if (this.worker !== worker) return;
    this.#watched = { worker, outputPath, exited: undefined };
    void this.#watchDisconnected(this.#watched);
  }

  /** Binds the connection of the slot's worker; what was just sent as welcome is not sent again. */
  attach(channel: Channel, { assignment, phase, handovers }: WorkerWelcome): void {
    const before = this.#channel;
    this.#channel = channel;
    if (before !== channel) before?.close();
    this.#sentVersion = assignment.version;
    this.#sentPhase = JSON.stringify(phase);
    this.#sentHandovers = JSON.stringify(handovers);
    if (this.worker !== undefined) this.#dispatch({ kind: 'welcomed', workerId: this.worker.workerId });
  }

  /** The end of a connection is, most often, the end of its process. */
  detach(channel: Channel): void {
    if (this.#channel !== channel) return;
    this.#channel = undefined;
    for (const resolve of this.#detachWaiters.splice(0)) resolve();
    if (this.#watched !== undefined) void this.#awaitEnd(this.#watched);
  }

  /** Asks the worker for something that only it knows. @throws CONNECTION_LOST, REQUEST_TIMEOUT, and what the worker says */
  async ask(method: 'tap' | 'find-row', body: unknown, timeoutMs: number): Promise<unknown> {
    if (this.#channel === undefined)
      throw new IsobarError('CONNECTION_LOST', `the worker of port ${this.port} is not connected`);
    return this.#channel.request(method, body, { timeoutMs });
  }

  isAttached(channel: Channel): boolean {
    return this.#channel === channel;
  }

  /** Tells the worker what has changed since it was last told. */
  inform({ assignment, phase, handovers }: WorkerWelcome): void {
    if (this.#channel === undefined || this.worker?.topologyId !== assignment.topologyId) return;
    const handoversText = JSON.stringify(handovers);
    if (handoversText !== this.#sentHandovers) {
      this.#sentHandovers = handoversText;
      this.#channel.event('handovers', handovers);
    }
    if (assignment.version > this.#sentVersion) {
      this.#sentVersion = assignment.version;
      this.#channel.event('assignment', assignment);
    }
    const phaseText = JSON.stringify(phase);
    if (phaseText !== this.#sentPhase) {
      this.#sentPhase = phaseText;
      this.#channel.event('phase', phase);
    }
  }

  heartbeat(heartbeat: WorkerHeartbeat): void {
    const { worker } = this;
    if (heartbeat.workerId !== worker?.workerId) return;
    for (const { code, reason } of threadDeaths(this.#heartbeat, heartbeat))
      this.#note('thread-died', worker, code, reason);
    this.#heartbeat = heartbeat;
    this.#heartbeatMs = this.#options.clock.wallMs();
    this.#dispatch({ kind: 'alive', workerId: heartbeat.workerId });
  }

  unusable(error: IsobarError): void {
    const problem = toErrorRecord(error);
    const { worker } = this;
    if (worker === undefined) return;
    this.#logger.error('worker.unusable', {
      worker: worker.workerId,
      code: problem.code,
      message: problem.message,
    });
    this.#setProblem(problem);
    this.#stopWhy = problem.message;
    this.#dispatch({ kind: 'unusable', workerId: worker.workerId });
  }

  /** The worker takes more memory than it may: it is stopped, and another one started. */
  tooLarge(worker: SlotWorker, why: string): void {
    const { kind } = this.#state;
    if (this.worker !== worker || (kind !== 'starting' && kind !== 'running')) return;
    this.#setProblem(this.#problem('WORKER_MEMORY_EXCEEDED', worker, why));
    this.#stopWhy = why;
    this.#logger.warn('worker.too-large', { worker: worker.workerId, why });
    this.#dispatch({ kind: 'too-large', workerId: worker.workerId });
  }

  /** Catches the end of a process that nothing else has told of. */
  checkProcess(): void {
    const watched = this.#watched;
    if (watched !== undefined && !isSameProcessAlive(watched.worker.process)) void this.#onEnded(watched);
  }

  /** As the supervisor publishes it. */
  report(): SlotReport {
    const { worker } = this;
    return {
      port: this.port,
      state: this.#state.kind,
      topologyId: topologyOf(this.#state) ?? null,
      workerId: worker?.workerId ?? null,
      pid: worker?.process.pid ?? null,
      restarts: this.#restarts,
      lastProblem: this.#lastProblem,
      lastProblemMs: this.#lastProblemMs,
      retryInMs: this.#retryInMs(),
      heartbeat: this.#heartbeat,
      heartbeatMs: this.#heartbeatMs,
    };
  }

  #retryInMs(): number | null {
    const { kind } = this.#state;
    const atMs = kind === 'backing-off' || kind === 'unusable' ? wakeAtMs(this.#state) : null;
    return atMs === null ? null : Math.max(0, Math.round(atMs - this.#options.clock.nowMs()));
  }

  /** Stops deciding; the worker goes on. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#preparing?.abort();
  }

  // ── deciding ──

  #dispatch(event: SlotEvent): void {
    this.#events.push(event);
    if (this.#isPlanning || this.#isClosed) return;
    this.#isPlanning = true;
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) this.#plan(next);
    } finally {
      this.#isPlanning = false;
    }
  }

  #plan(event: SlotEvent): void {
    const { clock, limits } = this.#options;
    const before = this.#state;
    const { state, actions } = planSlot(before, this.#options.desired(), event, clock.nowMs(), limits);
    this.#state = state;
    if (topologyOf(before) !== topologyOf(state)) {
      this.#restarts = 0;
      this.#lastProblem = null;
      this.#lastProblemMs = null;
    }
    if (workerOf(state) === undefined) this.#release();
    for (const action of actions) this.#act(action);
    this.#schedule();
    if (before.kind === state.kind && before.attempts === state.attempts) return;
    this.#logger.info('slot.moved', {
      from: before.kind,
      to: state.kind,
      topology: topologyOf(state) ?? topologyOf(before),
      worker: workerOf(state)?.workerId,
    });
    const { worker } = this;
    if (before.kind === 'starting' && state.kind === 'running' && worker !== this.#adopted)
      this.#note('worker-started', worker!, null, 'started', `pid ${worker!.process.pid}`);
    this.#options.onChange();
  }

  #setProblem(problem: ErrorRecord): void {
    this.#lastProblem = problem;
    this.#lastProblemMs = Math.floor(this.#options.clock.wallMs());
  }

  #note(
    kind: WorkerNews['kind'],
    { topologyId }: Pick<SlotWorker, 'topologyId'>,
    code: string | null,
    reason: string,
    detail = '',
  ): void {
    this.#options.note({ kind, topologyId, port: this.port, code, reason, detail });
  }

  #schedule(): void {
    this.#cancelTimer?.();
    const { clock } = this.#options;
    const atMs = wakeAtMs(this.#state);
    this.#cancelTimer =
      atMs === null
        ? undefined
        : clock.after(Math.max(1, atMs - clock.nowMs()), () => this.#dispatch({ kind: 'tick' }));
  }

  #act(action: SlotAction): void {
    switch (action.kind) {
      case 'localise':
        void this.#prepare(action.topologyId, action.attempt);
        break;
      case 'cancel-localise':
        this.#preparing?.abort();
        break;
      case 'launch':
        void this.#launch(action.attempt);
        break;
      case 'stop':
        this.#stop(action.worker, action.reason);
        break;
      case 'kill':
        this.#logger.warn('worker.killed', {
          worker: action.worker.workerId,
          pid: action.worker.process.pid,
        });
        killWorkerGroup(action.worker.process);
        if (this.#watched?.worker === action.worker) void this.#awaitEnd(this.#watched);
        break;
      case 'forget':
        this.#options.forget(action.worker);
        break;
    }
  }

  // ── starting ──

  async #prepare(topologyId: string, attempt: number): Promise<void> {
    const preparing = new AbortController();
    this.#preparing = preparing;
    try {
      const prepared = await this.#options.prepare(topologyId, preparing.signal);
      if (preparing.signal.aborted) return;
      this.#prepared = prepared;
      this.#dispatch({ kind: 'localised', attempt });
    } catch (error) {
      if (preparing.signal.aborted) return;
      this.#fail('slot.not-prepared', error, topologyId);
      this.#dispatch({ kind: 'localise-failed', attempt });
    }
  }

  async #launch(attempt: number): Promise<void> {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    try {
      if (prepared === undefined)
        throw new IsobarError('INTERNAL', 'a launch was asked for before it was prepared');
      const { worker, outputPath, exited } = await prepared.launch();
      this.#noteGeneration(worker);
      const watched = { worker, outputPath, exited };
      this.#watched = watched;
      void exited.then((exit) => this.#onEnded(watched, exit));
      this.#logger.info('worker.launched', {
        worker: worker.workerId,
        topology: worker.topologyId,
        pid: worker.process.pid,
        generation: worker.generation,
      });
      this.#dispatch({ kind: 'launched', attempt, worker });
    } catch (error) {
      this.#fail('worker.not-launched', error, topologyOf(this.#state));
      this.#dispatch({ kind: 'launch-failed', attempt });
    }
  }

  #fail(event: string, error: unknown, topologyId: string | undefined): void {
    const problem = toErrorRecord(error);
    this.#setProblem(problem);
    if (topologyId !== undefined)
      this.#note('worker-not-started', { topologyId }, problem.code, problem.message);
    this.#logger.warn(event, { topology: topologyId, code: problem.code, message: problem.message });
    this.#options.onChange();
  }

  // ── stopping and ending ──

  #stop(worker: SlotWorker, reason: StopReason): void {
    this.#logger.info('worker.stopping', { worker: worker.workerId, reason });
    if (reason === 'start-timeout' || reason === 'run-timeout') {
      const limitMs = reason === 'start-timeout' ? worker.tuning.launchTimeoutMs : worker.tuning.timeoutMs;
      this.#stopWhy = `sent no heartbeat for ${limitMs} ms`;
      const code = reason === 'start-timeout' ? 'WORKER_START_FAILED' : 'WORKER_LOST';
      this.#setProblem(this.#problem(code, worker, this.#stopWhy));
    }
    if (this.#channel === undefined) terminateWorker(worker.process);
    else this.#channel.event('stop');
  }

  /** Polls for the end of a process for a while: an exit is told late, or not at all, by a connection's end. */
  async #awaitEnd(watched: Watched): Promise<void> {
    for (let poll = 0; poll < END_POLLS && !this.#isOver(watched); poll++) {
      if (!isSameProcessAlive(watched.worker.process)) return this.#onEnded(watched);
      await this.#pause(END_POLL_MS);
    }
    await this.#watchDisconnected(watched);
  }

  /** Looks twice a second for the end of a process that has no connection, whose end would tell. One look at a time. */
  async #watchDisconnected(watched: Watched): Promise<void> {
    if (this.#looksAt === watched) return;
    this.#looksAt = watched;
    while (!this.#isOver(watched) && this.#channel === undefined) {
      this.checkProcess();
      await this.#pause(DISCONNECTED_POLL_MS);
    }
    if (this.#looksAt === watched) this.#looksAt = undefined;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve));
  }

  async #onEnded(watched: Watched, exit?: ProcessExit): Promise<void> {
    if (this.#isOver(watched)) return;
    const how = exit ?? (await this.#exitOf(watched));
    await this.#lastWordsRead();
    // Another caller may have come first while this one waited for the exit code.
    if (this.#isOver(watched)) return;
    const { worker, outputPath } = watched;
    killWorkerGroup(worker.process);
    this.#options.keepLastReport(worker, this.#heartbeat);
    this.#heartbeat = null;
    this.#heartbeatMs = null;
    if (this.#state.kind === 'starting' || this.#state.kind === 'running') {
      this.#restarts++;
      const code = this.#state.kind === 'starting' ? 'WORKER_START_FAILED' : 'WORKER_LOST';
      this.#setProblem(this.#problem(code, worker, describeExit(how), outputPath));
      const said = outputPath === undefined ? '' : lastLines(outputPath);
      this.#note('worker-died', worker, code, describeExit(how), said.trimEnd().split('\n').at(-1));
      this.#logger.warn('worker.ended', { worker: worker.workerId, how: describeExit(how) });
    } else {
      const isAsked = this.#state.kind !== 'stopping' || this.#state.reason === 'assignment';
      if (!isAsked) this.#restarts++;
      if (isAsked) this.#note('worker-stopped', worker, null, 'was told to stop');
      else this.#note('worker-died', worker, this.#lastProblem?.code ?? null, this.#stopWhy);
      this.#logger.info('worker.ended', { worker: worker.workerId, how: describeExit(how) });
    }
    this.#watched = undefined;
    this.#dispatch({ kind: 'gone', workerId: worker.workerId });
    this.#options.onChange();
  }

  #isOver(watched: Watched): boolean {
    return this.#watched !== watched || this.#isClosed;
  }

  async #exitOf({ exited }: Watched): Promise<ProcessExit | null> {
    if (exited === undefined) return null;
    const { clock } = this.#options;
    return Promise.race([
      exited,
      new Promise<null>((resolve) => clock.after(EXIT_CODE_WAIT_MS, () => resolve(null))),
    ]);
  }

  /** The end of a process may be told before the last of what it sent has been read. */
  async #lastWordsRead(): Promise<void> {
    if (this.#channel === undefined) return;
    await new Promise<void>((resolve) => {
      this.#detachWaiters.push(resolve);
      this.#options.clock.after(LAST_WORDS_WAIT_MS, resolve);
    });
  }

  #problem(
    code: 'WORKER_START_FAILED' | 'WORKER_LOST' | 'WORKER_MEMORY_EXCEEDED',
    worker: SlotWorker,
    what: string,
    outputPath = this.#watched?.outputPath,
  ): ErrorRecord {
    const output = outputPath === undefined ? '' : lastLines(outputPath);
    const said = output === '' ? '' : `; its last output:\n${output}`;
    return toErrorRecord(
      new IsobarError(code, `worker ${worker.workerId} (pid ${worker.process.pid}) ${what}${said}`, {
        where: outputPath ?? `port ${this.port}`,
        output,
      }),
    );
  }

  /** Without a worker there is no connection. */
  #release(): void {
    const channel = this.#channel;
    this.#channel = undefined;
    this.#sentVersion = 0;
    this.#sentPhase = '';
    this.#sentHandovers = '';
    channel?.close();
  }

  #noteGeneration({ topologyId, generation }: SlotWorker): void {
    this.#generations.set(topologyId, Math.max(generation, this.newestGeneration(topologyId)));
  }
}

function describeExit(exit: ProcessExit | null): string {
  if (exit === null) return 'ended';
  return exit.signal === null ? `ended with exit code ${exit.code}` : `was ended by ${exit.signal}`;
}
