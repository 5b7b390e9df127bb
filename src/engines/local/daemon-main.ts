/**
 * The daemon of a local cluster: coordinator, Nimbus, supervisor and the control server in one process. Its
 * argument is the path of a launch file ({@link DaemonLaunch}); it talks to its keeper over an IPC channel.
 *
 * D1  Killed at any moment, its successor on the same directory goes on where it was; the workers do not notice more than a
 *     reconnect.
 * D2  When the keeper is gone (the channel's end, then pid and start time), it stops the workers, removes what the run has
 *     left, and ends.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  compileSettings,
  createLogger,
  LogFile,
  type Logger,
  attendedClock,
  systemClock,
  toErrorRecord,
  isSameProcessAlive,
} from '../../base/index.js';
import { type Coordination, isTerminal } from '../../coordination/index.js';
import type { Supervisor } from '../../supervisor/index.js';
import { connectPatiently } from '../daemons/connect-patiently.js';
import { startCoordinatorDaemon } from '../daemons/coordinator-daemon.js';
import type { Daemon as DaemonPart } from '../daemons/daemon.js';
import { machineShare } from '../daemons/machine.js';
import { startNimbusDaemon } from '../daemons/nimbus-daemon.js';
import { startSupervisorDaemon } from '../daemons/supervisor-daemon.js';
import {
  COORDINATOR_SOCKET,
  type DaemonLaunch,
  FIRST_DAEMON,
  type FromDaemon,
  SUPERVISOR_ID,
  SUPERVISOR_SOCKET,
} from './daemon-launch.js';
import { removeRunDirectory } from './run-directory.js';

/** The end of the channel tells at once that the keeper has gone; looking is a precaution, and often when it has ended. */
const KEEPER_CHECK_MS = 5000;
const DISCONNECTED_CHECK_MS = 200;
/** What a killed keeper leaves behind must be gone in ten seconds, however long its workers may take to stop. */
const ORPHAN_STOP_MS = 4000;

interface Daemon extends DaemonPart {
  readonly supervisor: Supervisor;
  /** Names of topologies of a former run that it has stopped. */
  readonly stopped: readonly string[];
}

async function start(launch: DaemonLaunch, logger: Logger): Promise<Daemon> {
  const { directory, keeper } = launch;
  const coordinatorAddress = join(directory.socketDirectory, COORDINATOR_SOCKET);
  const common = {
    settings: compileSettings(launch.settings),
    clock: attendedClock(systemClock),
    logger,
    signal: new AbortController().signal,
    coordinatorAddress,
    blobDirectory: join(directory.stateDirectory, 'nimbus'),
  };
  const parts: DaemonPart[] = [];
  const close = async (how: { stopWorkers: boolean }): Promise<void> => {
    for (const part of parts.splice(0).reverse()) await part.close(how);
  };
  try {
    const coordinatorDirectory = join(directory.stateDirectory, 'coordinator');
    parts.push(
      await startCoordinatorDaemon({
        ...common,
        directory: coordinatorDirectory,
        socketPath: coordinatorAddress,
      }),
    );
    // Before anything can start a worker for them.
    const stopped =
      process.argv[3] === FIRST_DAEMON
        ? await stopFormerTopologies(
            await connectPatiently({ ...common, directory: directory.stateDirectory }),
          )
        : [];
    parts.push(
      await startNimbusDaemon({
        ...common,
        controlSocket: directory.controlSocket,
        supervisorSocket: () => join(directory.socketDirectory, SUPERVISOR_SOCKET),
      }),
    );
    const supervisor = await startSupervisorDaemon({
      ...common,
      ...machineShare(1),
      id: SUPERVISOR_ID,
      host: 'localhost',
      rack: 'default-rack',
      directory: directory.supervisorDirectory,
      socketPath: join(directory.socketDirectory, SUPERVISOR_SOCKET),
      peerSocketDirectory: directory.socketDirectory,
      deadLetterDirectory: directory.deadLetterDirectory,
      keeper,
    });
    parts.push(supervisor);
    return { supervisor: supervisor.supervisor, stopped, close };
  } catch (error) {
    await close({ stopWorkers: false });
    throw error;
  }
}

/** A run that was killed has left its topologies as they were. They are stopped: a new run starts from the beginning. */
async function stopFormerTopologies(coordination: Coordination): Promise<readonly string[]> {
  try {
    const stopped: string[] = [];
    for (const { value, version } of await coordination.listTopologies()) {
      if (isTerminal(value.phase)) continue;
      await coordination.updateTopology({ ...value, phase: { kind: 'stopped' } }, version);
      stopped.push(value.name);
    }
    return stopped;
  } finally {
    await coordination.close();
  }
}

function main(): void {
  const launchPath = process.argv[2];
  if (launchPath === undefined || process.send === undefined) {
    process.stderr.write('usage: started by isobar run\n');
    process.exit(2);
  }
  // Written by the keeper of the same version.
  const launch = JSON.parse(readFileSync(launchPath, 'utf8')) as DaemonLaunch;
  const settings = compileSettings(launch.settings);
  const logger = createLogger({
    file: LogFile.of(launch.directory.daemonLog, settings),
    level: settings['log.level'],
    fields: { pid: process.pid },
  });
  process.on('uncaughtException', (error) => {
    const { code, message, stack } = toErrorRecord(error);
    logger.error('daemon.crashed', { code, message, stack });
    process.exit(1);
  });
  // The keeper decides what a signal to the terminal means.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => undefined);
  const started = start(launch, logger);
  let isEnding = false;
  const end = async (what: () => Promise<void>): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    let code = 0;
    try {
      await what();
    } catch (error) {
      code = 1;
      logger.error('daemon.not-closed', { message: String(error) });
    }
    process.exit(code);
  };
  const checkKeeper = (): void => {
    if (!isSameProcessAlive(launch.keeper)) void end(() => endOrphan(launch, started, logger));
  };
  process.on('disconnect', () => {
    checkKeeper();
    systemClock.every(DISCONNECTED_CHECK_MS, checkKeeper);
  });
  systemClock.every(KEEPER_CHECK_MS, checkKeeper);
  process.on('message', () => void end(async () => (await started).close({ stopWorkers: true })));
  started.then(
    ({ supervisor, stopped }) => {
      logger.info('daemon.ready', { slots: supervisor.slots().length });
      tell({ kind: 'ready', stopped });
    },
    (error: unknown) => {
      const record = toErrorRecord(error);
      logger.error('daemon.not-started', { code: record.code, message: record.message });
      tell({ kind: 'failed', error: record }, () => process.exit(1));
    },
  );
}

function tell(message: FromDaemon, sent: () => void = () => undefined): void {
  // A keeper that is gone is seen elsewhere.
  process.send?.(message, undefined, {}, sent);
}

/** D2. */
async function endOrphan(launch: DaemonLaunch, started: Promise<Daemon>, logger: Logger): Promise<void> {
  logger.warn('keeper.gone', { keeper: launch.keeper.pid });
  let daemon: Daemon | undefined;
  const stopped = started.then((running) => {
    daemon = running;
    return running.close({ stopWorkers: true });
  });
  await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, ORPHAN_STOP_MS))]);
  killWorkers(daemon?.supervisor);
  removeRunDirectory(launch.directory, { keepLogs: false });
}

/** Those that did not stop in time. They lead a process group each, and the supervisor has just verified them. */
function killWorkers(supervisor: Supervisor | undefined): void {
  for (const { pid } of supervisor?.slots() ?? []) {
    if (pid === null) continue;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // Gone in between.
      continue;
    }
  }
}

main();
