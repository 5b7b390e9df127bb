/**
 * When a topology moves from one phase to the next. Pure: reports in, phase out; never by idleness or by absence.
 *
 *     active ──► ending 0 ──► ending 1 ──► … ──► finished          sources ended, then stage by stage
 *       │ └────────────────────────────────────► finished          acking off: end marks do the stages' work
 *       └──► draining ──► finished (drained) · stopped (drain.timeout has passed)
 *     any of these, inactive, rebalancing ──► failed               no worker can run it
 *
 * What users ask for (activate, deactivate, rebalance, kill) is in `status-machine.ts`.
 *
 * Invariants
 * F1  Only current reports count: from the worker that holds the slot now, ready, and reconciled with the assignment in
 *     force. A task without one holds its topology where it is.
 * F2  A stage is over when each of its tasks has ended and has no pending tree in the same report: a task that was
 *     started again reports a new life that has not ended, and is waited for again.
 * F3  Spouts are not waited for after the first stage has begun: their trees were complete, so one that is started
 *     again has nothing left to do. What tick emits in a component is complete before the stage after it begins.
 */
import { type ErrorRecord, isSystemComponent } from '../base/index.js';
import type { FoldedHeartbeat, SlotReport, TaskReport, TopologyPhase } from '../coordination/index.js';
import type { Assignment, ComponentTasks, TopologyPlan } from '../scheduling/index.js';
import { graphStages, type TopologyDescription } from '../topology/index.js';

export interface PhaseInput {
  readonly topologyId: string;
  readonly phase: TopologyPhase;
  readonly description: TopologyDescription;
  readonly plan: Pick<TopologyPlan, 'tasks' | 'ackers'>;
  readonly assignment: Assignment | undefined;
  readonly heartbeats: readonly FoldedHeartbeat[];
  /**
   * Acking off: the counters of all tasks were the same in two reports of every worker. Without trees that is the only
   * sign that no row is under way.
   */
  readonly isAtRest: boolean;
  /** By the clock of `draining.sinceMs`. */
  readonly nowMs: number;
  readonly drainTimeoutMs: number;
}

/** The phase that holds now; the same object if nothing changes. Moves by one step: call again until it stays. */
export function advancePhase(input: PhaseInput): TopologyPhase {
  const { phase } = input;
  switch (phase.kind) {
    case 'finished':
    case 'failed':
    case 'stopped':
    case 'removed':
    case 'killed':
      return phase;
    case 'active':
    case 'inactive':
    case 'rebalancing':
    case 'draining':
    case 'ending':
      break;
  }
  const unusable = unusableProblem(input);
  if (unusable !== undefined) return { kind: 'failed', error: unusable };
  const reports = currentReports(input);
  switch (phase.kind) {
    case 'inactive':
    case 'rebalancing':
      return phase;
    case 'active':
      return afterActive(input, reports);
    case 'draining':
      return isDrained(input, reports)
        ? { kind: 'finished', drained: true }
        : input.nowMs - phase.sinceMs >= input.drainTimeoutMs
          ? { kind: 'stopped' }
          : phase;
    case 'ending': {
      const { stage, stages } = phase;
      const members = new Set(stages[stage] ?? []);
      const tasks = input.plan.tasks.filter(({ component }) => members.has(component));
      return allTasks(tasks, reports, hasEndedQuietly) ? stageOrEnd(stages, stage + 1) : phase;
    }
  }
}

