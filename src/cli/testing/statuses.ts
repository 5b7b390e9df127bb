/** Statuses for tests of what is shown. */
import type { ClusterStatus, ComponentStatus, TopologyStatus, WorkerStatus } from '../../api/index.js';

export function component(
  id: string,
  kind: 'spout' | 'bolt',
  parts: Partial<ComponentStatus> = {},
): ComponentStatus {
  return {
    component: id,
    kind,
    executors: 2,
    tasks: 2,
    emitted: 0,
    transferred: 0,
    executed: 0,
    acked: 0,
    failed: 0,
    replayed: 0,
    deadLetters: 0,
    unreplayable: 0,
    busyMs: 0,
    blockedMs: 0,
    queued: 0,
    pending: 0,
    endedTasks: 0,
    executeMicros: [],
    completeMicros: [],
    failures: {},
    replays: {},
    counters: {},
    perTask: [],
    ...parts,
  };
}

export function worker(port: number, parts: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    supervisorId: 'local',
    host: 'localhost',
    port,
    state: 'running',
    workerId: `w${port}`,
    pid: port + 1000,
    generation: 1,
    startedMs: 0,
    isReady: true,
    assignmentVersion: 1,
    executors: 4,
    cpuMicros: 0,
    rssBytes: 120e6,
    threads: [],
    restarts: 0,
    lastProblem: null,
    lastProblemMs: null,
    droppedLogRecords: 0,
    heartbeatAgeMs: 0,
    ...parts,
  };
}

export function topology(parts: Partial<TopologyStatus> = {}): TopologyStatus {
  return {
    id: 'words-1-99',
    name: 'words',
    submittedMs: 0,
    phase: { kind: 'active' },
    isReady: true,
    isSettled: false,
    workersAsked: 1,
    ackers: 1,
    notes: [],
    assignmentVersion: 1,
    executors: 8,
    unplacedExecutors: 0,
    unplacedReason: null,
    problems: [],
    components: [],
    workers: [worker(6700)],
    totals: { emitted: 0, acked: 0, failed: 0, replayed: 0, pending: 0, executed: 0, deadLetters: 0 },
    errors: [],
    lostStates: [],
    deadLetterFiles: [],
    oldestPending: null,
    lastMove: null,
    ...parts,
  };
}

export function cluster(atMs: number, ...topologies: readonly TopologyStatus[]): ClusterStatus {
  return { atMs, nimbusId: 'nimbus', supervisors: [], topologies, coordinatorProblem: null };
}
