/**
 * `isobar dev`: makes a cluster's directory what it is to be, starts its keeper, and waits until a submission would be
 * placed. Where the cluster runs already it is left as it is; only a keeper that is gone is started again.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import {
  compileSettings,
  IsobarError,
  packageVersion,
  type RawSettings,
  systemClock,
  type ErrorRecord,
  packageEntry,
} from '../../base/index.js';
import { checkCoordinator } from '../daemons/check-coordinator.js';
import { checkStateDirectory } from '../local/run-directory.js';
import { underCommandLock } from './command-lock.js';
import { findDaemon } from './daemon-control.js';
import { planDaemons } from './daemon-plan.js';
import {
  type ClusterFile,
  type DevDirectory,
  forgetSupervisor,
  readCluster,
  readSupervisors,
  type SupervisorFile,
  type SupervisorSpec,
  writeCluster,
  writeSupervisor,
} from './dev-directory.js';
import { type DevDaemonStatus, type DevStatus, inspectCluster } from './inspect-cluster.js';
import { askKeeper, findKeeper } from './keeper.js';
import { stopUnderLock } from './stop-cluster.js';

const KEEPER_ENTRY = fileURLToPath(packageEntry('engines/dev/keeper-main'));
const KEEPER_START_MS = 60_000;
const READY_MS = 120_000;
/** How long a coordinator may be away that a running cluster has lost. */
const COORDINATOR_MS = 15_000;
const POLL_MS = 25;
/** A daemon that has ended so often without saying why will not come up by itself. */
const HOPELESS_RESTARTS = 5;
/** The only supervisor of a cluster that was not told of any. */
const ONE_SUPERVISOR: SupervisorSpec = { name: 'local', host: 'localhost', rack: 'default-rack' };

/** What a user asks for; what is not given stays as it was, or is the default. */
export interface AskedCluster {
  readonly supervisors?: readonly SupervisorSpec[];
  /** An address; null: an embedded one. */
  readonly coordinator?: string | null;
  readonly settings?: RawSettings;
}

export interface StartedCluster {
  /** `started`: nothing ran. `attached`: daemons ran without a keeper. `running`: it ran already. */
  readonly outcome: 'started' | 'attached' | 'running';
  readonly status: DevStatus;
}

/**
 * Makes the cluster run. Resolves when it is ready; what cannot become ready is stopped again if it was started here.
 *
 * @throws DEV_ALREADY_RUNNING, DAEMON_VERSION_MISMATCH, STATE_VERSION_UNKNOWN, STATE_DAMAGED, STATE_DIRECTORY_UNUSABLE,
 *   DAEMON_LOST, what the coordinator cannot be used for, and what a daemon cannot be started for
 */
export async function startCluster(
  directory: DevDirectory,
  asked: AskedCluster,
  options: {
    readonly workingDirectory: string;
    readonly signal: AbortSignal;
    /** Called where something has to be started, before it is waited for. */
    onStarting(): void;
  },
): Promise<StartedCluster> {
  checkStateDirectory(directory.path);
  const outcome = await underCommandLock(directory, async () => {
    const cluster = readCluster(directory);
    const supervisors = readSupervisors(directory);
    const running = cluster === undefined ? [] : runningDaemons(directory, cluster, supervisors);
    const hasKeeper = findKeeper(directory) !== undefined;
    if (cluster !== undefined && (hasKeeper || running.length > 0)) {
      refuseOthers(directory, asked, cluster, supervisors);
      await refuseVersion(directory);
      if (hasKeeper) return 'running';
      options.onStarting();
      await startKeeperProcess(directory);
      return 'attached';
    }
    options.onStarting();
    const coordinator = coordinatorOf(asked, cluster);
    if (coordinator !== null) {
      await checkCoordinator(coordinator, compileSettings(asked.settings ?? cluster?.settings ?? {}));
    }
    setUp(directory, asked, cluster, supervisors, options.workingDirectory);
    await startKeeperProcess(directory);
    return 'started';
  });
  try {
    return { outcome, status: await untilReady(directory, options.signal) };
  } catch (error) {
    if (outcome === 'started' && !options.signal.aborted) {
      await underCommandLock(directory, () => stopUnderLock(directory, { keepWorkers: true }));
    }
    throw error;
  }
}

