/**
 * The keeper of `isobar dev`: keeps the daemons that the cluster's directory names running, and says how they are. It holds
 * nothing that is not in that directory: killed at any moment, the next one finds the daemons and goes on.
 */
import {
  type ChannelHandlers,
  type Clock,
  connectChannel,
  directoryOwner,
  type ErrorRecord,
  hasCode,
  IsobarError,
  isSameProcessAlive,
  lockDirectory,
  type Logger,
  packageVersion,
  type ProcessIdentity,
  processIdentity,
  serveChannels,
  Shutdown,
  toErrorRecord,
} from '../../base/index.js';
import type { DevDaemonLaunch } from './daemon-control.js';
import { planDaemons } from './daemon-plan.js';
import { type DevDirectory, readCluster, readSupervisors } from './dev-directory.js';
import { type DaemonReport, KeptDaemon } from './kept-daemon.js';

const CHECK_MS = 250;
const ASK_TIMEOUT_MS = 5000;
const KEEPER = 'keeper';

export interface KeeperStatus {
  readonly pid: number;
  readonly version: string;
  readonly startedMs: number;
  readonly daemons: readonly DaemonReport[];
  /** Why the cluster's files could not be read; null: they could. */
  readonly problem: ErrorRecord | null;
}

export interface Keeper {
  close(): Promise<void>;
}

/** @throws STATE_DIRECTORY_OWNED if there is a keeper already, STATE_DIRECTORY_UNUSABLE */
export async function startKeeper(options: {
  readonly directory: DevDirectory;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Somebody asks the keeper to end; the daemons go on. */
  onEnd(): void;
}): Promise<Keeper> {
  const { directory, clock, logger } = options;
  const shutdown = new Shutdown();
  const own = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
  const lock = lockDirectory(`${directory.daemons}/${KEEPER}`, own, isSameProcessAlive);
  shutdown.add('directory lock', () => lock.release());
  const kept = new Map<string, KeptDaemon>();
  const startedMs = clock.wallMs();
  let problem: ErrorRecord | null = null;

  function reconcile(): void {
    try {
      const cluster = readCluster(directory);
      if (cluster === undefined)
        throw new IsobarError('DAEMON_NOT_RUNNING', `there is no cluster in ${directory.path}`);
      const supervisors = readSupervisors(directory);
      const plans = planDaemons(cluster, supervisors);
      for (const plan of plans) {
        const launch: DevDaemonLaunch = {
          ...plan,
          directory: directory.path,
          coordinatorAddress: cluster.coordinator ?? directory.coordinatorSocket,
          settings: cluster.settings,
          supervisors: supervisors.length,
        };
        const known = kept.get(plan.id);
        if (known !== undefined) known.want(launch);
        else {
          const daemon = new KeptDaemon(launch, {
            directory,
            workingDirectory: cluster.workingDirectory,
            clock,
            logger,
          });
          kept.set(plan.id, daemon);
          daemon.check();
        }
      }
      for (const [id, daemon] of kept) {
        if (!plans.some((plan) => plan.id === id)) daemon.leave();
        if (daemon.isOver) kept.delete(id);
      }
      problem = null;
    } catch (error) {
      // What runs goes on; the files are read again in the next period.
      problem = toErrorRecord(error);
      if (!hasCode(error, 'DAEMON_NOT_RUNNING'))
        logger.error('cluster.not-read', { code: problem.code, message: problem.message });
    }
  }

  const conversation: ChannelHandlers = {
    onRequest(method) {
      switch (method) {
        case 'status':
          return status();
        case 'reconcile':
          reconcile();
          return status();
        case 'end':
          // After the answer has been sent.
          setImmediate(() => options.onEnd());
          return null;
        default:
          throw new IsobarError('USAGE', `a keeper does not answer "${method}"`, { found: method });
      }
    },
  };
  const server = await serveChannels(directory.keeperSocket, () => conversation, logger);
  shutdown.add('keeper socket', () => server.close());

  function status(): KeeperStatus {
    const daemons = [...kept.values()].flatMap((daemon) => daemon.report() ?? []);
    return { pid: process.pid, version: packageVersion(), startedMs, daemons, problem };
  }

  reconcile();
  shutdown.add('checks', clock.every(CHECK_MS, reconcile));
  logger.info('keeper.started', { pid: process.pid });
  return { close: () => shutdown.close() };
}

// ── the other side ──

/** The process that is the keeper of a cluster now. */
export function findKeeper(directory: DevDirectory): ProcessIdentity | undefined {
  return directoryOwner(`${directory.daemons}/${KEEPER}`, isSameProcessAlive);
}

/** Asks the keeper; undefined: nobody answers. */
export async function askKeeper(
  directory: DevDirectory,
  method: 'status' | 'reconcile',
): Promise<KeeperStatus | undefined> {
  return (await ask(directory, method)) as KeeperStatus | undefined;
}

/** Asks the keeper to end; it does so by itself. */
export async function tellKeeperToEnd(directory: DevDirectory): Promise<void> {
  await ask(directory, 'end');
}

async function ask(directory: DevDirectory, method: string): Promise<unknown> {
  try {
    const channel = await connectChannel(directory.keeperSocket);
    try {
      return await channel.request(method, null, { timeoutMs: ASK_TIMEOUT_MS });
    } finally {
      channel.close();
    }
  } catch {
    return undefined;
  }
}
