/**
 * A worker: one process that runs executors of exactly one topology.
 *
 * Its main thread (this file) runs no user code: it keeps the link to the supervisor, reconciles the executor threads
 * with the assignment (starting is reconciling from nothing), forwards frames between them and the peers without
 * decoding them, and reports. A thread that ends is restarted here with fresh rings, a new generation and back-off.
 *
 * Losses (invariant W1): when a thread or a peer is lost, every thread gets routes without it and marks its trees; once
 * all threads have applied them, nobody sends to the lost one any more, and a second mark goes to all threads and peers,
 * so that a row sent in between belongs to a marked tree too.
 */
import { readFileSync } from 'node:fs';
import { setImmediate as immediate, setTimeout as pause } from 'node:timers/promises';
import {
  compileSettings,
  IsobarError,
  toErrorRecord,
  toIsobarError,
  type Clock,
  type ErrorRecord,
  type Logger,
  type Settings,
} from '../base/index.js';
import type { StoredPosition, TopologyPhase, WorkerHeartbeat, WorkerLaunch } from '../coordination/index.js';
import {
  decodeControlFrame,
  Doorbell,
  encodeControlFrame,
  H_ENDPOINT,
  H_KIND,
  H_SOURCE_GENERATION,
  H_SOURCE_THREAD,
  H_TARGET_GENERATION,
  H_TARGET_THREAD,
  KIND_CONTROL,
  PeerConnections,
  peerSocketPath,
  type PeerAddress,
  type PeerKey,
} from '../messaging/index.js';
import { dealToThreads, type Assignment, type ExecutorRange } from '../scheduling/index.js';
import type { TopologyDescription } from '../topology/index.js';
import { CrashRecord } from './crash-record.js';
import { EndpointTable, parsePeerMessage, type AnnouncedThread, type PeerMessage } from './endpoints.js';
import { componentOf, rangesOf, TaskBook, tasksOf, type HostedTask } from './task-book.js';
import { QuietWatch } from './quiet-watch.js';
import { ReportBook } from './report-book.js';
import { SupervisorLink } from './supervisor-link.js';
import { ThreadHost, threadReport } from './thread-host.js';
import type { FromThread } from './thread-messages.js';

const ACKER = '__acker';
const HEALTHY_MS = 10_000;
const OBSERVE_MS = 200;
const CHANGED_DELAY_MS = 2;
/** Bytes forwarded in one go that mean load, and how long to gather more of them then. */
const BUSY_BYTES = 8192;
const BUSY_PAUSE_MS = 1;
const QUIET_WATCH_MS = 1000;

export interface WorkerProcessOptions {
  readonly launch: WorkerLaunch;
  readonly process: { readonly pid: number; readonly startTime: string };
  readonly threadEntry: URL;
  readonly logPath: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called once, when the worker has ended; `code` is the exit code to use. */
  onEnd(code: number): void;
  /** The supervisor went (false) or is there again (true). */
  onPresence?(present: boolean): void;
}

interface ThreadPlace {
  host: ThreadHost | undefined;
  restarts: number;
  backoffMs: number;
}

export class WorkerProcess {
  readonly #options: WorkerProcessOptions;
  readonly #launch: WorkerLaunch;
  readonly #settings: Settings;
  readonly #description: TopologyDescription;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #crashRecord: CrashRecord;
  readonly #link: SupervisorLink;
  readonly #peers: PeerConnections;
  readonly #peerKeys: string[] = [];
  /** Peer of each session with one, in the order in which they began: a session's place is its number. */
  readonly #sessions: string[] = [];
  readonly #doorbellBuffer = Doorbell.allocate();
  readonly #doorbell = new Doorbell(this.#doorbellBuffer);
  readonly #threads: ThreadPlace[] = [];
  readonly #tasks = new TaskBook();
  readonly #spouts: ReadonlySet<string>;
  /** Executors of this slot without the ackers. */
  #executors: readonly ExecutorRange[] = [];
  readonly #ackers: ExecutorRange[] = [];
  readonly #endpoints = new EndpointTable();
  readonly #book = new ReportBook();
  readonly #quiet: QuietWatch;
  readonly #startedMs: number;
  #assignment: Assignment | undefined;
  #phase: TopologyPhase = { kind: 'active' };
  #routesVersion = 0;
  #routesScheduled = false;
  #lossPending = false;
  /** Version of routes with a loss that threads have yet to apply, by thread key. */
  readonly #applying = new Map<string, number>();
  #secondMark = false;
  #sequence = 0;
  #changedScheduled = false;
  #stopping = false;
  #announced = '';
  /** No executor thread has been restarted yet. */
  #firstLife = true;