function runningDaemons(
  directory: DevDirectory,
  cluster: ClusterFile,
  supervisors: readonly SupervisorFile[],
): readonly string[] {
  return planDaemons(cluster, supervisors).flatMap(({ id }) =>
    findDaemon(directory, id) === undefined ? [] : [id],
  );
}

function refuseOthers(
  directory: DevDirectory,
  asked: AskedCluster,
  cluster: ClusterFile,
  supervisors: readonly SupervisorFile[],
): void {
  const differs =
    (asked.supervisors !== undefined &&
      !isDeepStrictEqual(
        [...asked.supervisors].sort(byName),
        supervisors.map(({ spec }) => spec).sort(byName),
      )) ||
    (asked.coordinator !== undefined && asked.coordinator !== cluster.coordinator) ||
    (asked.settings !== undefined && !isDeepStrictEqual(asked.settings, cluster.settings));
  if (!differs) return;
  throw new IsobarError(
    'DEV_ALREADY_RUNNING',
    `the cluster in ${directory.path} runs already, with other options`,
    {
      expected: 'no options, or those that it was started with',
      found: describeCluster(cluster, supervisors),
      where: directory.path,
    },
  );
}

function byName(a: SupervisorSpec, b: SupervisorSpec): number {
  return a.name < b.name ? -1 : 1;
}

function describeCluster(
  { coordinator, settings }: ClusterFile,
  supervisors: readonly SupervisorFile[],
): string {
  const names = supervisors.map(({ spec }) => spec.name).join(', ');
  const given = Object.entries(settings).map(([key, value]) => `${key}=${String(value)}`);
  const words = given.length === 0 ? 'no settings' : `settings ${given.join(' ')}`;
  return `coordinator ${coordinator ?? 'embedded'}, ${supervisors.length === 1 ? 'supervisor' : 'supervisors'} ${names}, ${words}`;
}

async function refuseVersion(directory: DevDirectory): Promise<void> {
  const status = await inspectCluster(directory);
  // Two builds of one version can differ in what they say to each other.
  if (status?.problem?.code === 'DAEMON_VERSION_MISMATCH') throw IsobarError.from(status.problem);
  const versions = [status?.keeper?.version, ...(status?.daemons.map(({ version }) => version) ?? [])];
  const other = versions.find(
    (version) => version !== undefined && version !== null && version !== packageVersion(),
  );
  if (other === undefined || other === null) return;
  throw new IsobarError('DAEMON_VERSION_MISMATCH', `the cluster in ${directory.path} runs Isobar ${other}`, {
    expected: `Isobar ${packageVersion()}`,
    found: `Isobar ${other}`,
    where: directory.path,
  });
}

function setUp(
  directory: DevDirectory,
  asked: AskedCluster,
  before: ClusterFile | undefined,
  supervisorsBefore: readonly SupervisorFile[],
  workingDirectory: string,
): void {
  const known = supervisorsBefore.map(({ spec }) => spec);
  const supervisors = asked.supervisors ?? (known.length > 0 ? known : [ONE_SUPERVISOR]);
  for (const { name } of known) {
    if (!supervisors.some((spec) => spec.name === name)) forgetSupervisor(directory, name);
  }
  for (const spec of supervisors) writeSupervisor(directory, spec, true);
  const [only, ...others] = supervisors;
  writeCluster(directory, {
    version: packageVersion(),
    coordinator: coordinatorOf(asked, before),
    together: others.length === 0 ? (only?.name ?? null) : null,
    settings: asked.settings ?? before?.settings ?? {},
    workingDirectory,
  });
}

/** An address; null: an embedded one. */
function coordinatorOf(asked: AskedCluster, before: ClusterFile | undefined): string | null {
  return asked.coordinator === undefined ? (before?.coordinator ?? null) : asked.coordinator;
}

