/**
 * Entry of a worker process. Its only argument is the path of a launch file (WorkerLaunch as JSON).
 *
 * A worker outlives its supervisor: it reconnects, and speaks for itself through the coordinator meanwhile. Only a
 * worker of `isobar run` ends itself when its supervisor and the keeper behind it are both gone.
 */
import { fstatSync, ftruncateSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  compileSettings,
  createLogger,
  isSameProcessAlive,
  LogFile,
  processIdentity,
  systemClock,
  toIsobarError,
  type CancelTimer,
  type Logger,
  packageEntry,
} from '../base/index.js';
import type { Coordination, WorkerLaunch } from '../coordination/index.js';
import { peerSocketPath } from '../messaging/index.js';
import { WorkerProcess } from './worker-process.js';

const LIVENESS_MS = 1000;
const LIVENESS_RETRY_MS = 100;
/** A worker that has just been welcomed has other things to do. */
const PRELOAD_MS = 500;
const ORPHAN_CHECK_MS = 500;
const OUTPUT_CHECK_MS = 10_000;

function main(): void {
  const launchPath = process.argv[2];
  if (launchPath === undefined) {
    process.stderr.write('usage: worker LAUNCH_FILE (started by a supervisor)\n');
    process.exit(2);
  }
  const launch = JSON.parse(readFileSync(launchPath, 'utf8')) as WorkerLaunch;
  const settings = compileSettings(...launch.settings);
  const log = LogFile.of(join(launch.directory, 'worker.log'), settings);
  const logger = createLogger({
    file: log,
    level: settings['log.level'],
    fields: { topology: launch.topologyId, worker: launch.workerId },
  });
  boundOutput(settings['log.max-file-bytes']);
  const identity = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
  const orphan = new Orphanhood(launch, identity, logger);
  const worker = new WorkerProcess({
    launch,
    process: identity,
    threadEntry: packageEntry('worker/thread-main'),
    log,
    clock: systemClock,
    logger,
    onEnd: (code) => {
      const { socketDirectory, topologyId, supervisorId: supervisor, port } = launch;
      rmSync(peerSocketPath(socketDirectory, topologyId, { supervisor, port }), { force: true });
      process.exit(code);
    },
    onPresence: (present) => orphan.setPresence(present, worker),
  });
  process.on('uncaughtException', (error) => {
    const fault = toIsobarError(error);
    logger.error('worker.crashed', { code: fault.code, message: fault.message, stack: fault.stack });
    process.stderr.write(`${fault.stack ?? fault.message}\n`);
    process.exit(1);
  });
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.on('SIGTERM', () => void worker.stop(0));
  // Connects anew to every peer; nothing is lost by it (numbered frames), so it is safe at any time.
  process.on('SIGUSR2', () => worker.reconnectPeers());
  // The event loop must not run dry while all that is awaited are rings.
  setInterval(() => undefined, 60_000);
  orphan.setPresence(false, worker, false);
  worker.start().catch((error: unknown) => {
    throw toIsobarError(error, 'WORKER_START_FAILED');
  });
  logger.info('worker.started', { pid: process.pid, generation: launch.generation, port: launch.port });
}

/** What executor threads print is in the log; only native code and the end of this process write to its output. */
function boundOutput(maxBytes: number): void {
  systemClock.every(OUTPUT_CHECK_MS, () => {
    for (const descriptor of [1, 2]) {
      try {
        const stats = fstatSync(descriptor);
        // Opened for appending: the next write goes to the beginning.
        if (stats.isFile() && stats.size > maxBytes) ftruncateSync(descriptor);
      } catch {
        // Nothing is lost by looking again later.
        continue;
      }
    }
  });
}

/**
 * What a worker does while it has no supervisor: it announces itself through the coordinator, so that nobody takes its
 * machine for gone; and the worker of a run ends with that run.
 */
class Orphanhood {
  readonly #launch: WorkerLaunch;
  readonly #identity: { pid: number; startTime: string };
  readonly #logger: Logger;
  #coordination: Promise<Coordination> | undefined;
  #timers: CancelTimer[] = [];
  /** Rises with each change of presence: what an older one began does not go on. */
  #change = 0;

  constructor(launch: WorkerLaunch, identity: { pid: number; startTime: string }, logger: Logger) {
    this.#launch = launch;
    this.#identity = identity;
    this.#logger = logger;
  }

  /** `announceNow` false: at the start, when the supervisor is just about to be found. */
  setPresence(present: boolean, worker: WorkerProcess, announceNow = true): void {
    for (const cancel of this.#timers.splice(0)) cancel();
    const change = ++this.#change;
    const { keeper } = this.#launch;
    if (present) {
      void this.#withdraw();
      // A run's coordinator goes with its supervisor. Elsewhere the grace is shorter than loading may take under load.
      if (keeper === null) this.#timers.push(systemClock.after(PRELOAD_MS, () => void loadCoordination()));
      return;
    }
    const sinceMs = systemClock.nowMs();
    // At once: a supervisor's grace is shorter than the period.
    if (announceNow) void this.#announce(worker, change);
    else this.#announceIn(LIVENESS_MS, worker, change);
    if (keeper === null) return;
    const limitMs = this.#orphanTimeoutMs();
    this.#timers.push(
      systemClock.every(ORPHAN_CHECK_MS, () => {
        if (systemClock.nowMs() - sinceMs < limitMs || isSameProcessAlive(keeper)) return;
        this.#logger.warn('worker.orphaned', { keeper: keeper.pid });
        rmSync(this.#launch.socketDirectory, { recursive: true, force: true });
        process.exit(0);
      }),
    );
  }

  #orphanTimeoutMs(): number {
    const given = this.#launch.settings[0]?.['run.orphan-timeout'];
    return typeof given === 'number' ? given : 3000;
  }

  #announceIn(delayMs: number, worker: WorkerProcess, change: number): void {
    if (change !== this.#change) return;
    this.#timers.push(systemClock.after(delayMs, () => void this.#announce(worker, change)));
  }

  async #announce(worker: WorkerProcess, change: number): Promise<void> {
    let delayMs = LIVENESS_MS;
    try {
      await (await this.#connected()).publishWorkerLiveness(worker.heartbeat());
    } catch {
      // The coordinator is away as well: nobody can move anything meanwhile. Once it is back, the grace runs.
      delayMs = LIVENESS_RETRY_MS;
    }
    this.#announceIn(delayMs, worker, change);
  }

  /** Once connected it repairs itself; until then each call tries anew. */
  async #connected(): Promise<Coordination> {
    const connecting = (this.#coordination ??= this.#connect());
    try {
      return await connecting;
    } catch (error) {
      if (this.#coordination === connecting) this.#coordination = undefined;
      throw error;
    }
  }

  async #connect(): Promise<Coordination> {
    const { connectCoordination } = await loadCoordination();
    return connectCoordination({
      address: this.#launch.coordinatorAddress,
      process: this.#identity,
      settings: compileSettings(...this.#launch.settings),
      clock: systemClock,
      logger: this.#logger,
    });
  }

  async #withdraw(): Promise<void> {
    const coordination = this.#coordination;
    this.#coordination = undefined;
    try {
      const connected = await coordination;
      await connected?.withdrawWorkerLiveness(this.#launch.workerId);
      await connected?.close();
    } catch (error) {
      this.#logger.debug('liveness.not-withdrawn', { message: String(error) });
    }
  }
}

/** Loaded when it is needed: a worker starts without it, and sooner. */
function loadCoordination(): Promise<typeof import('../coordination/index.js')> {
  return import('../coordination/index.js');
}

main();