  constructor(options: WorkerProcessOptions) {
    const { launch } = options;
    this.#options = options;
    this.#launch = launch;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#startedMs = options.clock.wallMs();
    this.#settings = compileSettings(...launch.settings);
    this.#description = JSON.parse(readFileSync(launch.descriptionPath, 'utf8')) as TopologyDescription;
    this.#spouts = new Set(
      this.#description.components.filter(({ kind }) => kind === 'spout').map(({ id }) => id),
    );
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
        onAssignment: (assignment) => void this.#reconcile(assignment),
        onPhase: (phase) => this.#setPhase(phase),
        onStop: () => void this.stop(0),
        onRefused: () => void this.stop(0),
        onPresence: (present) => options.onPresence?.(present),
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
      onFrame: (peer, frame) => this.#onPeerFrame(peer, frame),
      onUp: (peer) => this.#onPeerUp(peer),
      onLost: (peer) => this.#onPeerLost(peer),
    });
  }

  async start(): Promise<void> {
    await this.#peers.listen();
    this.#link.start();
    this.#clock.every(this.#settings['supervisor.heartbeat-interval'], () => this.#beat());
    this.#clock.every(OBSERVE_MS, () => this.#watchThreads());
    this.#clock.every(QUIET_WATCH_MS, () => this.#watchQuiet());
    void this.#forwardLoop();
  }

  /** Closes every task, stores the last positions, and ends. */
  async stop(code: number): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#logger.info('worker.stopping', { code });
    const closing = this.#hosts().map(
      (host) =>
        new Promise<void>((resolve) => {
          if (host.gone) resolve();
          this.#onClosed.set(host.key, resolve);
          host.post({ kind: 'stop' });
        }),
    );
    const limitMs = Math.max(100, this.#settings['supervisor.worker-stop-timeout'] - 500);
    const timeout = new Promise<void>((resolve) => setTimeout(resolve, limitMs));
    await Promise.race([Promise.all(closing), timeout]);
    this.#beat();
    await this.#link.flushPositions(200);
    this.#link.close();
    await this.#peers.close();
    this.#crashRecord.onCleanEnd();
    this.#options.onEnd(code);
  }

  /** Cuts the connection to every peer; both sides reconnect and go on where they were. */
  reconnectPeers(): void {
    for (const peer of this.#peerKeys) this.#peers.cut(peer);
  }

  /** The heartbeat as of now; also what a worker without supervisor says of itself. */
  heartbeat(): WorkerHeartbeat {
    const nowMs = this.#clock.nowMs();
    const tasks = this.#assignment?.tasks ?? [];
    const stuckMs = this.#settings['worker.stuck-warning'];
    const cpu = process.cpuUsage();
    return {
      workerId: this.#launch.workerId,
      topologyId: this.#launch.topologyId,
      supervisorId: this.#launch.supervisorId,
      port: this.#launch.port,
      generation: this.#launch.generation,
      pid: this.#options.process.pid,
      startedMs: this.#startedMs,
      assignmentVersion: this.#assignment?.version ?? 0,
      ready: this.#isReady(),
      sequence: ++this.#sequence,
      cpuMicros: cpu.user + cpu.system,
      rssBytes: process.memoryUsage.rss(),
      threads: this.#threads.flatMap(({ host, restarts }, index) => {
        if (host === undefined) return [];
        const observed = host.observe(nowMs, stuckMs);
        const executors = [...(index === 0 ? this.#ackers : []), ...this.#executorsOf(index)];
        const component = observed.task === null ? null : componentOf(tasks, observed.task);
        return [
          threadReport(host, observed, component, stuckMs, this.#book.longCalls(index), executors, restarts),
        ];
      }),
      tasks: this.#tasks.taskReports(),
      components: this.#tasks.componentReports((component) => this.#book.userCounters(component)),
      errors: this.#book.errors,
      lostStates: this.#book.lostStates,
      oldestPending: this.#book.oldestPending,
      deadLetterFiles: this.#book.deadLetterFiles,
    };
  }

  readonly #onClosed = new Map<string, () => void>();

  get #selfKey(): string {
    return `${this.#launch.supervisorId}:${this.#launch.port}`;
  }

  #addressOf(slot: PeerKey): PeerAddress {
    return {
      kind: 'unix',
      path: peerSocketPath(this.#launch.socketDirectory, this.#launch.topologyId, slot),
    };
  }

  #hosts(): ThreadHost[] {
    return this.#threads.flatMap(({ host }) => (host === undefined || host.gone ? [] : [host]));
  }

  #isReady(): boolean {
    const assignment = this.#assignment;
    if (assignment === undefined) return false;
    const started = this.#tasks.all().every(({ task, thread }) => {
      const host = this.#threads[thread]?.host;
      return host !== undefined && !host.gone && host.started.has(task);
    });
    return started && this.#routesComplete(assignment);
  }

  #routesComplete(assignment: Assignment): boolean {
    const table = this.#endpoints.endpointOfTask(lastTask(assignment));
    return assignment.tasks.every(({ component, first, last }) => {
      if (component.startsWith('__')) return true;
      for (let task = first; task <= last; task++) if (table[task]! < 0) return false;
      return true;
    });
  }

  #setPhase(phase: TopologyPhase): void {
    if (JSON.stringify(phase) === JSON.stringify(this.#phase)) return;
    this.#phase = phase;
    for (const host of this.#hosts()) host.post({ kind: 'phase', phase });
  }

  // ── reconciling ──

  #reconciling: Promise<void> = Promise.resolve();

  #reconcile(assignment: Assignment): Promise<void> {
    this.#reconciling = this.#reconciling
      .then(() => this.#reconcileNow(assignment))
      .catch((error: unknown) => this.#logger.error('reconcile.failed', { message: String(error) }));
    return this.#reconciling;
  }

  async #reconcileNow(assignment: Assignment): Promise<void> {
    if (this.#stopping || (this.#assignment !== undefined && assignment.version <= this.#assignment.version))
      return;
    const first = this.#assignment === undefined;
    this.#assignment = assignment;
    this.#updatePeers(assignment);
    const own = assignment.slots.find(({ supervisor, port }) => `${supervisor}:${port}` === this.#selfKey);
    const wanted = (own?.executors ?? []).map((range) => ({
      range,
      component: componentOf(assignment.tasks, range[0]) ?? '',
    }));
    this.#ackers.splice(
      0,
      Infinity,
      ...wanted.filter(({ component }) => component === ACKER).map(({ range }) => range),
    );
    const runnable = wanted.filter(({ component }) => !component.startsWith('__'));
    this.#executors = runnable.map(({ range }) => range);
    const wantedTasks = new Set(tasksOf(this.#executors));
    const stopped = this.#tasks.all().filter(({ task }) => !wantedTasks.has(task));
    for (const { task, thread } of stopped) {
      const host = this.#threads[thread]?.host;
      host?.post({ kind: 'stop-tasks', tasks: [task] });
      host?.started.delete(task);
      this.#tasks.remove(task);
    }
    const fresh = runnable.filter(({ range }) =>
      tasksOf([range]).some((task) => this.#tasks.get(task) === undefined),
    );
    if (first) {
      const count = this.#threadCount(runnable.length);
      for (let index = 0; index < count; index++)
        this.#threads.push({
          host: undefined,
          restarts: 0,
          backoffMs: this.#settings['worker.restart-backoff'],
        });
      const places = dealToThreads(fresh, count);
      fresh.forEach(({ range, component }, i) => this.#addTasks(range, component, places[i]!));
      // The generation of the launch serves the first life of every thread.
      for (let index = 0; index < count; index++) this.#startThread(index, this.#launch.generation);
    } else {
      for (const host of this.#hosts()) host.post({ kind: 'executors', ranges: this.#executors });
      for (const { range, component } of fresh) {
        const thread = this.#leastLoadedThread();
        const tasks = this.#addTasks(range, component, thread);
        const host = this.#threads[thread]?.host;
        if (host !== undefined && !host.gone && host.loaded) await this.#startTasks(host, tasks);
      }
    }
    this.#scheduleRoutes(stopped.length > 0);
    this.#changed();
  }

  #addTasks(range: ExecutorRange, component: string, thread: number): HostedTask[] {
    return tasksOf([range])
      .filter((task) => this.#tasks.get(task) === undefined)
      .map((task) => {
        const hosted = this.#tasks.add(task, component, this.#spouts.has(component), thread);
        hosted.crashes = this.#crashRecord.crashesOf(task);
        return hosted;
      });
  }

  /** Executors, or what a thread has of them. */
  #executorsOf(thread: number): ExecutorRange[] {
    const here = new Set(this.#tasks.ofThread(thread).map(({ task }) => task));
    return this.#executors.flatMap((range) => rangesOf(tasksOf([range]).filter((task) => here.has(task))));
  }

  #threadCount(executors: number): number {
    const setting = this.#settings['topology.executor-threads'];
    const asked =
      setting === 'auto'
        ? this.#launch.threadShare
        : setting === 'per-executor'
          ? executors
          : Number(setting);
    return Math.max(1, Math.min(asked, executors));
  }

  #leastLoadedThread(): number {
    let best = 0;
    for (let index = 1; index < this.#threads.length; index++) {
      if (this.#executorsOf(index).length < this.#executorsOf(best).length) best = index;
    }
    return best;
  }

  #updatePeers(assignment: Assignment): void {
    const peers = new Map<string, PeerAddress>();
    for (const { supervisor, port } of assignment.slots) {
      const key = `${supervisor}:${port}`;
      if (key !== this.#selfKey) peers.set(key, this.#addressOf({ supervisor, port }));
    }
    this.#peers.setPeers(peers);
    // Nobody tells of a peer that is dropped here, but its threads are as lost as those of one that died.
    for (const [index, key] of this.#peerKeys.entries()) {
      if (!peers.has(key) && this.#endpoints.replace(index, [])) this.#scheduleRoutes(true);
    }
  }

  // ── threads ──

  #startThread(index: number, generation: number): void {
    const place = this.#threads[index]!;
    const { launch } = this.#options;
    const host = new ThreadHost(
      {
        index,
        generation,
        entry: this.#options.threadEntry,
        ringBytes: this.#settings['messaging.ring-bytes'],
        heapMb: this.#settings['worker.thread-heap-mb'],
        mainDoorbell: this.#doorbellBuffer,
        base: {
          topologyId: launch.topologyId,
          topologyName: launch.topologyName,
          codePath: launch.codePath,
          descriptionPath: launch.descriptionPath,
          settings: launch.settings,
          deadLetterDirectory: launch.deadLetterDirectory,
          logPath: this.#options.logPath,
        },
        onMessage: (message) => this.#onThreadMessage(host, message),
        onGone: (error) => void this.#onThreadGone(host, error),
      },
      this.#clock.nowMs(),
    );
    place.host = host;
    host.post({ kind: 'tasks', tasks: this.#assignment!.tasks });
    host.post({ kind: 'executors', ranges: this.#executors });
    host.post({ kind: 'phase', phase: this.#phase });
    this.#logger.info('thread.started', {
      thread: index,
      generation,
      executors: this.#executorsOf(index),
    });
  }

  async #startTasks(host: ThreadHost, tasks: readonly HostedTask[]): Promise<void> {
    let positions: readonly StoredPosition[] = [];
    if (tasks.some(({ isSpout }) => isSpout)) positions = await this.#link.readPositions();
    // What a newer assignment took away while the positions were read must not start here any more.
    const wanted = tasks.filter((hosted) => this.#tasks.get(hosted.task) === hosted);
    host.post({
      kind: 'start-tasks',
      tasks: wanted.map(({ task, component, counters, crashes }) => ({
        task,
        component,
        counters,
        generation: host.generation,
        position: this.#startPosition(task, positions),
        crashes,
      })),
    });
  }

  /** The stored position of a task; in the first life, a row that was out alone is met first. */
  #startPosition(task: number, stored: readonly StoredPosition[]): StoredPosition | undefined {
    const position = this.#firstLife ? this.#crashRecord.positionOf(task) : undefined;
    return position === undefined
      ? stored.find((one) => one.task === task)
      : { task, generation: this.#launch.generation, position };
  }

  #onThreadMessage(host: ThreadHost, message: FromThread): void {
    switch (message.kind) {
      case 'loaded':
        host.loaded = true;
        void this.#startTasks(host, this.#tasks.ofThread(host.index));
        this.#scheduleRoutes(false);
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
        for (const task of message.tasks) host.started.add(task);
        this.#scheduleRoutes(false);
        this.#changed();
        break;
      case 'stopped':
        this.#scheduleRoutes(false);
        break;
      case 'routes-applied':
        this.#onRoutesApplied(host.key, message.version);
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
        this.#onBrokenFrame(message.session, message.error);
        break;
      case 'report':
        this.#book.setThreadReport(host.index, message.counters, message.oldest, message.longCalls);
        break;
      case 'changed':
        this.#changed();
        break;
      case 'closed':
        this.#onClosed.get(host.key)?.();
        break;
    }
  }

  async #onThreadGone(host: ThreadHost, error: unknown): Promise<void> {
    this.#onClosed.get(host.key)?.();
    this.#onRoutesApplied(host.key, Infinity);
    if (this.#stopping) return;
    const place = this.#threads[host.index]!;
    const observed = host.observe(this.#clock.nowMs(), Infinity);
    const component =
      observed.task === null ? null : componentOf(this.#assignment?.tasks ?? [], observed.task);
    // Misuse such as a late emit keeps its own code, and with it the advice what to do.
    const cause = toIsobarError(error, 'USER_CODE_FAILED');
    const fault = new IsobarError(
      cause.code,
      `executor thread ${host.index} ended: ${cause.message}`,
      {
        ...cause.details,
        where:
          cause.details.where ??
          (component === null ? `thread ${host.index}` : `component "${component}", task ${observed.task}`),
      },
      error,
    );
    if (cause.stack !== undefined) fault.stack = cause.stack;
    this.#logger.warn('thread.gone', { thread: host.index, component, message: fault.message });
    this.#book.addError(
      { component: component ?? '', task: observed.task ?? 0, error: toErrorRecord(fault) },
      this.#clock.wallMs(),
    );
    this.#book.forgetThread(host.index);
    this.#noteLostStates(host.index);
    this.#tasks.noteCrash(host.index);
    this.#tasks.resetDepths(host.index);
    for (const other of this.#hosts()) other.forgetRingTo(host);
    this.#scheduleRoutes(true);
    this.#changed();
    this.#firstLife = false;
    place.restarts++;
    if (this.#clock.nowMs() - host.bornMs > HEALTHY_MS)
      place.backoffMs = this.#settings['worker.restart-backoff'];
    const pauseMs = place.backoffMs;
    place.backoffMs = Math.min(place.backoffMs * 2, this.#settings['worker.restart-backoff-max']);
    const [generation] = await Promise.all([
      this.#link.nextGeneration(),
      new Promise<void>((resolve) => setTimeout(resolve, pauseMs)),
    ]);
    if (!this.#isStopping()) this.#startThread(host.index, generation);
  }

  #isStopping(): boolean {
    return this.#stopping;
  }

  #noteLostStates(thread: number): void {
    const stateful = new Set(
      this.#description.components.filter((component) => component.stateful).map(({ id }) => id),
    );
    for (const { task, component } of this.#tasks.ofThread(thread)) {
      if (stateful.has(component)) this.#book.addLostState({ component, task, atMs: this.#clock.wallMs() });
    }
  }

  #watchThreads(): void {
    const nowMs = this.#clock.nowMs();
    const limitMs = this.#settings['worker.stuck-timeout'];
    for (const host of this.#hosts()) {
      const { state, inCallMs } = host.observe(nowMs, this.#settings['worker.stuck-warning']);
      if (limitMs !== null && state === 'stuck' && inCallMs >= limitMs) {
        this.#logger.warn('thread.stuck', { thread: host.index, inCallMs });
        void host.terminate();
      }
    }
  }

  /** Nothing is executed anywhere while trees are pending: their rows are nowhere, so they are replayed. */
  #watchQuiet(): void {
    const nowMs = this.#clock.nowMs();
    const { progress, queued, pendingTrees } = this.#tasks.activity();
    const inCode = this.#hosts().some(({ isInCall }) => isInCall);
    const peers = new Set(this.#endpoints.all().flatMap(({ peer }) => this.#peerKeys[peer] ?? []));
    const busy = inCode || queued > 0 || !this.#isReady();
    const action = this.#quiet.observe(nowMs, { progress, busy, pendingTrees }, [...peers]);
    if (action === 'ask-peers') for (const peer of peers) this.#tell(peer, { kind: 'ask-quiet' });
    if (action !== 'expire') return;
    this.#logger.error('trees.lost', { pendingTrees });
    for (const host of this.#hosts()) host.post({ kind: 'expire' });
  }

  // ── routes and losses ──

  #scheduleRoutes(lost: boolean): void {
    this.#lossPending ||= lost;
    if (this.#routesScheduled) return;
    this.#routesScheduled = true;
    queueMicrotask(() => {
      this.#routesScheduled = false;
      this.#sendRoutes();
    });
  }

  #sendRoutes(): void {
    const assignment = this.#assignment;
    if (assignment === undefined) return;
    const hosts = this.#hosts().filter((host) => host.loaded);
    const threads = hosts.map(
      (host): AnnouncedThread => ({
        index: host.index,
        generation: host.generation,
        started: rangesOf(host.started),
      }),
    );
    const lostHere = this.#endpoints.replace(-1, threads);
    const lost = this.#lossPending || lostHere;
    this.#lossPending = false;
    const version = ++this.#routesVersion;
    const endpointOfTask = this.#endpoints.endpointOfTask(lastTask(assignment));
    const endpoints = this.#endpoints.all();
    const ringBytes = this.#settings['messaging.ring-bytes'];
    for (const host of hosts) {
      if (lost) this.#applying.set(host.key, version);
      host.post({
        kind: 'routes',
        version,
        tasks: assignment.tasks,
        endpointOfTask,
        lost,
        endpoints: endpoints.map((endpoint) => {
          const other =
            endpoint.peer >= 0
              ? undefined
              : hosts.find(
                  ({ index, generation }) => index === endpoint.thread && generation === endpoint.generation,
                );
          const near = other !== undefined && other !== host;
          return {
            id: endpoint.id,
            thread: endpoint.thread,
            generation: endpoint.generation,
            peer: endpoint.peer,
            outgoing: near ? host.ringTo(other, ringBytes) : null,
            incoming: near ? other.ringTo(host, ringBytes) : null,
            doorbell: near ? other.doorbell : null,
          };
        }),
      });
    }
    if (lost) this.#secondMark = true;
    this.#announce(threads);
    this.#finishLoss();
    this.#changed();
  }

  #announce(threads: readonly AnnouncedThread[]): void {
    const text = JSON.stringify(threads);
    if (text === this.#announced) return;
    this.#announced = text;
    for (const peer of this.#peerKeys) this.#tell(peer, { kind: 'threads', threads });
  }

  #onRoutesApplied(threadKey: string, version: number): void {
    const waited = this.#applying.get(threadKey);
    if (waited === undefined || version < waited) return;
    this.#applying.delete(threadKey);
    this.#finishLoss();
  }

  /** Second mark of W1. */
  #finishLoss(): void {
    if (!this.#secondMark || this.#applying.size > 0) return;
    this.#secondMark = false;
    for (const host of this.#hosts()) host.post({ kind: 'mark' });
    for (const peer of this.#peerKeys) this.#tell(peer, { kind: 'loss' });
  }

  // ── peers ──

  #tell(peer: string, message: PeerMessage): void {
    this.#peers.send(peer, encodeControlFrame(message));
  }

  #peerIndex(peer: string): number {
    const known = this.#peerKeys.indexOf(peer);
    if (known >= 0) return known;
    this.#peerKeys.push(peer);
    return this.#peerKeys.length - 1;
  }

  #onPeerUp(peer: string): void {
    this.#peerIndex(peer);
    this.#sessions.push(peer);
    if (this.#announced !== '') {
      this.#tell(peer, { kind: 'threads', threads: JSON.parse(this.#announced) as AnnouncedThread[] });
    }
  }

  #onPeerLost(peer: string): void {
    this.#endpoints.replace(this.#peerIndex(peer), []);
    this.#scheduleRoutes(true);
  }

  #onPeerFrame(peer: string, frame: Buffer): void {
    const words = new Int32Array(frame.buffer, frame.byteOffset, frame.byteLength >> 2);
    if (words[H_KIND] === KIND_CONTROL) {
      this.#onPeerMessage(peer, parsePeerMessage(decodeControlFrame(frame)));
      return;
    }
    const host = this.#threads[words[H_TARGET_THREAD]!]?.host;
    if (host === undefined || host.gone || host.generation !== words[H_TARGET_GENERATION]) return;
    words[H_ENDPOINT] =
      this.#endpoints.find(this.#peerIndex(peer), words[H_SOURCE_THREAD]!, words[H_SOURCE_GENERATION]!)?.id ??
      -1;
    // The thread knows who it is; what it may have to tell is in which session the frame came.
    words[H_TARGET_THREAD] = this.#sessions.lastIndexOf(peer);
    host.forward(frame);
    this.#doorbell.wakeSelf();
  }

  /** One of our threads cannot make sense of a frame; a session that has ended meanwhile is not blamed twice. */
  #onBrokenFrame(session: number, error: ErrorRecord): void {
    const peer = this.#sessions[session];
    if (peer === undefined || this.#sessions.lastIndexOf(peer) !== session) return;
    this.#logger.warn('peer.broken-frame', { peer, code: error.code, reason: error.message });
    this.#peers.reject(peer, error.message);
  }

  #onPeerMessage(peer: string, message: PeerMessage): void {
    switch (message.kind) {
      case 'threads':
        this.#scheduleRoutes(this.#endpoints.replace(this.#peerIndex(peer), message.threads));
        break;
      case 'loss':
        for (const host of this.#hosts()) host.post({ kind: 'mark' });
        break;
      case 'ask-quiet':
        this.#tell(peer, { kind: 'quiet', quietMs: this.#quiet.quietMs(this.#clock.nowMs()) });
        break;
      case 'quiet':
        this.#quiet.onAnswer(peer, message.quietMs);
        break;
    }
  }

  /**
   * Passes frames on between threads and peers. Being woken by a bell costs the ringing thread some 100 µs, so under load
   * this loop does not sleep by the bell but looks again after a moment: that also makes for fewer, larger socket writes.
   * At low rates the bell keeps the latency low.
   */
  async #forwardLoop(): Promise<void> {
    let bytesSeen = 0;
    const onFrame = (
      words: Int32Array,
      at: number,
      bytes: Buffer,
      byteStart: number,
      byteLength: number,
    ): void => {
      bytesSeen += byteLength;
      const peer = this.#peerKeys[words[at + H_ENDPOINT]!];
      // Rings hold what other threads may overwrite after this call, and the connection keeps frames until confirmed.
      if (peer !== undefined)
        this.#peers.send(peer, Buffer.from(bytes.subarray(byteStart, byteStart + byteLength)));
    };
    for (;;) {
      let frames = 0;
      let waiting = false;
      bytesSeen = 0;
      for (const host of this.#hosts()) {
        frames += host.fromThread.drain(onFrame, 256);
        waiting = host.forwardBacklog() || waiting;
      }
      if (bytesSeen >= BUSY_BYTES) await pause(BUSY_PAUSE_MS);
      else if (frames > 0) await immediate();
      else {
        await this.#doorbell.sleep(waiting ? 1 : 250, () =>
          this.#hosts().some((host) => !host.fromThread.isEmpty),
        );
      }
    }
  }

  // ── reporting ──

  #beat(): void {
    if (this.#link.isConnected) this.#link.heartbeat(this.heartbeat());
  }

  #changed(): void {
    if (this.#changedScheduled) return;
    this.#changedScheduled = true;
    this.#clock.after(CHANGED_DELAY_MS, () => {
      this.#changedScheduled = false;
      this.#beat();
    });
  }
}

function lastTask(assignment: Assignment): number {
  let last = 0;
  for (const tasks of assignment.tasks) last = Math.max(last, tasks.last);
  return last;
}