/** Starts a keeper detached; resolves when one answers. @throws DAEMON_LOST */
async function startKeeperProcess(directory: DevDirectory): Promise<void> {
  mkdirSync(directory.logs, { recursive: true, mode: 0o700 });
  const logPath = join(directory.logs, 'keeper.log');
  const log = openSync(logPath, 'a', 0o600);
  let child: ChildProcess;
  try {
    child = spawn(process.execPath, ['--enable-source-maps', KEEPER_ENTRY, directory.path], {
      cwd: directory.path,
      detached: true,
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
  let how: string | undefined;
  child.once('error', (error) => (how = error.message));
  child.once('exit', (code, signal) => (how = signal ?? `exit code ${code ?? 'unknown'}`));
  child.unref();
  const deadlineMs = systemClock.nowMs() + KEEPER_START_MS;
  while ((await askKeeper(directory, 'reconcile')) === undefined) {
    // Another one may have been first, and then answers soon.
    const isLost = how !== undefined && findKeeper(directory) === undefined;
    if (isLost || systemClock.nowMs() > deadlineMs) {
      throw new IsobarError(
        'DAEMON_LOST',
        `the keeper of ${directory.path} did not start; its log is ${logPath}`,
        {
          expected: 'a keeper that answers',
          found: how ?? `nothing in ${KEEPER_START_MS / 1000} s`,
          where: logPath,
        },
      );
    }
    await pause(POLL_MS);
  }
}

async function untilReady(directory: DevDirectory, signal: AbortSignal): Promise<DevStatus> {
  const deadlineMs = systemClock.nowMs() + READY_MS;
  let awaySinceMs = Infinity;
  for (;;) {
    const status = await inspectCluster(directory);
    if (status?.state === 'ready') return status;
    const hopeless = status?.daemons.find(isHopeless);
    if (hopeless?.problem != null) throw withId(hopeless.id, hopeless.problem);
    // Daemons that run wait for it without end; whoever starts them is told.
    if (status?.coordinatorProblem != null) {
      const away = new IsobarError(status.coordinatorProblem.code, status.coordinatorProblem.message);
      awaySinceMs = Math.min(awaySinceMs, systemClock.nowMs());
      if (!away.retryable || systemClock.nowMs() > awaySinceMs + COORDINATOR_MS) throw away;
    } else awaySinceMs = Infinity;
    if (systemClock.nowMs() > deadlineMs) throw notReady(directory, status);
    await pause(POLL_MS, undefined, { signal });
  }
}

function isHopeless({ problem, restarts }: DevDaemonStatus): boolean {
  if (problem === null) return false;
  if (IsobarError.from(problem).retryable) return false;
  return problem.code !== 'DAEMON_LOST' || restarts >= HOPELESS_RESTARTS;
}

function withId(id: string, problem: ErrorRecord): IsobarError {
  return IsobarError.from({ ...problem, message: `daemon ${id} cannot be started: ${problem.message}` });
}

function notReady(directory: DevDirectory, status: DevStatus | undefined): IsobarError {
  const coordinator = status?.coordinatorProblem;
  const missing = [
    ...(status?.daemons ?? [])
      .filter(({ state }) => state !== 'ready')
      .map(
        ({ id, state, problem }) =>
          `${id} is ${state}${problem === null ? '' : ` (${problem.code}: ${problem.message})`}`,
      ),
    ...(status?.supervisors ?? [])
      .filter(({ isWanted, isPresent }) => isWanted && !isPresent)
      .map(({ name }) => `supervisor ${name} has not joined`),
    ...(coordinator == null ? [] : [`${coordinator.code}: ${coordinator.message}`]),
  ];
  return new IsobarError(
    'DAEMON_LOST',
    `the cluster is not ready after ${READY_MS / 1000} s; its logs are in ${directory.logs}`,
    {
      expected: 'every daemon ready, every supervisor joined, a coordinator that answers',
      found: missing.join('; '),
      where: directory.logs,
    },
  );
}
