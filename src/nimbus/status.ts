/**
 * What Nimbus tells about the cluster: the types that the command line and the dashboard read, and how they are put
 * together from records, assignments, heartbeats and totals. Pure.
 */
import type { ErrorRecord, SketchPairs } from '../base/index.js';
import {
  type FoldedHeartbeat,
  isTerminal,
  type LostState,
  type OldestPending,
  type ReportedError,
  type SupervisorRecord,
  type TaskReport,
  type ThreadReport,
  type TopologyPhase,
  type TopologyRecord,
} from '../coordination/index.js';
import type { Assignment, TopologyPlan } from '../scheduling/index.js';
import type { TopologyDescription } from '../topology/index.js';
import type { CoordinatorProblem } from './coordinator-check.js';
import type { ComponentTotals, TotalsBook } from './totals.js';

export interface ClusterStatus {
  /** When this was put together, ms since the epoch: rates are differences of totals over differences of this. */
  readonly atMs: number;
  readonly nimbusId: string;
  readonly supervisors: readonly SupervisorStatus[];
  /** In order of submission; those that have ended are kept for a while. */
  readonly topologies: readonly TopologyStatus[];
  /** Why the coordinator cannot be asked: all else is as it was known last. null: it can. */
  readonly coordinatorProblem: CoordinatorProblem | null;
}

export interface SupervisorStatus {
  readonly id: string;
  readonly host: string;
  readonly rack: string;
  /** Its session lives. One that is away still reports nothing new, and its workers go on. */
  readonly isPresent: boolean;
  readonly cores: number;
  readonly memoryBytes: number;
  /** The user account that it runs as. */
  readonly owner: string;
  readonly startedMs: number;
  readonly slots: readonly SlotStatus[];
}

export interface SlotStatus {
  readonly port: number;
  /** As the supervisor names it: empty, localising, launching, starting, running, stopping, backing-off, unusable. */
  readonly state: string;
  readonly topologyId: string | null;
  readonly workerId: string | null;
  readonly pid: number | null;
  readonly restarts: number;
  readonly lastProblem: ErrorRecord | null;
  /** Until the next attempt to start a worker, when the supervisor reported it, ms; null: none is waited for. */
  readonly retryInMs: number | null;
}

export interface TopologyStatus {
  readonly id: string;
  readonly name: string;
  readonly submittedMs: number;
  readonly phase: TopologyPhase;
  /** Every executor runs in a worker that is ready and has reconciled with the assignment in force. */
  readonly isReady: boolean;
  /** It has ended and no worker of it is left: the totals are final. */
  readonly isSettled: boolean;
  readonly workersAsked: number;
  /** Acker executors; 0: acking is off. */
  readonly ackers: number;
  /** Sentences: what was adjusted, what the description warns of. */
  readonly notes: readonly string[];
  readonly assignmentVersion: number;
  readonly executors: number;
  readonly unplacedExecutors: number;
  readonly unplacedReason: string | null;
  /** Why it cannot be scheduled or run for now, worst first. */
  readonly problems: readonly ErrorRecord[];
  /** In the order of the description. */
  readonly components: readonly ComponentStatus[];
  /** By supervisor and port: slots that are assigned to it or still hold a worker of it. */
  readonly workers: readonly WorkerStatus[];
  readonly totals: TopologyTotals;
  readonly errors: readonly ReportedError[];
  readonly lostStates: readonly LostState[];
  readonly deadLetterFiles: readonly string[];
  readonly oldestPending: OldestPending | null;
  /** The last planned move since this Nimbus leads, or the one under way. */
  readonly lastMove: MoveStatus | null;
}

/** A planned move of tasks. */
export interface MoveStatus {
  /** `preparing`: workers get ready. `moving`: tasks are on their way. `cancelled`: everything stays as it was. */
  readonly step: 'preparing' | 'moving' | 'done' | 'cancelled';
  readonly tasks: number;
  /** Sentences: what stayed where it was, or went back, and why. */
  readonly problems: readonly string[];
}

