/** The line of one topology in a list: what is wanted, what there is, and what it waits for. Pure. */
import type { ErrorRecord, StoredMoment } from '../base/index.js';
import { isTerminal, type TopologyRecord } from '../coordination/index.js';
import type { Report } from './cluster-view.js';
import type { CoordinatorProblem } from './coordinator-check.js';
import type { KnownTopology } from './known-topology.js';
import { type LifeStatus, lifeTimer, statusOf } from './status-machine.js';
import { heartbeatOf, workerTrouble } from './worker-trouble.js';

/** How many are wanted, and how many run: workers that are ready, and executors in them. */
export interface DesiredAndActual {
  readonly desired: number;
  readonly actual: number;
}

/** Decided by whoever asked for it last, or by what happened last. */
export type LastChange = 'submitted' | 'rebalanced' | 'status';

export interface TopologySummary {
  readonly id: string;
  readonly name: string;
  /** FAILED also while workers go on whose code is lost: none of them could be started again. */
  readonly status: LifeStatus;
  readonly submittedMs: number;
  /** ms since its submission. */
  readonly uptimeMs: number;
  readonly lastChange: LastChange;
  /** When that was, ms since the epoch. */
  readonly lastChangeMs: number;
  readonly workers: DesiredAndActual;
  readonly executors: DesiredAndActual;
  readonly tasks: number;
  /** A rebalance is not complete: it waits, moves something, or lacks slots. */
  readonly isRebalancing: boolean;
  /** Time until it is rebalanced or removed, ms; null: it waits for nothing. */
  readonly waitLeftMs: number | null;
  /** What keeps it from running as it should, worst first. */
  readonly problem: SummaryProblem | null;
}

export interface SummaryProblem extends Pick<ErrorRecord, 'code' | 'message'> {
  /** Since when it is so, or when it was seen last, ms since the epoch; null: nobody knows. */
  readonly atMs: number | null;
}

export interface ClusterSummary {
  readonly atMs: number;
  readonly nimbusId: string;
  /** Supervisors that are there. */
  readonly supervisors: number;
  readonly slots: { readonly total: number; readonly used: number };
  /** In order of name, then of submission. */
  readonly topologies: readonly TopologySummary[];
  /** Why the coordinator cannot be asked: nothing can be changed meanwhile, and all else is as it was known last. null: it can. */
  readonly coordinatorProblem: CoordinatorProblem | null;
}

export function topologySummary(
  known: KnownTopology,
  reports: readonly Report[],
  now: StoredMoment,
): TopologySummary {
  const { record, loaded, assignment } = known;
  const { change, atMs } = lastChange(record);
  const hasEnded = isTerminal(record.phase);
  const own = reports.filter(({ slot }) => slot.topologyId === record.id);
  const ready = own.flatMap((report) => {
    const heartbeat = report.slot.state === 'running' ? heartbeatOf(report) : null;
    return heartbeat?.ready === true ? [heartbeat] : [];
  });
  const executors = ready.reduce(
    (sum, { threads }) => sum + threads.reduce((count, thread) => count + thread.executors.length, 0),
    0,
  );
  const wanted = hasEnded ? undefined : loaded?.plan;
  return {
    id: record.id,
    name: record.name,
    status: known.isCodeLost && !hasEnded ? 'FAILED' : statusOf(record.phase),
    submittedMs: record.submittedMs,
    uptimeMs: Math.max(0, now.wallMs - record.submittedMs),
    lastChange: change,
    lastChangeMs: atMs,
    workers: { desired: wanted?.topologyWorkers ?? 0, actual: ready.length },
    executors: { desired: wanted?.executors.length ?? 0, actual: executors },
    tasks: loaded?.plan.tasks.at(-1)?.last ?? 0,
    isRebalancing:
      !hasEnded &&
      (record.phase.kind === 'rebalancing' ||
        known.rebalance !== undefined ||
        (record.desired !== undefined && !hasConverged(assignment?.version ?? 0, reports))),
    waitLeftMs: lifeTimer(record.phase, now)?.afterMs ?? null,
    problem: problemOf(known, own, now.wallMs),
  };
}

function lastChange({ submittedMs, phaseSinceMs, desired }: TopologyRecord): {
  readonly change: LastChange;
  readonly atMs: number;
} {
  const rebalancedMs = desired?.changedMs ?? -Infinity;
  const statusMs = phaseSinceMs ?? submittedMs;
  if (rebalancedMs >= statusMs) return { change: 'rebalanced', atMs: rebalancedMs };
  return statusMs > submittedMs
    ? { change: 'status', atMs: statusMs }
    : { change: 'submitted', atMs: submittedMs };
}

/** Do all workers that report run what is assigned now? */
function hasConverged(version: number, reports: readonly Report[]): boolean {
  return reports.every(({ slot: { heartbeat, workerId } }) => {
    const isCurrent = heartbeat !== null && heartbeat.workerId === workerId;
    return isCurrent && heartbeat.ready && heartbeat.assignmentVersion === version;
  });
}

function problemOf(
  known: KnownTopology,
  reports: readonly Report[],
  wallMs: number,
): TopologySummary['problem'] {
  const { phase, phaseSinceMs } = known.record;
  if (phase.kind === 'failed') return problemAt(phase.error, phaseSinceMs ?? null);
  if (known.loadProblem !== undefined) return problemAt(known.loadProblem, known.loadProblemMs);
  if (known.roundProblem !== undefined) return problemAt(known.roundProblem, known.roundProblemMs);
  if (isTerminal(phase)) return null;
  if (known.unplacedReason !== null) {
    return { code: 'NO_FREE_SLOT', message: known.unplacedReason, atMs: known.unplacedMs };
  }
  for (const { slot } of reports) {
    const isDown = slot.state !== 'running' && slot.lastProblem !== null;
    if (isDown) return problemAt(slot.lastProblem, slot.lastProblemMs ?? null);
  }
  const settings = known.loaded?.settings;
  return settings === undefined ? null : workerTrouble(reports, settings, wallMs);
}

function problemAt({ code, message }: ErrorRecord, atMs: number | null): SummaryProblem {
  return { code, message, atMs };
}
