/**
 * `isobar dev stop`: ends keeper, supervisors with their workers, Nimbus and coordinator, in this order, whichever of them
 * still run, and verifies that they are gone. The state stays: topologies that were alive go on when the cluster is started again.
 */
import { rmSync } from 'node:fs';
import { compileSettings, IsobarError } from '../../base/index.js';
import { endWorkers } from '../../supervisor/index.js';
import { underCommandLock } from './command-lock.js';
import { endDaemon, killProcess, untilGone } from './daemon-ends.js';
import { planDaemons } from './daemon-plan.js';
import { type DevDirectory, readCluster, readSupervisors, supervisorDirectory } from './dev-directory.js';
import { findKeeper, tellKeeperToEnd } from './keeper.js';

/** Beyond the time that workers have to stop. */
const MARGIN_MS = 5000;
const KEEPER_END_MS = 3000;

export interface StopOptions {
  /** Workers go on, and the next `isobar dev` here adopts them. */
  readonly keepWorkers: boolean;
}

export interface StoppedCluster {
  /** Ids of the daemons that ran. */
  readonly stopped: readonly string[];
}

/** @throws DAEMON_NOT_RUNNING if there is no cluster in the directory, STATE_VERSION_UNKNOWN, STATE_DAMAGED */
export async function stopCluster(directory: DevDirectory, options: StopOptions): Promise<StoppedCluster> {
  if (readCluster(directory) === undefined) throw noCluster(directory);
  return underCommandLock(directory, () => stopUnderLock(directory, options));
}

export async function stopUnderLock(
  directory: DevDirectory,
  { keepWorkers }: StopOptions,
): Promise<StoppedCluster> {
  const cluster = readCluster(directory);
  if (cluster === undefined) throw noCluster(directory);
  const supervisors = readSupervisors(directory);
  await endKeeper(directory);
  const stopTimeoutMs = compileSettings(cluster.settings)['supervisor.worker-stop-timeout'];
  const how = { stopWorkers: !keepWorkers, timeoutMs: stopTimeoutMs + MARGIN_MS };
  // Those that were stopped, or were to be, may still run.
  const plans = planDaemons(
    cluster,
    supervisors.map((file) => ({ ...file, isWanted: true })),
  );
  const stopped: string[] = [];
  const end = async (id: string): Promise<void> => {
    if (await endDaemon(directory, id, how)) stopped.push(id);
  };
  await Promise.all(plans.filter(({ supervisor }) => supervisor !== null).map(({ id }) => end(id)));
  // Workers whose supervisor was not there.
  if (!keepWorkers) {
    const directories = supervisors.map(({ spec }) => supervisorDirectory(directory, spec));
    await Promise.all(directories.map((path) => endWorkers(path, stopTimeoutMs)));
  }
  for (const { id } of plans.filter(({ supervisor }) => supervisor === null).reverse()) await end(id);
  // Their sockets are what workers that go on find each other by.
  if (!keepWorkers) rmSync(directory.socketDirectory, { recursive: true, force: true });
  return { stopped };
}

async function endKeeper(directory: DevDirectory): Promise<void> {
  const keeper = findKeeper(directory);
  if (keeper === undefined) return;
  await tellKeeperToEnd(directory);
  if (!(await untilGone(keeper, KEEPER_END_MS))) await killProcess(keeper);
}

export function noCluster(directory: DevDirectory): IsobarError {
  return new IsobarError('DAEMON_NOT_RUNNING', `there is no cluster in ${directory.path}`, {
    expected: 'a directory in which isobar dev was started',
    found: 'none',
    where: directory.path,
  });
}
