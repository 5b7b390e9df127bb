/**
 * A worker: one process that runs executors of exactly one topology.
 *
 * Its main thread (this file) runs no user code: it puts together the parts that keep the link to the supervisor, pass frames
 * on (frame-forwarder.ts) and report (heartbeat-sender.ts). What runs where is the reconciler's; who is where, the route
 * keeper's.
 */
import { readFileSync } from 'node:fs';
import {
  ACKER,
  compileSettings,
  IsobarError,
  isSystemComponent,
  toErrorRecord,
  toIsobarError,
  type Clock,
  type LogFile,
  type Logger,
  type Settings,
} from '../base/index.js';
import {
  quietIntervalMs,
  type TopologyPhase,
  type WorkerHeartbeat,
  type WorkerLaunch,
} from '../coordination/index.js';
import {
  Doorbell,
  encodeControlFrame,
  PeerConnections,
  peerSocketPath,
  type PeerAddress,
  type PeerKey,
} from '../messaging/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { TopologyDescription } from '../topology/index.js';
import { CrashRecord } from './crash-record.js';
import type { PeerMessage } from './endpoints.js';
import { ExecutorThreads } from './executor-threads.js';
import { FrameForwarder } from './frame-forwarder.js';
import { HeartbeatSender } from './heartbeat-sender.js';
import { mostUnderWay } from './peer-credit.js';
import { QuietWatch } from './quiet-watch.js';
import { Reconciler } from './reconciler.js';
import { ReportBook } from './report-book.js';
import { RouteKeeper } from './route-keeper.js';
import { StateRecord } from './state-record.js';
import { SupervisorLink } from './supervisor-link.js';
import { componentOf, TaskBook } from './task-book.js';
import { threadReport, type ThreadHost } from './thread-host.js';
import { tapThreads } from './tap-threads.js';
import { threadHeapMb } from './thread-heap.js';
import { ThreadQuestions } from './thread-questions.js';
import type { FromThread } from './thread-messages.js';

const FIND_ROW_MS = 500;
const QUIET_WATCH_MS = 1000;

export interface WorkerProcessOptions {
  readonly launch: WorkerLaunch;
  readonly process: { readonly pid: number; readonly startTime: string };
  readonly threadEntry: URL;
  readonly log: LogFile;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called once, when the worker has ended; `code` is the exit code to use. */
  onEnd(code: number): void;
  /** The supervisor went (false) or is there again (true). */
  onPresence?(present: boolean): void;
}

