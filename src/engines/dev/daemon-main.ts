/**
 * Entry of every daemon that `isobar dev` keeps. Its argument is the path of a launch file ({@link DevDaemonLaunch}), which
 * says which parts share this process.
 *
 * D1  It outlives whoever started it, and is this daemon alone: a second process of the same id ends at once.
 * D2  Killed at any moment, its successor goes on where it was; workers do not notice more than a reconnect.
 * D3  A coordinator that is not there is waited for.
 */
import { readFileSync } from 'node:fs';
import {
  compileSettings,
  createLogger,
  isSameProcessAlive,
  lockDirectory,
  LogFile,
  type Logger,
  packageVersion,
  processIdentity,
  Shutdown,
  attendedClock,
  systemClock,
  toErrorRecord,
} from '../../base/index.js';
import { startCoordinatorDaemon } from '../daemons/coordinator-daemon.js';
import type { Daemon, DaemonSurroundings } from '../daemons/daemon.js';
import { machineShare } from '../daemons/machine.js';
import { type NimbusDaemon, startNimbusDaemon } from '../daemons/nimbus-daemon.js';
import { startSupervisorDaemon } from '../daemons/supervisor-daemon.js';
import {
  type DaemonState,
  type DevDaemonLaunch,
  daemonFiles,
  type FromDevDaemon,
  serveDaemon,
} from './daemon-control.js';
import { type DevDirectory, devDirectory, supervisorDirectory, supervisorSocket } from './dev-directory.js';

class DevDaemon {
  readonly #launch: DevDaemonLaunch;
  readonly #directory: DevDirectory;
  readonly #logger: Logger;
  readonly #stopStarting = new AbortController();
  readonly #startedMs = systemClock.wallMs();
  /** In the order of their start. */
  readonly #parts: Daemon[] = [];
  readonly #shutdown = new Shutdown();
  #nimbus: NimbusDaemon | undefined;
  #state: DaemonState = 'starting';
  #starting: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(launch: DevDaemonLaunch, directory: DevDirectory, logger: Logger) {
    this.#launch = launch;
    this.#directory = directory;
    this.#logger = logger;
  }

  /** @throws STATE_DIRECTORY_OWNED (D1), and what its parts throw */
  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  /** Closes what has been started so far. */
  close(how: { readonly stopWorkers: boolean }): Promise<void> {
    this.#closing ??= this.#close(how);
    return this.#closing;
  }

  async #start(): Promise<void> {
    const { id } = this.#launch;
    const files = daemonFiles(this.#directory, id);
    const own = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
    const lock = lockDirectory(files.lock, own, isSameProcessAlive);
    this.#shutdown.add('directory lock', () => lock.release());
    const control = await serveDaemon(
      files.socket,
      {
        about: () => ({
          pid: process.pid,
          version: packageVersion(),
          state: this.#state,
          startedMs: this.#startedMs,
          metricsUrl: this.#nimbus?.metricsUrl ?? null,
        }),
        close: (how) => void this.close(how).finally(() => process.exit()),
      },
      this.#logger,
    );
    this.#shutdown.add('daemon socket', () => control.close());
    await this.#startParts();
    if (this.#closing === undefined) this.#state = 'ready';
  }

  async #startParts(): Promise<void> {
    const { coordinator, nimbus, supervisor, coordinatorAddress, supervisors } = this.#launch;
    const {
      coordinatorDirectory,
      coordinatorSocket,
      blobDirectory,
      controlSocket,
      socketDirectory,
      ...directory
    } = this.#directory;
    const common: DaemonSurroundings & { coordinatorAddress: string; blobDirectory: string } = {
      settings: compileSettings(this.#launch.settings),
      clock: attendedClock(systemClock),
      logger: this.#logger,
      signal: this.#stopStarting.signal,
      coordinatorAddress,
      blobDirectory,
    };
    if (coordinator) {
      const own = { directory: coordinatorDirectory, socketPath: coordinatorSocket };
      this.#parts.push(await startCoordinatorDaemon({ ...common, ...own }));
    }
    if (nimbus) {
      this.#nimbus = await startNimbusDaemon({
        ...common,
        controlSocket,
        supervisorSocket: (id) => supervisorSocket(this.#directory, id),
      });
      this.#parts.push(this.#nimbus);
    }
    if (supervisor === null) return;
    const { name, host, rack, slots, firstPort, cores, memoryBytes } = supervisor;
    const share = machineShare(supervisors);
    this.#parts.push(
      await startSupervisorDaemon({
        ...common,
        id: name,
        host,
        rack,
        settings: compileSettings(this.#launch.settings, {
          ...(slots === undefined ? {} : { 'supervisor.slots': slots }),
          ...(firstPort === undefined ? {} : { 'supervisor.first-port': firstPort }),
        }),
        cores: cores ?? share.cores,
        memoryBytes: memoryBytes ?? share.memoryBytes,
        directory: supervisorDirectory(this.#directory, supervisor),
        socketPath: supervisorSocket(this.#directory, name),
        peerSocketDirectory: socketDirectory,
        deadLetterDirectory: directory.deadLetterDirectory,
        keeper: null,
      }),
    );
  }

  async #close(how: { readonly stopWorkers: boolean }): Promise<void> {
    this.#state = 'closing';
    this.#logger.info('daemon.closing', how);
    this.#stopStarting.abort(new Error('the daemon is closing'));
    await this.#starting.catch(() => undefined);
    for (const part of this.#parts.splice(0).reverse()) {
      try {
        await part.close(how);
      } catch (error) {
        this.#logger.error('daemon.part-not-closed', { message: String(error) });
      }
    }
    await this.#shutdown.close();
  }
}

function tellKeeper(message: FromDevDaemon, sent: () => void = () => undefined): void {
  // A keeper that is gone has a successor, which asks at the socket.
  if (process.connected) process.send?.(message, undefined, {}, sent);
  else sent();
}

function main(): void {
  const launchPath = process.argv[2];
  if (launchPath === undefined) {
    process.stderr.write('usage: started by isobar dev\n');
    process.exit(2);
  }
  // Written by the keeper of the same version.
  const launch = JSON.parse(readFileSync(launchPath, 'utf8')) as DevDaemonLaunch;
  const directory = devDirectory(launch.directory);
  const settings = compileSettings(launch.settings);
  const logger = createLogger({
    file: LogFile.of(daemonFiles(directory, launch.id).log, settings),
    level: settings['log.level'],
    fields: { daemon: launch.id, pid: process.pid },
  });
  process.on('uncaughtException', (error) => {
    const { code, message, stack } = toErrorRecord(error);
    logger.error('daemon.crashed', { code, message, stack });
    process.exit(1);
  });
  const daemon = new DevDaemon(launch, directory, logger);
  // A signal ends this daemon alone; its keeper starts it again.
  process.on('SIGTERM', () => void daemon.close({ stopWorkers: false }).finally(() => process.exit()));
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  daemon.start().then(
    () => {
      logger.info('daemon.ready');
      tellKeeper({ kind: 'ready' });
    },
    (error: unknown) => {
      const record = toErrorRecord(error);
      logger.error('daemon.not-started', { code: record.code, message: record.message });
      tellKeeper({ kind: 'failed', error: record }, () => {
        void daemon.close({ stopWorkers: false }).finally(() => process.exit(1));
      });
    },
  );
}

main();
