/** How a cluster of `isobar dev` is: what its files say, what its keeper and daemons answer, what Nimbus knows. */
import {
  clusterClient,
  type LifeStatus,
  type SlotStatus,
  type SupervisorStatus,
  type TopologySummary,
} from '../../api/index.js';
import { type ErrorRecord, hasCode, toErrorRecord } from '../../base/index.js';
import { askDaemon, findDaemon } from './daemon-control.js';
import { planDaemons } from './daemon-plan.js';
import {
  type ClusterFile,
  type DevDirectory,
  readCluster,
  readSupervisors,
  type SupervisorFile,
} from './dev-directory.js';
import { askKeeper, findKeeper } from './keeper.js';

export interface DevDaemonStatus {
  readonly id: string;
  /** `silent`: it runs and does not answer. `backing-off`: it ended, and is started again in a while. `gone`: nobody starts it. */
  readonly state: 'starting' | 'ready' | 'closing' | 'silent' | 'backing-off' | 'gone';
  readonly pid: number | null;
  /** Of Isobar; null where it does not answer. */
  readonly version: string | null;
  /** How often the keeper has started it again. */
  readonly restarts: number;
  readonly problem: ErrorRecord | null;
  readonly retryInMs: number | null;
  /** Where it serves metrics now; null: nowhere. */
  readonly metricsUrl: string | null;
}

export interface DevSupervisorStatus {
  readonly name: string;
  readonly host: string;
  readonly rack: string;
  /** false: it was stopped, and stays so. */
  readonly isWanted: boolean;
  /** The cluster has it: its session lives. */
  readonly isPresent: boolean;
  /** The daemon that it runs in. */
  readonly daemon: string;
  readonly pid: number | null;
  readonly owner: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly slots: readonly SlotStatus[];
}

export interface DevTopologyStatus {
  readonly id: string;
  readonly name: string;
  readonly status: LifeStatus;
  readonly workers: number;
}

export interface DevStatus {
  readonly directory: string;
  /** `ready`: a submission would be placed now. `stopped`: nothing of it runs. */
  readonly state: 'ready' | 'not-ready' | 'stopped';
  /** null: nobody restarts daemons that end. */
  readonly keeper: {
    readonly pid: number;
    readonly version: string | null;
    readonly startedMs: number | null;
  } | null;
  /** `embedded`, or the address of another one. */
  readonly coordinator: string;
  readonly controlSocket: string;
  readonly daemons: readonly DevDaemonStatus[];
  readonly supervisors: readonly DevSupervisorStatus[];
  /** By name. null: Nimbus does not answer. */
  readonly topologies: readonly DevTopologyStatus[] | null;
  /** Why the coordinator cannot be asked, as Nimbus finds; null: it can, or Nimbus does not answer. */
  readonly coordinatorProblem: Pick<ErrorRecord, 'code' | 'message'> | null;
  /** Of the cluster as a whole; null: none. */
  readonly problem: ErrorRecord | null;
}

