/** `isobar dev supervisor start|stop`: one supervisor of a cluster that runs, as if its machine came or went. */
import { compileSettings, IsobarError } from '../../base/index.js';
import { endWorkers, killWorkers, workerProcessesOf } from '../../supervisor/index.js';
import { underCommandLock } from './command-lock.js';
import { findDaemon } from './daemon-control.js';
import { endDaemon, killProcess } from './daemon-ends.js';
import { supervisorId } from './daemon-plan.js';
import {
  type ClusterFile,
  type DevDirectory,
  readCluster,
  readSupervisors,
  type SupervisorFile,
  type SupervisorSpec,
  supervisorDirectory,
  writeSupervisor,
} from './dev-directory.js';
import { askKeeper, findKeeper } from './keeper.js';
import { noCluster } from './stop-cluster.js';

const MARGIN_MS = 5000;

/** How a supervisor is to go. */
export interface SupervisorEnd {
  /** Killed instead of asked. */
  readonly crash: boolean;
  /** Its workers go on. */
  readonly only: boolean;
}

/** What became of it. */
export interface SupervisorStopped {
  /** The process that it was; null: it did not run. */
  readonly pid: number | null;
  /** Worker processes that went with it. */
  readonly workers: number;
}

/** Starts a supervisor that was stopped, or a new one. @throws DAEMON_NOT_RUNNING, SUPERVISOR_UNKNOWN, DEV_ALREADY_RUNNING */
export async function startClusterSupervisor(
  directory: DevDirectory,
  name: string,
  spec: SupervisorSpec | undefined,
): Promise<void> {
  requireCluster(directory);
  await underCommandLock(directory, async () => {
    requireKeeper(directory);
    const known = readSupervisors(directory).find((file) => file.spec.name === name);
    if (known === undefined && spec === undefined) throw unknownSupervisor(directory, name);
    if (spec !== undefined && findDaemon(directory, supervisorId(name)) !== undefined) {
      throw new IsobarError('DEV_ALREADY_RUNNING', `supervisor ${name} runs already`, {
        expected: 'no options for a supervisor that runs',
        where: directory.path,
      });
    }
    // One of the two is there.
    writeSupervisor(directory, spec ?? known!.spec, true);
    await askKeeper(directory, 'reconcile');
  });
}

/** Ends a supervisor, with its workers unless told otherwise; it stays away. @throws DAEMON_NOT_RUNNING, SUPERVISOR_UNKNOWN, USAGE */
export async function stopClusterSupervisor(
  directory: DevDirectory,
  name: string,
  end: SupervisorEnd,
): Promise<SupervisorStopped> {
  requireCluster(directory);
  return underCommandLock(directory, async () => {
    const cluster = requireCluster(directory);
    const file = readSupervisors(directory).find(({ spec }) => spec.name === name);
    if (file === undefined) throw unknownSupervisor(directory, name);
    if (cluster.together === name) {
      throw new IsobarError('USAGE', `supervisor ${name} shares its process with Nimbus`, {
        expected: 'a supervisor with a process of its own, as isobar dev --supervisors 2 gives',
        where: directory.path,
      });
    }
    writeSupervisor(directory, file.spec, false);
    // It must know before the process ends, or it starts another.
    await askKeeper(directory, 'reconcile');
    return endSupervisor(directory, cluster, file, end);
  });
}

async function endSupervisor(
  directory: DevDirectory,
  cluster: ClusterFile,
  { spec }: SupervisorFile,
  { crash, only }: SupervisorEnd,
): Promise<SupervisorStopped> {
  const id = supervisorId(spec.name);
  const path = supervisorDirectory(directory, spec);
  const identity = findDaemon(directory, id);
  const workers = only ? 0 : workerProcessesOf(path).length;
  const pid = identity?.pid ?? null;
  if (crash) {
    // First the one that would start others, then all of them at once.
    if (identity !== undefined) await killProcess(identity);
    if (!only) killWorkers(path);
    return { pid, workers };
  }
  const timeoutMs = compileSettings(cluster.settings)['supervisor.worker-stop-timeout'];
  await endDaemon(directory, id, { stopWorkers: !only, timeoutMs: timeoutMs + MARGIN_MS });
  if (!only) await endWorkers(path, timeoutMs);
  return { pid, workers };
}

function requireCluster(directory: DevDirectory): ClusterFile {
  const cluster = readCluster(directory);
  if (cluster === undefined) throw noCluster(directory);
  return cluster;
}

function requireKeeper(directory: DevDirectory): void {
  requireCluster(directory);
  if (findKeeper(directory) !== undefined) return;
  throw new IsobarError('DAEMON_NOT_RUNNING', `the cluster in ${directory.path} has no keeper`, {
    expected: 'a cluster that runs',
    found: 'nobody who would start a daemon',
    where: directory.path,
  });
}

function unknownSupervisor(directory: DevDirectory, name: string): IsobarError {
  const names = readSupervisors(directory).map(({ spec }) => spec.name);
  return new IsobarError('SUPERVISOR_UNKNOWN', `there is no supervisor "${name}"`, {
    expected: `one of ${names.join(', ')}`,
    found: name,
    where: directory.path,
  });
}