/** Over all spouts. */
export interface TopologyTotals {
  readonly emitted: number;
  readonly acked: number;
  readonly failed: number;
  readonly replayed: number;
  readonly pending: number;
  /** Rows that all bolts have executed. */
  readonly executed: number;
  /** Over all components. */
  readonly deadLetters: number;
}

/** Totals over all lives of its tasks, and depths now. */
export interface ComponentStatus extends ComponentTotals {
  readonly kind: 'spout' | 'bolt';
  readonly executors: number;
  readonly tasks: number;
  readonly queued: number;
  readonly pending: number;
  readonly endedTasks: number;
  readonly perTask: readonly TaskReport[];
}

export interface WorkerStatus {
  readonly supervisorId: string;
  readonly host: string;
  readonly port: number;
  readonly state: string;
  readonly workerId: string | null;
  readonly pid: number | null;
  readonly generation: number | null;
  readonly startedMs: number | null;
  readonly isReady: boolean;
  readonly assignmentVersion: number;
  readonly executors: number;
  readonly cpuMicros: number;
  readonly rssBytes: number;
  readonly threads: readonly ThreadReport[];
  readonly restarts: number;
  readonly lastProblem: ErrorRecord | null;
  /** When that was, ms since the epoch; null: there was none, or its supervisor does not say. */
  readonly lastProblemMs: number | null;
  /** Records that its log dropped: it could not be written, or they came too fast. */
  readonly droppedLogRecords: number;
  /** Age of its last heartbeat at its supervisor when that reported it, by the wall clocks of both; null: none yet. */
  readonly heartbeatAgeMs: number | null;
}

export interface TopologyFacts {
  readonly record: TopologyRecord;
  readonly description: TopologyDescription | undefined;
  readonly plan: TopologyPlan | undefined;
  readonly assignment: Assignment | undefined;
  readonly totals: TotalsBook;
  readonly notes: readonly string[];
  readonly problems: readonly ErrorRecord[];
  readonly unplacedExecutors: number;
  readonly unplacedReason: string | null;
  readonly lastMove: MoveStatus | null;
}

const NO_SKETCH: SketchPairs = [];