/** undefined: there is no cluster in the directory. @throws STATE_VERSION_UNKNOWN, STATE_DAMAGED, STATE_DIRECTORY_UNUSABLE */
export async function inspectCluster(directory: DevDirectory): Promise<DevStatus | undefined> {
  const cluster = readCluster(directory);
  if (cluster === undefined) return undefined;
  const supervisors = readSupervisors(directory);
  const keeper = findKeeper(directory);
  const [kept, daemons, nimbus] = await Promise.all([
    keeper === undefined ? undefined : askKeeper(directory, 'status'),
    daemonStatuses(directory, cluster, supervisors),
    askNimbus(directory),
  ]);
  const status = 'problem' in nimbus ? undefined : nimbus;
  const reports = new Map(kept?.daemons.map((report) => [report.id, report]));
  const known = daemons.map((daemon): DevDaemonStatus => {
    const report = reports.get(daemon.id);
    if (report === undefined) return daemon;
    const { restarts, problem, retryInMs } = report;
    const isBackingOff = daemon.state === 'gone' && report.state === 'backing-off';
    return { ...daemon, restarts, problem, retryInMs, state: isBackingOff ? 'backing-off' : daemon.state };
  });
  const places = supervisors.map((file) => supervisorStatus(file, cluster, known, status));
  const isRunning = keeper !== undefined || known.some(({ pid }) => pid !== null);
  const isReady =
    status !== undefined &&
    status.coordinatorProblem === null &&
    known.every(({ state }) => state === 'ready') &&
    places.every(({ isPresent, isWanted, slots }) => !isWanted || (isPresent && slots.length > 0));
  return {
    directory: directory.path,
    state: isReady ? 'ready' : isRunning ? 'not-ready' : 'stopped',
    keeper:
      keeper === undefined
        ? null
        : { pid: keeper.pid, version: kept?.version ?? null, startedMs: kept?.startedMs ?? null },
    coordinator: cluster.coordinator ?? 'embedded',
    controlSocket: directory.controlSocket,
    daemons: known,
    supervisors: places,
    topologies:
      status?.topologies.map(({ id, name, status: life, workers }) => ({
        id,
        name,
        status: life,
        workers: workers.actual,
      })) ?? null,
    coordinatorProblem: status?.coordinatorProblem ?? null,
    problem: kept?.problem ?? ('problem' in nimbus ? nimbus.problem : null),
  };
}

function daemonStatuses(
  directory: DevDirectory,
  cluster: ClusterFile,
  supervisors: readonly SupervisorFile[],
): Promise<readonly DevDaemonStatus[]> {
  return Promise.all(
    planDaemons(cluster, supervisors).map(async ({ id }): Promise<DevDaemonStatus> => {
      const identity = findDaemon(directory, id);
      const nothing = { id, version: null, restarts: 0, problem: null, retryInMs: null, metricsUrl: null };
      if (identity === undefined) return { ...nothing, state: 'gone', pid: null };
      const answer = await askDaemon(directory, id);
      if (answer === undefined) return { ...nothing, state: 'silent', pid: identity.pid };
      const { state, version, metricsUrl = null } = answer;
      return { ...nothing, state, pid: identity.pid, version, metricsUrl };
    }),
  );
}

/** What Nimbus knows. */
interface Known {
  readonly supervisors: readonly SupervisorStatus[];
  readonly topologies: readonly TopologySummary[];
  readonly coordinatorProblem: DevStatus['coordinatorProblem'];
}

/** A daemon of another version does not go away by waiting; of others that do not answer, the list of daemons tells. */
async function askNimbus(directory: DevDirectory): Promise<Known | { readonly problem: ErrorRecord | null }> {
  const client = clusterClient(directory.path, { patienceMs: 0 });
  try {
    const [supervisors, { topologies, coordinatorProblem }] = [
      await client.ask('supervisors', null),
      await client.ask('list', null),
    ];
    return { supervisors, topologies, coordinatorProblem };
  } catch (error) {
    return { problem: hasCode(error, 'DAEMON_VERSION_MISMATCH') ? toErrorRecord(error) : null };
  } finally {
    client.close();
  }
}

function supervisorStatus(
  { spec, isWanted }: SupervisorFile,
  { together }: ClusterFile,
  daemons: readonly DevDaemonStatus[],
  status: Known | undefined,
): DevSupervisorStatus {
  const daemon = spec.name === together ? 'local' : `supervisor-${spec.name}`;
  const known = status?.supervisors.find(({ id }) => id === spec.name);
  return {
    name: spec.name,
    host: spec.host,
    rack: spec.rack,
    isWanted,
    isPresent: known?.isPresent ?? false,
    daemon,
    pid: daemons.find(({ id }) => id === daemon)?.pid ?? null,
    owner: known?.owner ?? '',
    cores: known?.cores ?? 0,
    memoryBytes: known?.memoryBytes ?? 0,
    slots: known?.slots ?? [],
  };
}
