/** What the life of a topology makes of its record by itself: timers that are over, phases that have been gone through, code that is lost. Pure. */
import type { StoredMoment } from '../base/index.js';
import {
  type FoldedHeartbeat,
  isTerminal,
  type TopologyPhase,
  type TopologyRecord,
} from '../coordination/index.js';
import type { KnownTopology } from './known-topology.js';
import { advancePhase } from './phases.js';
import { lifeTimer, transition } from './status-machine.js';

export interface Surroundings {
  /** Of all supervisors that have reported. */
  readonly heartbeats: readonly FoldedHeartbeat[];
  /** Has the machine of this supervisor gone? What it said last of rows does not hold any more then. */
  readonly isGone: (supervisorId: string) => boolean;
  /** Nimbus's own time, ms. */
  readonly nowMs: number;
  /** Of the clock, for timers that outlive this process. */
  readonly moment: StoredMoment;
}

export interface NextRecord {
  /** The record that follows now; undefined: it stays. */
  readonly record?: TopologyRecord;
  /** When to look again, ms of Nimbus's own time; undefined: when something happens. */
  readonly lookAgainMs?: number;
}

export function nextRecord(
  known: KnownTopology,
  { heartbeats, isGone, nowMs, moment }: Surroundings,
): NextRecord {
  const { record, loaded } = known;
  const since = (phase: TopologyPhase): TopologyRecord => ({
    ...record,
    phase,
    phaseSinceMs: Math.floor(moment.wallMs),
  });
  const timer = lifeTimer(record.phase, moment);
  if (timer !== undefined && timer.afterMs <= 0) {
    const moved = transition(record.phase, { kind: timer.event }, moment);
    if (moved.kind !== 'moved') return {};
    const { desired } = moved;
    // What was asked for comes into force now.
    const inForce =
      desired === undefined ? {} : { desired: { ...desired, changedMs: Math.floor(moment.wallMs) } };
    return { record: { ...since(moved.phase), ...inForce } };
  }
  const again = timer === undefined ? {} : { lookAgainMs: nowMs + timer.afterMs };
  if (isTerminal(record.phase)) return again;
  if (known.isCodeLost && hasNoWorker(known, heartbeats))
    return { ...again, record: since({ kind: 'failed', error: known.loadProblem! }) };
  if (loaded === undefined) return again;
  const drainTimeoutMs = loaded.settings['drain.timeout'];
  const phase = advancePhase({
    topologyId: record.id,
    phase: record.phase,
    description: loaded.description,
    plan: loaded.plan,
    assignment: known.assignment,
    heartbeats: heartbeats.filter(({ supervisorId }) => !isGone(supervisorId)),
    isAtRest: known.isAtRest,
    nowMs,
    drainTimeoutMs,
  });
  if (phase !== record.phase) return { ...again, record: since(phase) };
  return phase.kind === 'draining' ? { lookAgainMs: phase.sinceMs + drainTimeoutMs } : again;
}

/** Do the supervisors of all its slots say that no worker of it is there? */
function hasNoWorker({ id, assignment }: KnownTopology, heartbeats: readonly FoldedHeartbeat[]): boolean {
  const reporting = new Map(heartbeats.map((one) => [one.supervisorId, one.slots]));
  return (assignment?.slots ?? []).every(({ supervisor, port }) => {
    const slots = reporting.get(supervisor);
    const slot = slots?.find((one) => one.port === port);
    return slots !== undefined && (slot?.topologyId !== id || slot.workerId === null);
  });
}