export function supervisorStatuses(
  supervisors: readonly SupervisorRecord[],
  heartbeats: readonly FoldedHeartbeat[],
): readonly SupervisorStatus[] {
  const reports = new Map(heartbeats.map((heartbeat) => [heartbeat.supervisorId, heartbeat]));
  const present = supervisors.map((record): SupervisorStatus => {
    const { ports: _ports, ...rest } = record;
    return { ...rest, isPresent: true, slots: slotStatuses(reports.get(record.id)) };
  });
  const known = new Set(supervisors.map(({ id }) => id));
  const away = heartbeats
    .filter(({ supervisorId }) => !known.has(supervisorId))
    .map(
      (heartbeat): SupervisorStatus => ({
        id: heartbeat.supervisorId,
        host: '',
        rack: '',
        isPresent: false,
        cores: 0,
        memoryBytes: 0,
        owner: '',
        startedMs: 0,
        slots: slotStatuses(heartbeat),
      }),
    );
  return [...present, ...away].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function slotStatuses(heartbeat: FoldedHeartbeat | undefined): readonly SlotStatus[] {
  return (heartbeat?.slots ?? []).map(
    ({ port, state, topologyId, workerId, pid, restarts, lastProblem, retryInMs }): SlotStatus => ({
      port,
      state,
      topologyId,
      workerId,
      pid,
      restarts,
      lastProblem,
      retryInMs: retryInMs ?? null,
    }),
  );
}

export function topologyStatus(
  facts: TopologyFacts,
  heartbeats: readonly FoldedHeartbeat[],
  wallMs: number,
): TopologyStatus {
  const { record, plan, description, assignment, totals } = facts;
  const workers = workerStatuses(record.id, assignment, heartbeats, wallMs);
  const tasks = newestReports(record.id, heartbeats);
  const components = componentStatuses(facts, tasks);
  const executors = plan?.executors.length ?? 0;
  const placed = (assignment?.slots ?? []).reduce((sum, slot) => sum + slot.executors.length, 0);
  const hasEnded = isTerminal(record.phase);
  return {
    id: record.id,
    name: record.name,
    submittedMs: record.submittedMs,
    phase: record.phase,
    isReady:
      !hasEnded &&
      executors > 0 &&
      placed === executors &&
      workers.every((worker) => worker.isReady && worker.assignmentVersion === assignment?.version),
    isSettled: hasEnded && workers.length === 0,
    workersAsked: plan?.topologyWorkers ?? 0,
    ackers: plan?.ackers ?? 0,
    notes: [...(description?.warnings ?? []), ...(plan?.adjustments ?? []), ...facts.notes],
    assignmentVersion: assignment?.version ?? 0,
    executors,
    unplacedExecutors: facts.unplacedExecutors,
    unplacedReason: facts.unplacedReason,
    problems: [
      ...facts.problems,
      ...workers.flatMap(({ lastProblem, isReady }) =>
        lastProblem === null || isReady ? [] : [lastProblem],
      ),
    ],
    components,
    workers,
    totals: topologyTotals(components),
    errors: totals.errors(),
    lostStates: totals.lostStates(),
    deadLetterFiles: totals.deadLetterFiles(),
    oldestPending: hasEnded ? null : oldestPending(record.id, heartbeats),
    lastMove: facts.lastMove,
  };
}

function workerStatuses(
  topologyId: string,
  assignment: Assignment | undefined,
  heartbeats: readonly FoldedHeartbeat[],
  wallMs: number,
): readonly WorkerStatus[] {
  const assigned = new Map(
    (assignment?.slots ?? []).map((slot) => [`${slot.supervisor}:${slot.port}`, slot]),
  );
  const rows = new Map<string, WorkerStatus>();
  for (const { supervisorId, slots } of heartbeats) {
    for (const slot of slots) {
      const key = `${supervisorId}:${slot.port}`;
      const place = assigned.get(key);
      if (slot.topologyId !== topologyId || (place === undefined && slot.workerId === null)) continue;
      const heartbeat = slot.heartbeat?.workerId === slot.workerId ? slot.heartbeat : null;
      rows.set(key, {
        supervisorId,
        host: place?.host ?? '',
        port: slot.port,
        state: slot.state,
        workerId: slot.workerId,
        pid: slot.pid,
        generation: heartbeat?.generation ?? null,
        startedMs: heartbeat?.startedMs ?? null,
        isReady: slot.state === 'running' && heartbeat?.ready === true,
        assignmentVersion: heartbeat?.assignmentVersion ?? 0,
        executors: place?.executors.length ?? 0,
        cpuMicros: heartbeat?.cpuMicros ?? 0,
        rssBytes: heartbeat?.rssBytes ?? 0,
        threads: heartbeat?.threads ?? [],
        restarts: slot.restarts,
        lastProblem: slot.lastProblem,
        lastProblemMs: slot.lastProblemMs ?? null,
        droppedLogRecords: heartbeat?.droppedLogRecords ?? 0,
        heartbeatAgeMs:
          heartbeat === null || slot.heartbeatMs === null ? null : Math.max(0, wallMs - slot.heartbeatMs),
      });
    }
  }
  for (const [key, { supervisor, host, port, executors }] of assigned) {
    if (rows.has(key)) continue;
    rows.set(key, {
      supervisorId: supervisor,
      host,
      port,
      state: 'assigned',
      workerId: null,
      pid: null,
      generation: null,
      startedMs: null,
      isReady: false,
      assignmentVersion: 0,
      executors: executors.length,
      cpuMicros: 0,
      rssBytes: 0,
      threads: [],
      restarts: 0,
      lastProblem: null,
      lastProblemMs: null,
      droppedLogRecords: 0,
      heartbeatAgeMs: null,
    });
  }
  return [...rows.values()].sort((a, b) =>
    a.supervisorId === b.supervisorId ? a.port - b.port : a.supervisorId < b.supervisorId ? -1 : 1,
  );
}

/** Last report of each task by a worker that is still there; of two the higher generation. */
function newestReports(
  topologyId: string,
  heartbeats: readonly FoldedHeartbeat[],
): ReadonlyMap<number, TaskReport> {
  const reports = new Map<number, TaskReport>();
  for (const { slots } of heartbeats) {
    for (const { heartbeat, workerId } of slots) {
      if (heartbeat?.topologyId !== topologyId || heartbeat.workerId !== workerId) continue;
      for (const report of heartbeat.tasks) {
        const other = reports.get(report.task);
        if (other === undefined || other.generation <= report.generation) reports.set(report.task, report);
      }
    }
  }
  return reports;
}

function componentStatuses(
  facts: TopologyFacts,
  tasks: ReadonlyMap<number, TaskReport>,
): readonly ComponentStatus[] {
  const { record, description, plan, totals } = facts;
  const executorCounts = new Map<string, number>();
  for (const { component } of plan?.executors ?? []) {
    executorCounts.set(component, (executorCounts.get(component) ?? 0) + 1);
  }
  const sums = new Map(totals.components().map((component) => [component.component, component]));
  const numbersOf = new Map(plan?.tasks.map((numbers) => [numbers.component, numbers]));
  return (description?.components ?? []).map(({ id, kind }): ComponentStatus => {
    const numbers = numbersOf.get(id);
    const perTask: TaskReport[] = [];
    for (let task = numbers?.first ?? 1; task <= (numbers?.last ?? 0); task++) {
      const report = tasks.get(task);
      if (report !== undefined) perTask.push(report);
    }
    return {
      ...(sums.get(id) ?? noTotals(id)),
      kind,
      executors: executorCounts.get(id) ?? 0,
      tasks: numbers === undefined ? 0 : numbers.last - numbers.first + 1,
      // The last reports of workers that are gone may be older than what emptied their queues.
      queued: isTerminal(record.phase) ? 0 : perTask.reduce((sum, { queued }) => sum + queued, 0),
      pending: perTask.reduce((sum, { pending }) => sum + pending, 0),
      endedTasks: perTask.filter(({ ended }) => ended).length,
      perTask,
    };
  });
}

function noTotals(component: string): ComponentTotals {
  return {
    component,
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
    executeMicros: NO_SKETCH,
    completeMicros: NO_SKETCH,
    failures: {},
    replays: {},
    counters: {},
  };
}

function topologyTotals(components: readonly ComponentStatus[]): TopologyTotals {
  const spouts = components.filter(({ kind }) => kind === 'spout');
  const bolts = components.filter(({ kind }) => kind === 'bolt');
  const sum = (of: readonly ComponentStatus[], value: (component: ComponentStatus) => number): number =>
    of.reduce((total, component) => total + value(component), 0);
  return {
    emitted: sum(spouts, ({ emitted }) => emitted),
    acked: sum(spouts, ({ acked }) => acked),
    failed: sum(spouts, ({ failed }) => failed),
    replayed: sum(spouts, ({ replayed }) => replayed),
    pending: sum(spouts, ({ pending }) => pending),
    executed: sum(bolts, ({ executed }) => executed),
    deadLetters: sum(components, ({ deadLetters }) => deadLetters),
  };
}

function oldestPending(topologyId: string, heartbeats: readonly FoldedHeartbeat[]): OldestPending | null {
  let oldest: OldestPending | null = null;
  for (const { slots } of heartbeats) {
    for (const { heartbeat, workerId } of slots) {
      if (heartbeat?.topologyId !== topologyId || heartbeat.workerId !== workerId) continue;
      const candidate = heartbeat.oldestPending;
      if (candidate !== null && (oldest === null || candidate.ageMs > oldest.ageMs)) oldest = candidate;
    }
  }
  return oldest;
}