export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  readonly #launch: WorkerLaunch;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #crashRecord: CrashRecord;
  readonly #link: SupervisorLink;
  readonly #peers: PeerConnections;
  readonly #doorbellBuffer = Doorbell.allocate();
  readonly #doorbell = new Doorbell(this.#doorbellBuffer);
  readonly #forwarder: FrameForwarder;
  readonly #threads: ExecutorThreads;
  readonly #questions: ThreadQuestions;
  readonly #tasks = new TaskBook();
  readonly #routes: RouteKeeper;
  readonly #reconciler: Reconciler;
  readonly #book = new ReportBook();
  readonly #quiet: QuietWatch;
  readonly #heartbeats: HeartbeatSender;
  readonly #startedMs: number;
  #phase: TopologyPhase = { kind: 'active' };
  #sequence = 0;
  #stopping = false;

  constructor(options: WorkerProcessOptions) {
    const { launch } = options;
    this.#options = options;
    this.#launch = launch;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#startedMs = options.clock.wallMs();
    this.#settings = compileSettings(...launch.settings);
    const description = JSON.parse(readFileSync(launch.descriptionPath, 'utf8')) as TopologyDescription;
    this.#quiet = new QuietWatch(this.#settings['topology.message-timeout']);
    this.#crashRecord = new CrashRecord(launch.directory, options.logger);
    this.#link = new SupervisorLink({
      socketPath: launch.supervisorSocket,
      hello: {
        workerId: launch.workerId,
        topologyId: launch.topologyId,
        port: launch.port,
        generation: launch.generation,
        process: options.process,
      },
      handlers: {
        onAssignment: (assignment) => this.#onAssignment(assignment),
        onHandovers: (handovers) => this.#reconciler.learn(handovers),
        onPhase: (phase) => this.#setPhase(phase),
        onTap: (request) => tapThreads(this.#questions, this.#loadedHosts(), request, description),
        onFindRow: (rootTask, sequence) => this.#findRow(rootTask, sequence),
        onStop: () => void this.stop(0),
        onRefused: () => void this.stop(0),
        onPresence: (present) => {
          this.#heartbeats.onPresence();
          options.onPresence?.(present);
        },
      },
      clock: options.clock,
      logger: options.logger,
    });
    this.#peers = new PeerConnections({
      topologyId: launch.topologyId,
      self: this.#selfKey,
      generation: launch.generation,
      secret: launch.secret,
      listen: this.#addressOf({ supervisor: launch.supervisorId, port: launch.port }),
      maxFrameBytes: this.#settings['messaging.max-frame-bytes'],
      reconnectTimeoutMs: this.#settings['messaging.reconnect-timeout'],
      clock: options.clock,
      logger: options.logger,
      onFrame: (peer, frame) => this.#forwarder.receive(peer, frame),
      onUp: (peer) => {
        this.#forwarder.onPeerUp(peer);
        this.#routes.onPeerUp(peer);
      },
      onLost: (peer, _generation, _reason, how) => this.#routes.onPeerLost(peer, how === 'gone'),
    });
    this.#threads = new ExecutorThreads({
      entry: options.threadEntry,
      mainDoorbell: this.#doorbellBuffer,
      settings: this.#settings,
      base: {
        topologyId: launch.topologyId,
        topologyName: launch.topologyName,
        codePath: launch.codePath,
        descriptionPath: launch.descriptionPath,
        settings: launch.settings,
        deadLetterDirectory: launch.deadLetterDirectory,
        logPath: options.log.path,
        logShared: options.log.shared,
      },
      clock: options.clock,
      logger: options.logger,
      heapMbOf: (index) => threadHeapMb(this.#reconciler.componentsFor(index), launch.executorHeapMb),
      nextGeneration: () => this.#link.nextGeneration(),
      onStarted: (host) => this.#onThreadStarted(host),
      onMessage: (host, message) => this.#onThreadMessage(host, message),
      onGone: (host, error) => this.#onThreadGone(host, error),
    });
    this.#questions = new ThreadQuestions(options.clock);
    this.#routes = new RouteKeeper({
      ringBytes: this.#settings['messaging.ring-bytes'],
      hosts: () => this.#loadedHosts(),
      tasks: () => this.#reconciler.assignment?.tasks,
      tell: (peer, message) => this.#tell(peer, message),
      onRoutes: () => {
        this.#reconciler.advance();
        this.#heartbeats.changed();
      },
    });
    this.#forwarder = new FrameForwarder({
      threads: this.#threads,
      routes: this.#routes,
      peers: this.#peers,
      doorbell: this.#doorbell,
      mostUnderWay: mostUnderWay(
        2 * description.components.length,
        this.#settings['messaging.credit'],
        this.#settings['messaging.max-frame-bytes'],
      ),
      logger: options.logger,
      onMessage: (peer, message) => this.#onPeerMessage(peer, message),
    });
    this.#heartbeats = new HeartbeatSender({
      link: this.#link,
      quietIntervalMs: quietIntervalMs(this.#settings),
      directory: launch.directory,
      clock: options.clock,
      logger: options.logger,
      heartbeat: () => this.heartbeat(),
    });
    this.#reconciler = new Reconciler({
      slot: { supervisor: launch.supervisorId, port: launch.port },
      generation: launch.generation,
      directory: launch.directory,
      threadShare: launch.threadShare,
      settings: this.#settings,
      description,
      crashRecord: this.#crashRecord,
      stateRecord: new StateRecord(launch.directory, options.logger),
      tasks: this.#tasks,
      threads: this.#threads,
      routes: this.#routes,
      link: this.#link,
      clock: options.clock,
      logger: options.logger,
      onError: (error) => this.#book.addError(error, this.#clock.wallMs()),
      onLostState: (component, task) =>
        this.#book.addLostState({ component, task, atMs: this.#clock.wallMs() }),
      onChanged: () => this.#heartbeats.changed(),
    });
  }

  async start(): Promise<void> {
    await this.#peers.listen();
    this.#link.start();
    this.#clock.every(this.#settings['supervisor.heartbeat-interval'], () =>
      this.#heartbeats.beatIfDue(this.#phase.kind === 'draining'),
    );
    this.#clock.every(QUIET_WATCH_MS, () => this.#watchQuiet());
    void this.#forwarder.run();
  }

  /** Closes every task, stores the last positions, and ends. */
  async stop(code: number): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#logger.info('worker.stopping', { code });
    await this.#threads.stop(Math.max(100, this.#settings['supervisor.worker-stop-timeout'] - 500));
    this.#heartbeats.sayLast();
    await this.#link.flushPositions(200);
    this.#link.close();
    await this.#peers.close();
    this.#crashRecord.onCleanEnd();
    this.#options.onEnd(code);
  }

  /** Cuts the connection to every peer; both sides reconnect and go on where they were. */
  reconnectPeers(): void {
    for (const peer of this.#routes.peers) this.#peers.cut(peer);
  }

  /** The heartbeat as of now; also what a worker without supervisor says of itself. */
  heartbeat(): WorkerHeartbeat {
    const nowMs = this.#clock.nowMs();
    const { assignment } = this.#reconciler;
    const tasks = assignment?.tasks ?? [];
    const stuckMs = this.#settings['worker.stuck-warning'];
    const cpu = process.cpuUsage();
    const { log } = this.#options;
    this.#book.setUnwrittenRecords(log, this.#clock.wallMs());
    return {
      workerId: this.#launch.workerId,
      topologyId: this.#launch.topologyId,
      supervisorId: this.#launch.supervisorId,
      port: this.#launch.port,
      generation: this.#launch.generation,
      pid: this.#options.process.pid,
      startedMs: this.#startedMs,
      assignmentVersion: assignment?.version ?? 0,
      ready: this.#isReady(),
      sequence: ++this.#sequence,
      cpuMicros: cpu.user + cpu.system,
      rssBytes: process.memoryUsage.rss(),
      threads: this.#threads.places().map(({ host, restarts }) => {
        const observed = host.observe(nowMs, stuckMs);
        const ackers = host.index === 0 && assignment !== undefined ? this.#ackers(assignment) : [];
        const executors = [...ackers, ...this.#reconciler.executorsOf(host.index)];
        const component = observed.task === null ? null : componentOf(tasks, observed.task);
        const waiting = this.#book.longCalls(host.index);
        return threadReport(host, observed, component, stuckMs, waiting, executors, restarts);
      }),
      tasks: this.#tasks.taskReports(),
      components: this.#tasks.componentReports((component) => this.#book.userCounters(component)),
      errors: this.#book.errors,
      lostStates: this.#book.lostStates,
      oldestPending: this.#book.oldestPending,
      deadLetterFiles: this.#book.deadLetterFiles,
      isIdle: this.#isIdle(),
      droppedLogRecords: log.dropped,
    };
  }

  get #selfKey(): string {
    return `${this.#launch.supervisorId}:${this.#launch.port}`;
  }

  #addressOf(slot: PeerKey): PeerAddress {
    return {
      kind: 'unix',
      path: peerSocketPath(this.#launch.socketDirectory, this.#launch.topologyId, slot),
    };
  }

  /** Acker executors have no task to run: their work is done where trees are rooted. */
  #ackers({ slots, tasks }: Assignment): Assignment['slots'][number]['executors'] {
    const own = slots.find(({ supervisor, port }) => `${supervisor}:${port}` === this.#selfKey);
    return (own?.executors ?? []).filter(([first]) => componentOf(tasks, first) === ACKER);
  }

  #isReady(): boolean {
    const { assignment } = this.#reconciler;
    return assignment !== undefined && this.#reconciler.isRunning && this.#areRoutesComplete(assignment);
  }

  #areRoutesComplete(assignment: Assignment): boolean {
    const table = this.#routes.endpointOfTask;
    return assignment.tasks.every(({ component, first, last }) => {
      if (isSystemComponent(component)) return true;
      for (let task = first; task <= last; task++) if ((table[task] ?? -1) < 0) return false;
      return true;
    });
  }

  #isIdle(): boolean {
    return this.#reconciler.isEmpty && this.#peers.stats().every(({ bufferedBytes }) => bufferedBytes === 0);
  }

  #setPhase(phase: TopologyPhase): void {
    if (JSON.stringify(phase) === JSON.stringify(this.#phase)) return;
    this.#phase = phase;
    for (const host of this.#threads.all()) host.post({ kind: 'phase', phase });
  }

  #onAssignment(assignment: Assignment): void {
    const known = this.#reconciler.assignment?.version ?? 0;
    if (this.#stopping || assignment.version <= known) return;
    const peers = new Map<string, PeerAddress>();
    for (const { supervisor, port } of [...assignment.slots, ...(assignment.target?.slots ?? [])]) {
      const key = `${supervisor}:${port}`;
      if (key !== this.#selfKey) peers.set(key, this.#addressOf({ supervisor, port }));
    }
    this.#peers.setPeers(peers);
    this.#routes.keepPeers(new Set(peers.keys()));
    this.#reconciler.reconcile(assignment);
  }

  // ── threads ──

  #onThreadStarted(host: ThreadHost): void {
    host.hadTasks = this.#tasks.ofThread(host.index).length > 0;
    host.post({ kind: 'tasks', tasks: this.#reconciler.assignment?.tasks ?? [] });
    host.post({ kind: 'executors', ranges: this.#reconciler.executors });
    host.post({ kind: 'phase', phase: this.#phase });
    this.#logger.info('thread.started', {
      thread: host.index,
      generation: host.generation,
      executors: this.#reconciler.executorsOf(host.index),
    });
  }

  #loadedHosts(): readonly ThreadHost[] {
    return this.#threads.all().filter(({ loaded }) => loaded);
  }

  /** Which thread holds a row of that tree. */
  async #findRow(rootTask: number, sequence: number): Promise<string | null> {
    const { answers } = await this.#questions.ask(
      this.#loadedHosts(),
      (id) => ({ kind: 'find-row', id, rootTask, sequence }),
      FIND_ROW_MS,
    );
    const holders = answers.flatMap((answer) => (answer.kind === 'found-row' ? (answer.holder ?? []) : []));
    return holders[0] ?? null;
  }

  #onThreadMessage(host: ThreadHost, message: FromThread): void {
    switch (message.kind) {
      case 'loaded':
        host.loaded = true;
        this.#reconciler.onLoaded(host);
        this.#routes.schedule();
        break;
      case 'tapped':
      case 'found-row':
        this.#questions.onAnswer(host, message);
        break;
      case 'unusable':
        this.#logger.error('thread.unusable', { error: message.error });
        this.#book.addError({ component: '', task: 0, error: message.error }, this.#clock.wallMs());
        process.stderr.write(
          `${message.error.code}: ${message.error.message}\n${message.error.stack ?? ''}\n`,
        );
        this.#link.unusable(message.error);
        break;
      case 'started':
        this.#reconciler.onStarted(host, message.tasks);
        break;
      case 'stopped':
        this.#reconciler.onStopped(message.tasks);
        break;
      case 'prepared':
        this.#reconciler.onPrepared(host, message.task);
        break;
      case 'start-failed':
        this.#reconciler.onStartFailed(message.task, message.error);
        break;
      case 'cut':
        this.#routes.onCut(message.task, message.id, message.endpoint);
        this.#reconciler.advance();
        break;
      case 'task-saved':
        this.#reconciler.onSaved(message.saved);
        break;
      case 'flushed':
        this.#reconciler.onFlushed();
        break;
      case 'routes-applied':
        this.#routes.onApplied(host.key, message.version);
        break;
      case 'positions':
        for (const { task } of message.positions) {
          const hosted = this.#tasks.get(task);
          // Progress: what crashes from here on has another cause, but stays under suspicion for one crash.
          if (hosted !== undefined) hosted.crashes = Math.min(hosted.crashes, 1);
        }
        this.#crashRecord.onProgress();
        this.#link.storePositions(message.positions);
        break;
      case 'error':
        this.#book.addError(message.error, this.#clock.wallMs());
        break;
      case 'dead-letter-file':
        this.#book.addDeadLetterFile(message.path);
        break;
      case 'broken-frame':
        this.#forwarder.onBrokenFrame(message.session, message.error);
        break;
      case 'report':
        this.#book.setThreadReport(host.index, message.counters, message.oldest, message.longCalls);
        break;
      case 'changed':
        this.#heartbeats.changed();
        break;
      case 'closed':
        break;
    }
  }

  #onThreadGone(host: ThreadHost, error: unknown): void {
    this.#routes.onApplied(host.key, Infinity);
    const observed = host.observe(this.#clock.nowMs(), Infinity);
    const tasks = this.#reconciler.assignment?.tasks ?? [];
    // Misuse such as a late emit keeps its own code, and with it the advice what to do.
    const cause = toIsobarError(error, 'USER_CODE_FAILED');
    const named = cause.details['task'];
    const task = typeof named === 'number' ? named : observed.task;
    const component = task === null ? null : componentOf(tasks, task);
    const fault = new IsobarError(
      cause.code,
      `executor thread ${host.index} ended: ${cause.message}`,
      {
        ...cause.details,
        where:
          cause.details.where ??
          (component === null ? `thread ${host.index}` : `component "${component}", task ${task}`),
      },
      error,
    );
    if (cause.stack !== undefined) fault.stack = cause.stack;
    this.#logger.warn('thread.gone', { thread: host.index, component, message: fault.message });
    this.#book.addError(
      { component: component ?? '', task: task ?? 0, error: toErrorRecord(fault) },
      this.#clock.wallMs(),
    );
    this.#book.forgetThread(host.index);
    this.#reconciler.onThreadGone(host);
  }

  /** Trees are pending although nothing is executed anywhere, or nothing is ever seen waiting: rows may be nowhere. */
  #watchQuiet(): void {
    const nowMs = this.#clock.nowMs();
    const { progress, queued, pendingTrees } = this.#tasks.activity();
    const inCode = this.#threads.all().some(({ isInCall }) => isInCall);
    const peers = this.#routes.peersWithThreads;
    const busy = inCode || queued > 0 || !this.#isReady();
    const action = this.#quiet.observe(nowMs, { progress, busy, pendingTrees }, [...peers]);
    if (action === 'ask-peers') for (const peer of peers) this.#tell(peer, { kind: 'ask-quiet' });
    if (action !== 'expire' && action !== 'suspect') return;
    if (action === 'expire') this.#logger.error('trees.lost', { pendingTrees });
    for (const host of this.#threads.all()) host.post({ kind: action });
  }

  // ── peers ──

  #tell(peer: string, message: PeerMessage): void {
    this.#peers.send(peer, encodeControlFrame(message));
  }

  #onPeerMessage(peer: string, message: PeerMessage): void {
    switch (message.kind) {
      case 'threads':
        this.#routes.onAnnouncement(peer, message);
        break;
      case 'seen':
        this.#routes.onSeen(peer, message.number);
        break;
      case 'loss':
        this.#routes.onLoss(message.isCut !== true);
        break;
      case 'ask-quiet':
        this.#tell(peer, { kind: 'quiet', ...this.#quiet.rest(this.#clock.nowMs()) });
        break;
      case 'quiet':
        this.#quiet.onAnswer(peer, message, this.#clock.nowMs());
        break;
    }
  }
}
