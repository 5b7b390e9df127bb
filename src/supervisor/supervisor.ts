/**
 * The daemon of one machine: keeps one slot per port, each converging on the newest assignment, starts workers and finds
 * them again after its own restart, and writes one heartbeat for all of them.
 *
 * Stateless over the coordinator and its directory: killed at any moment, its workers go on and its successor adopts them.
 *
 *     directory/slots/PORT.json                  launch record of the slot's worker
 *     directory/workers/TOPOLOGY-PORT/           launch files, output.log, the worker's own files
 *     directory/code/HASHES/                     localised code
 *     directory/last-reports/HASH.json           what ended workers had counted, until Nimbus keeps it
 *     directory/worker-events.json               what happened to workers, until Nimbus keeps it
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  makePrivateDirectory,
  type Clock,
  type Logger,
  type Settings,
  Shutdown,
  toIsobarError,
  type ProcessIdentity,
} from '../base/index.js';
import {
  type Coordination,
  type FoldedHeartbeat,
  quietIntervalMs,
  type SlotReport,
} from '../coordination/index.js';
import { AssignmentView } from './assignment-view.js';
import { HandoverKeeper } from './handover-keeper.js';
import { HeartbeatPublisher } from './heartbeat-publisher.js';
import { LastReports } from './last-reports.js';
import { LaunchRecords } from './launch-records.js';
import { workersDirectoryOf } from './leftovers.js';
import type { Blobs } from './localiser.js';
import { freeMb, residentMb } from './memory-readings.js';
import { watchMemory } from './memory-watch.js';
import { PositionFold } from './position-fold.js';
import { recoverWorkers, tuningOf } from './recovery.js';
import { Slot } from './slot.js';
import { workerOf, type Desired, type SlotLimits } from './slot-plan.js';
import { WorkerEvents, type WorkerNews } from './worker-events.js';
import { WorkerLauncher } from './worker-launcher.js';
import { serveWorkers } from './worker-server.js';

const KILL_REPEAT_MS = 500;
const HEALTHY_MS = 10_000;
/** A precaution: ends of workers are told by their parent, their connection, or a closer look where there is neither. */
const PROCESS_CHECK_MS = 5000;
const RETRY_MS = 200;
/** Longest wait for workers that are left behind to announce themselves. */
const HANDOVER_MS = 3000;
const HANDOVER_POLL_MS = 10;
const POSITION_INTERVAL_MS = 100;

export type { Blobs } from './localiser.js';

export interface SupervisorOptions {
  readonly id: string;
  /** Label of the machine. */
  readonly host: string;
  readonly rack: string;
  /** What its workers may use; where several supervisors share a machine, each has a part of it. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** The user account that it runs as. */
  readonly owner: string;
  /** This supervisor's own directory. */
  readonly directory: string;
  /** Socket that its workers connect to. */
  readonly socketPath: string;
  readonly coordination: Coordination;
  /** Where a worker without supervisor finds the coordinator. */
  readonly coordinatorAddress: string;
  /** Path of the worker's main file. */
  readonly workerEntry: string;
  /** The cluster's settings; the first layer of every topology's. */
  readonly settings: Settings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `run`: the process whose end, with the supervisor's, ends the workers. */
  readonly keeper: ProcessIdentity | null;
  /** Directory of the workers' peer sockets. */
  readonly socketDirectory: string;
  /** Used where the topology's settings name none. */
  readonly deadLetterDirectory: string;
  readonly blobs: Blobs;
}

export interface Supervisor {
  readonly id: string;
  slots(): readonly SlotReport[];
  /**
   * Stops supervising. Workers go on, to be adopted by the next supervisor of this directory, unless `stopWorkers`:
   * then they are stopped and verified gone first, and the supervisor withdraws itself from the cluster.
   */
  close(options?: { stopWorkers?: boolean }): Promise<void>;
}

/** @throws STATE_DIRECTORY_UNUSABLE, SOCKET_PATH_TOO_LONG */
export async function startSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const supervisor = new RunningSupervisor(options);
  await supervisor.start();
  return supervisor;
}

