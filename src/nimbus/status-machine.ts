/**
 * The life of a topology as users steer it: status and event → status. Pure; the table below is all there is.
 *
 *                activate   inactivate  rebalance      do-rebalance  kill      remove    startup
 *     ACTIVE       ·        INACTIVE    REBALANCING¹                 KILLED              ·
 *     INACTIVE   ACTIVE       ·         REBALANCING¹                 KILLED              ·
 *     REBALANCING                                      as before     KILLED              re-arms
 *     KILLED                                                         KILLED²   removed   re-arms
 *     DRAINING, ENDING                                               KILLED              ·
 *     FINISHED, FAILED, STOPPED                                      removed             ·
 *
 * ¹ Without a wait the new counts come into force at once and the status stays. ² With the new wait. An empty place: there is
 * no such transition, which is an error for whoever asked. Names and transitions are Storm's; it has neither the last two
 * rows nor ¹.
 *
 * A wait is stored as the moment of its beginning and its length. While the machine is not rebooted it is measured by the
 * time since the boot, over restarts of Nimbus too, so that setting the wall clock changes nothing. After a reboot, and on
 * another machine, only the wall clock is left; a wait then never becomes longer than it was.
 */
import { IsobarError, msBetween, type StoredMoment } from '../base/index.js';
import type { DesiredState, StoredWait, TopologyPhase } from '../coordination/index.js';

export type LifeStatus = Uppercase<TopologyPhase['kind']>;

export type LifeEvent =
  | { readonly kind: 'activate' }
  | { readonly kind: 'inactivate' }
  /** `waitMs` null: without a wait. */
  | { readonly kind: 'rebalance'; readonly waitMs: number | null; readonly desired: DesiredState }
  | { readonly kind: 'do-rebalance' }
  | { readonly kind: 'kill'; readonly waitMs: number }
  | { readonly kind: 'remove' }
  /** A Nimbus begins to lead. */
  | { readonly kind: 'startup' };

/** What has to happen later. */
export interface LifeTimer {
  readonly event: 'do-rebalance' | 'remove';
  readonly afterMs: number;
}

export type Transition =
  /** `desired`: what comes into force with it. */
  | { readonly kind: 'moved'; readonly phase: TopologyPhase; readonly desired?: DesiredState }
  | { readonly kind: 'stays' }
  | { readonly kind: 'refused' };

type Move = 'stay' | 'activate' | 'inactivate' | 'rebalance' | 'do-rebalance' | 'kill' | 'remove';

const ENDED = { kill: 'remove', startup: 'stay' } as const;
const AT_ITS_END = { kill: 'kill', startup: 'stay' } as const;

const TABLE: Readonly<Record<TopologyPhase['kind'], Partial<Record<LifeEvent['kind'], Move>>>> = {
  active: {
    activate: 'stay',
    inactivate: 'inactivate',
    rebalance: 'rebalance',
    kill: 'kill',
    startup: 'stay',
  },
  inactive: {
    activate: 'activate',
    inactivate: 'stay',
    rebalance: 'rebalance',
    kill: 'kill',
    startup: 'stay',
  },
  rebalancing: { 'do-rebalance': 'do-rebalance', kill: 'kill', startup: 'stay' },
  killed: { kill: 'kill', remove: 'remove', startup: 'stay' },
  draining: AT_ITS_END,
  ending: AT_ITS_END,
  finished: ENDED,
  failed: ENDED,
  stopped: ENDED,
  removed: { startup: 'stay' },
};

const STAYS: Transition = { kind: 'stays' };
const REFUSED: Transition = { kind: 'refused' };

/** What an event does to a topology in this phase. */
export function transition(phase: TopologyPhase, event: LifeEvent, now: StoredMoment): Transition {
  const move = TABLE[phase.kind][event.kind];
  if (move === undefined) return REFUSED;
  switch (move) {
    case 'stay':
      return STAYS;
    case 'activate':
      return { kind: 'moved', phase: { kind: 'active' } };
    case 'inactivate':
      return { kind: 'moved', phase: { kind: 'inactive' } };
    case 'remove':
      return { kind: 'moved', phase: { kind: 'removed' } };
    case 'kill':
      return event.kind === 'kill'
        ? { kind: 'moved', phase: { kind: 'killed', wait: { since: now, waitMs: event.waitMs } } }
        : REFUSED;
    case 'rebalance':
      return event.kind === 'rebalance' && (phase.kind === 'active' || phase.kind === 'inactive')
        ? rebalanced(phase, event, now)
        : REFUSED;
    case 'do-rebalance':
      return phase.kind === 'rebalancing'
        ? { kind: 'moved', phase: { kind: phase.previous }, desired: phase.desired }
        : REFUSED;
  }
}

function rebalanced(
  phase: TopologyPhase & { readonly kind: 'active' | 'inactive' },
  { waitMs, desired }: Extract<LifeEvent, { readonly kind: 'rebalance' }>,
  now: StoredMoment,
): Transition {
  if (waitMs === null) return { kind: 'moved', phase, desired };
  const wait: StoredWait = { since: now, waitMs };
  return { kind: 'moved', phase: { kind: 'rebalancing', previous: phase.kind, wait, desired } };
}

/** What a topology in this phase waits for; undefined: nothing. */
export function lifeTimer(phase: TopologyPhase, now: StoredMoment): LifeTimer | undefined {
  if (phase.kind === 'killed') return { event: 'remove', afterMs: remainingMs(phase.wait, now) };
  if (phase.kind === 'rebalancing') return { event: 'do-rebalance', afterMs: remainingMs(phase.wait, now) };
  return undefined;
}

/** What is left of a wait, ms: from 0 to the whole of it. */
export function remainingMs({ since, waitMs }: StoredWait, now: StoredMoment): number {
  return Math.min(waitMs, Math.max(0, waitMs - msBetween(since, now)));
}

/** The status as users see it. */
export function statusOf({ kind }: TopologyPhase): LifeStatus {
  // The type of the result says the same thing of each kind.
  return kind.toUpperCase() as LifeStatus;
}

/** The error for whoever asked for a transition that there is not. */
export function transitionIllegal(name: string, phase: TopologyPhase, event: LifeEvent): IsobarError {
  const verb = event.kind === 'inactivate' ? 'deactivate' : event.kind;
  const allowed = (['activate', 'inactivate', 'rebalance', 'kill'] as const)
    .filter((kind) => TABLE[phase.kind][kind] !== undefined)
    .map((kind) => (kind === 'inactivate' ? 'deactivate' : kind));
  return new IsobarError(
    'TRANSITION_ILLEGAL',
    `topology "${name}" is ${statusOf(phase)}: there is no ${verb} for it now`,
    {
      expected: allowed.length === 0 ? 'nothing' : `one of: ${allowed.join(', ')}`,
      found: verb,
      where: name,
    },
  );
}
