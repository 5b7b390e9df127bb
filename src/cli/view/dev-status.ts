/** How `isobar dev` and `isobar dev status` show a cluster. Pure. */
import type { DevDaemonStatus, DevStatus, DevSupervisorStatus } from '../../engines/index.js';
import { type Column, columns, counted, duration, megabytes } from './format.js';

const WIDTH = 160;

/** Lines of text: where the cluster is, its daemons, its supervisors with what troubles them, and what runs on it. */
export function devStatusLines(status: DevStatus): readonly string[] {
  return [
    `cluster      ${status.directory} (${stateText(status)})`,
    `coordinator  ${status.coordinator}${coordinatorText(status)}`,
    `keeper       ${keeperText(status)}`,
    `metrics      ${status.daemons.find(({ metricsUrl }) => metricsUrl !== null)?.metricsUrl ?? 'none'}`,
    '',
    ...columns(status.daemons, DAEMON_COLUMNS, WIDTH),
    '',
    ...columns(status.supervisors, supervisorColumns(status), WIDTH),
    ...troubles(status),
    '',
    topologiesText(status),
  ];
}

function stateText({ state }: DevStatus): string {
  return state === 'not-ready' ? 'not ready' : state;
}

function coordinatorText({ coordinatorProblem: problem }: DevStatus): string {
  return problem === null ? '' : `; ${problem.code}: ${problem.message}`;
}

function keeperText({ keeper, state, problem }: DevStatus): string {
  if (keeper !== null)
    return `pid ${keeper.pid}${problem === null ? '' : `; ${problem.code}: ${problem.message}`}`;
  return state === 'stopped' ? 'none' : 'gone: nobody restarts daemons that end; `isobar dev` starts another';
}

const DAEMON_COLUMNS: readonly Column<DevDaemonStatus>[] = [
  { title: 'daemon', align: 'left', cell: ({ id }) => id },
  { title: 'pid', align: 'right', cell: ({ pid }) => (pid === null ? '–' : String(pid)) },
  { title: 'state', align: 'left', cell: ({ state }) => state },
  { title: 'restarts', align: 'right', cell: ({ restarts }) => String(restarts) },
];

/** Whether supervisors have joined, and what they use, is known from Nimbus alone. */
function supervisorColumns({ topologies }: DevStatus): readonly Column<DevSupervisorStatus>[] {
  if (topologies !== null) return SUPERVISOR_COLUMNS;
  return SUPERVISOR_COLUMNS.map((column): Column<DevSupervisorStatus> => {
    if (column.title === 'state')
      return { ...column, cell: ({ isWanted }) => (isWanted ? 'not known' : 'stopped') };
    return column.title === 'slots used' ? { ...column, cell: () => '–' } : column;
  });
}

const SUPERVISOR_COLUMNS: readonly Column<DevSupervisorStatus>[] = [
  { title: 'supervisor', align: 'left', cell: ({ name }) => name },
  { title: 'host', align: 'left', cell: ({ host }) => host },
  { title: 'rack', align: 'left', cell: ({ rack }) => rack },
  { title: 'state', align: 'left', cell: supervisorState },
  { title: 'slots used', align: 'right', cell: slotsUsed },
  { title: 'cores', align: 'right', cell: ({ cores, isPresent }) => (isPresent ? String(cores) : '–') },
  {
    title: 'memory',
    align: 'right',
    cell: ({ memoryBytes, isPresent }) => (isPresent ? megabytes(memoryBytes) : '–'),
  },
  { title: 'owner', align: 'left', cell: ({ owner }) => owner },
];

function supervisorState({ isWanted, isPresent }: DevSupervisorStatus): string {
  if (isPresent) return isWanted ? 'joined' : 'leaving';
  return isWanted ? 'away' : 'stopped';
}

function slotsUsed({ slots }: DevSupervisorStatus): string {
  return `${slots.filter(({ topologyId }) => topologyId !== null).length}/${slots.length}`;
}

/** What does not run as it should, and why. */
function troubles({ daemons, supervisors }: DevStatus): readonly string[] {
  const lines: string[] = [];
  for (const { id, problem, retryInMs } of daemons) {
    if (problem !== null) lines.push(`${id}${retryText(retryInMs)}: ${problem.code}: ${problem.message}`);
  }
  for (const { name, slots } of supervisors) {
    for (const { port, state, topologyId, lastProblem, restarts, retryInMs } of slots) {
      if (lastProblem === null || state === 'running') continue;
      const what = `${topologyId ?? 'no topology'}, ${counted(restarts, 'restart')}`;
      const place = `slot ${name}:${port} is ${state}${retryText(retryInMs)} (${what})`;
      lines.push(`${place}: ${lastProblem.code}: ${lastProblem.message}`);
    }
  }
  return lines.length === 0 ? [] : ['', ...lines];
}

function retryText(retryInMs: number | null): string {
  return retryInMs === null ? '' : `, tried again in ${duration(retryInMs)}`;
}

function topologiesText({ topologies }: DevStatus): string {
  if (topologies === null) return 'topologies: not known, Nimbus does not answer';
  if (topologies.length === 0) return 'no topologies';
  const texts = topologies.map(
    ({ name, status: life, workers }) => `${name} (${life}, ${counted(workers, 'worker')})`,
  );
  return `topologies: ${texts.join(', ')}`;
}