class RunningSupervisor implements Supervisor {
  readonly id: string;
  readonly #options: SupervisorOptions;
  readonly #logger: Logger;
  readonly #shutdown = new Shutdown();
  readonly #directories: {
    readonly slots: string;
    readonly workers: string;
    readonly code: string;
    readonly lastReports: string;
  };
  readonly #lastReports: LastReports;
  readonly #events: WorkerEvents;
  readonly #records: LaunchRecords;
  readonly #slots = new Map<number, Slot>();
  readonly #view: AssignmentView;
  readonly #positions: PositionFold;
  readonly #handovers: HandoverKeeper;
  readonly #launcher: WorkerLauncher;
  #publisher: HeartbeatPublisher | undefined;
  #sequence = 0;
  #published: Required<Pick<FoldedHeartbeat, 'slots' | 'lastReports' | 'events'>> = {
    slots: [],
    lastReports: [],
    events: [],
  };
  #isStopping = false;
  #isClosed = false;
  #onSlotChange: () => void = () => undefined;
  readonly #startedMs: number;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.id = options.id;
    this.#startedMs = options.clock.wallMs();
    this.#logger = options.logger.child({ supervisor: options.id });
    const directory = resolve(options.directory);
    this.#directories = {
      slots: join(directory, 'slots'),
      workers: workersDirectoryOf(directory),
      code: join(directory, 'code'),
      lastReports: join(directory, 'last-reports'),
    };
    this.#lastReports = new LastReports(this.#directories.lastReports, this.#logger);
    this.#events = new WorkerEvents(join(directory, 'worker-events.json'), this.#logger);
    this.#records = new LaunchRecords(this.#directories.slots);
    this.#view = new AssignmentView({
      coordination: options.coordination,
      supervisorId: options.id,
      clock: options.clock,
      logger: this.#logger,
      onChange: () => this.#converge(),
    });
    this.#positions = new PositionFold(
      (topologyId, entries) => options.coordination.storePositions(topologyId, options.id, entries),
      options.clock,
      POSITION_INTERVAL_MS,
    );
    this.#handovers = new HandoverKeeper({
      coordination: options.coordination,
      supervisorId: options.id,
      view: this.#view,
      isHeld: (port, topologyId) => this.#isHeld(port, topologyId),
      clock: options.clock,
      logger: this.#logger,
      onChange: () => this.#inform(),
    });
    this.#launcher = new WorkerLauncher({
      ...options,
      supervisorId: options.id,
      workersDirectory: this.#directories.workers,
      codeDirectory: this.#directories.code,
      logger: this.#logger,
      records: this.#records,
      view: this.#view,
      workers: () =>
        [...this.#slots.values()].flatMap(({ worker, port }) =>
          worker === undefined ? [] : [{ worker, port }],
        ),
    });
  }

  async start(): Promise<void> {
    const { clock, settings, coordination } = this.#options;
    this.#makeDirectories();
    this.#lastReports.open();
    this.#events.open();
    const ports = this.#ports();
    for (const port of ports) this.#slots.set(port, this.#createSlot(port));
    const found = await recoverWorkers({
      records: this.#records,
      workersDirectory: this.#directories.workers,
      ports,
      clock,
      logger: this.#logger,
      onGone: ({ workerId, launchFile, topologyId, port }) => {
        this.#lastReports.keep(workerId, launchFile, null);
        const reason = 'ended while its supervisor was away';
        const code = 'WORKER_LOST';
        this.#note({ kind: 'worker-died', topologyId, port, code, reason, detail: '' });
      },
    });
    for (const { worker, port, outputPath } of found) {
      this.#logger.info('worker.found', { worker: worker.workerId, port, pid: worker.process.pid });
      this.#launcher.record(worker, port);
      this.#slots.get(port)?.adopt(worker, outputPath);
    }
    this.#launcher.pruneCode();
    // Only now: a worker that reconnects must find its slot.
    const server = await serveWorkers({
      socketPath: this.#options.socketPath,
      slots: this.#slots,
      view: this.#view,
      coordination,
      positions: this.#positions,
      handovers: this.#handovers,
      blobs: this.#options.blobs,
      logger: this.#logger,
      tuningOf: (topologyId) => this.#launcher.tuningOf(topologyId),
      onAdopted: (worker, port) => this.#launcher.record(worker, port),
      onHeartbeat: (isUrgent) => {
        if (isUrgent) this.#publisher?.soon();
      },
    });
    this.#shutdown.add('worker server', () => server.close());
    const publisher = new HeartbeatPublisher({
      publish: () => this.#publish(),
      hasNews: () => this.#hasNews(),
      intervalMs: settings['supervisor.heartbeat-interval'],
      quietIntervalMs: quietIntervalMs(settings),
      clock,
      logger: this.#logger,
    });
    this.#publisher = publisher;
    this.#shutdown.add('heartbeats', () => publisher.close());
    this.#shutdown.add(
      'process checks',
      clock.every(PROCESS_CHECK_MS, () => {
        for (const slot of this.#slots.values()) slot.checkProcess();
      }),
    );
    this.#shutdown.add(
      'memory checks',
      watchMemory({
        supervisorId: this.id,
        settings,
        clock,
        workers: () =>
          [...this.#slots.values()].flatMap(({ worker, port, state }) =>
            worker === undefined || state.kind === 'stopping' ? [] : [{ worker, port }],
          ),
        topology: (topologyId) => this.#view.topology(topologyId),
        settingsOf: (assigned) => this.#launcher.settingsOf(assigned),
        readUsedMb: residentMb,
        readFreeMb: freeMb,
        stop: (port, worker, why) => this.#slots.get(port)?.tooLarge(worker, why),
      }),
    );
    this.#shutdown.add('slots', () => {
      for (const slot of this.#slots.values()) slot.close();
    });
    this.#shutdown.add(
      'reconnects',
      coordination.onReconnect(() => void this.#announce()),
    );
    this.#shutdown.add(
      'acknowledgements',
      coordination.watchAcknowledged(this.id, () => void this.#forgetAcknowledged()),
    );
    void this.#forgetAcknowledged();
    void this.#announce();
    this.#view.start();
    this.#handovers.start();
    this.#shutdown.add('handovers', () => this.#handovers.close());
    this.#shutdown.add('assignments', () => this.#view.close());
    this.#logger.info('supervisor.started', { ports: ports.length, found: found.length });
  }

  slots(): readonly SlotReport[] {
    return [...this.#slots.values()].map((slot) => slot.report());
  }

  async close(options: { stopWorkers?: boolean } = {}): Promise<void> {
    if (options.stopWorkers === true && !this.#isClosed) await this.#stopWorkers();
    this.#isClosed = true;
    const left = [...this.#slots.values()].flatMap(({ worker }) => worker?.workerId ?? []);
    await this.#shutdown.close();
    if (this.#options.keeper === null && left.length > 0) await this.#untilAnnounced(left);
  }

  /** Workers that are left speak for themselves before this session ends: nobody is to take the machine for gone. */
  async #untilAnnounced(workerIds: readonly string[]): Promise<void> {
    const deadlineMs = performance.now() + HANDOVER_MS;
    while (performance.now() < deadlineMs) {
      try {
        const announced = await this.#options.coordination.listWorkerLiveness();
        if (workerIds.every((id) => announced.some(({ workerId }) => workerId === id))) return;
      } catch (error) {
        // Without a coordinator nothing moves.
        this.#logger.debug('supervisor.not-handed-over', { message: String(error) });
        return;
      }
      await new Promise<void>((done) => setTimeout(done, HANDOVER_POLL_MS));
    }
  }

  #ports(): number[] {
    const { settings } = this.#options;
    return Array.from(
      { length: settings['supervisor.slots'] },
      (_, i) => settings['supervisor.first-port'] + i,
    );
  }

  #makeDirectories(): void {
    try {
      for (const path of Object.values(this.#directories)) mkdirSync(path, { recursive: true, mode: 0o700 });
      makePrivateDirectory(this.#options.socketDirectory);
    } catch (error) {
      throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: this.#options.directory });
    }
  }

  #createSlot(port: number): Slot {
    const { clock, settings } = this.#options;
    const limits: SlotLimits = {
      stopTimeoutMs: settings['supervisor.worker-stop-timeout'],
      killRepeatMs: KILL_REPEAT_MS,
      healthyMs: HEALTHY_MS,
      tuning: tuningOf(settings),
    };
    return new Slot({
      port,
      limits,
      clock,
      logger: this.#logger,
      desired: () => this.#desired(port),
      prepare: (topologyId, signal) => this.#launcher.prepare(topologyId, port, signal),
      keepLastReport: (worker, heard) =>
        this.#lastReports.keep(worker.workerId, this.#launcher.launchFileOf(worker, port), heard),
      note: (news) => this.#note(news),
      forget: (worker) => this.#launcher.forget(worker, port),
      onChange: () => {
        this.#publisher?.soon();
        this.#handovers.releaseLost();
        this.#onSlotChange();
      },
    });
  }

  #note(news: WorkerNews): void {
    this.#events.note(news, this.#options.clock.wallMs());
    this.#publisher?.soon();
  }

  #desired(port: number): Desired {
    return this.#isStopping ? { kind: 'none' } : this.#view.desired(port);
  }

  #converge(): void {
    for (const slot of this.#slots.values()) slot.reconsider();
    this.#inform();
    this.#handovers.releaseLost();
  }

  /** Tells each worker what has changed for it. */
  #inform(): void {
    for (const slot of this.#slots.values()) {
      const topologyId = slot.worker?.topologyId;
      const assigned = topologyId === undefined ? undefined : this.#view.topology(topologyId);
      if (assigned === undefined) continue;
      const { assignment, record } = assigned;
      slot.inform({ assignment, phase: record.phase, handovers: this.#handovers.of(record.id) });
    }
  }

  /** Does a worker of that topology hold the slot, or may one still? */
  #isHeld(port: number, topologyId: string): boolean {
    const state = this.#slots.get(port)?.state;
    if (state === undefined) return false;
    return workerOf(state)?.topologyId === topologyId || state.kind === 'launching';
  }

  // ── telling ──

  async #announce(): Promise<void> {
    const { coordination, host, rack, cores, memoryBytes, owner, clock } = this.#options;
    while (!this.#isClosed && !this.#isStopping) {
      try {
        await coordination.announceSupervisor({
          id: this.id,
          host,
          rack,
          ports: this.#ports(),
          cores,
          memoryBytes,
          owner,
          startedMs: this.#startedMs,
        });
        this.#publisher?.soon();
        return;
      } catch (error) {
        this.#logger.debug('supervisor.not-announced', { message: String(error) });
        await new Promise<void>((done) => clock.after(RETRY_MS, done));
      }
    }
  }

  async #publish(): Promise<void> {
    const slots = this.slots();
    const lastReports = this.#lastReports.all;
    const events = this.#events.all;
    await this.#options.coordination.publishHeartbeat({
      supervisorId: this.id,
      pid: process.pid,
      sequence: ++this.#sequence,
      slots,
      lastReports,
      ...(events.length === 0 ? {} : { events }),
    });
    this.#published = { slots, lastReports, events };
  }

  /** Something differs from what was last published, be it only that a worker has reported again. */
  #hasNews(): boolean {
    const { slots, lastReports, events } = this.#published;
    const now = this.slots();
    return (
      lastReports !== this.#lastReports.all ||
      events !== this.#events.all ||
      slots.length !== now.length ||
      now.some((report, index) => !isSameReport(report, slots[index]!))
    );
  }

  async #forgetAcknowledged(): Promise<void> {
    try {
      const acknowledged = await this.#options.coordination.readAcknowledged(this.id);
      const hadReport = this.#lastReports.forget(acknowledged);
      const hadEvent = this.#events.forget(acknowledged);
      if (hadReport || hadEvent) this.#publisher?.soon();
    } catch (error) {
      // Read again when the coordinator is back, since every watch is called then.
      this.#logger.debug('acknowledged.not-read', { message: String(error) });
    }
  }

  async #stopWorkers(): Promise<void> {
    this.#isStopping = true;
    const areEmpty = (): boolean => [...this.#slots.values()].every(({ state }) => state.kind === 'empty');
    const emptied = new Promise<void>((done) => {
      this.#onSlotChange = () => {
        if (areEmpty()) done();
      };
    });
    for (const slot of this.#slots.values()) slot.reconsider();
    if (!areEmpty()) await emptied;
    await this.#publisher?.now();
    try {
      await this.#options.coordination.withdrawSupervisor(this.id);
    } catch (error) {
      // The end of the session withdraws it as well, only later.
      this.#logger.debug('supervisor.not-withdrawn', { message: String(error) });
    }
  }
}

/** Reports are made anew each time, what they hold is replaced when it changes. */
function isSameReport(a: SlotReport, b: SlotReport): boolean {
  const names = Object.keys(a) as (keyof SlotReport)[];
  return names.every((name) => a[name] === b[name]);
}