/** The reports that count (F1), by task number; of two for one task that of the higher generation. */
export function currentReports(
  input: Pick<PhaseInput, 'topologyId' | 'assignment' | 'heartbeats'>,
): ReadonlyMap<number, TaskReport> {
  const { topologyId, assignment, heartbeats } = input;
  const reports = new Map<number, TaskReport>();
  const bySupervisor = new Map(heartbeats.map((heartbeat) => [heartbeat.supervisorId, heartbeat]));
  for (const { supervisor, port, executors } of assignment?.slots ?? []) {
    const slot = bySupervisor.get(supervisor)?.slots.find((one) => one.port === port);
    if (slot?.topologyId !== topologyId || slot.state !== 'running') continue;
    const { heartbeat } = slot;
    // The last words of a worker that is gone stay in a slot's report; the slot then names another one, or none.
    if (heartbeat === null || heartbeat.workerId !== slot.workerId) continue;
    if (!heartbeat.ready || heartbeat.assignmentVersion !== assignment?.version) continue;
    const held = new Set<number>();
    for (const [first, last] of executors) for (let task = first; task <= last; task++) held.add(task);
    for (const report of heartbeat.tasks) {
      if (!held.has(report.task)) continue;
      const other = reports.get(report.task);
      if (other === undefined || other.generation < report.generation) reports.set(report.task, report);
    }
  }
  return reports;
}

function afterActive(input: PhaseInput, reports: ReadonlyMap<number, TaskReport>): TopologyPhase {
  const { phase, plan, description } = input;
  if (plan.ackers === 0) {
    return allTasks(userTasks(plan), reports, ({ ended }) => ended)
      ? { kind: 'finished', drained: false }
      : phase;
  }
  return allTasks(spoutTasks(input), reports, hasEndedQuietly)
    ? stageOrEnd(graphStages(description), 0)
    : phase;
}

function isDrained(input: PhaseInput, reports: ReadonlyMap<number, TaskReport>): boolean {
  const { assignment, plan } = input;
  // Executors that have no slot do not run, so they hold nothing.
  const placed = new Set(
    (assignment?.slots ?? []).flatMap(({ executors }) => executors.map(([first]) => first)),
  );
  if (placed.size === 0) return true;
  const spouts = new Set(spoutTasks(input).map(({ component }) => component));
  for (const { executors } of assignment?.slots ?? []) {
    for (const [first, last] of executors) {
      const component = componentOf(plan.tasks, first);
      if (component === undefined || isSystemComponent(component)) continue;
      for (let task = first; task <= last; task++) {
        const report = reports.get(task);
        if (report === undefined || report.pending > 0 || report.queued > 0) return false;
        if (spouts.has(component) && !report.stopped) return false;
      }
    }
  }
  return plan.ackers > 0 || input.isAtRest;
}

function stageOrEnd(stages: readonly (readonly string[])[], stage: number): TopologyPhase {
  return stage < stages.length ? { kind: 'ending', stage, stages } : { kind: 'finished', drained: false };
}

function unusableProblem({ topologyId, heartbeats }: PhaseInput): ErrorRecord | undefined {
  const isUnusable = (slot: SlotReport): boolean =>
    slot.topologyId === topologyId && slot.state === 'unusable';
  for (const { slots } of heartbeats) {
    const problem = slots.find(isUnusable)?.lastProblem;
    if (problem !== undefined && problem !== null) return problem;
  }
  return undefined;
}

function hasEndedQuietly({ ended, pending }: TaskReport): boolean {
  return ended && pending === 0;
}

function allTasks(
  components: readonly ComponentTasks[],
  reports: ReadonlyMap<number, TaskReport>,
  holds: (report: TaskReport) => boolean,
): boolean {
  for (const { first, last } of components) {
    for (let task = first; task <= last; task++) {
      const report = reports.get(task);
      if (report === undefined || !holds(report)) return false;
    }
  }
  return true;
}

function spoutTasks({
  plan,
  description,
}: Pick<PhaseInput, 'plan' | 'description'>): readonly ComponentTasks[] {
  const spouts = new Set(description.components.filter(({ kind }) => kind === 'spout').map(({ id }) => id));
  return plan.tasks.filter(({ component }) => spouts.has(component));
}

function userTasks({ tasks }: Pick<TopologyPlan, 'tasks'>): readonly ComponentTasks[] {
  return tasks.filter(({ component }) => !isSystemComponent(component));
}

function componentOf(tasks: readonly ComponentTasks[], task: number): string | undefined {
  return tasks.find(({ first, last }) => first <= task && task <= last)?.component;
}
