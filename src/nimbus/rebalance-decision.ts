/** What becomes of a topology whose rebalance was asked for: checked, planned, previewed. Writes nothing. */
import { type ErrorRecord, IsobarError, type Settings, type StoredMoment } from '../base/index.js';
import {
  type Assignment,
  planTopology,
  type RoundTopology,
  type TopologyOutcome,
} from '../scheduling/index.js';
import type { KnownTopology } from './known-topology.js';
import { placementChanges } from './placement-changes.js';
import {
  checkRebalance,
  checkResources,
  desiredAfter,
  type RebalanceRequest,
  type RebalanceResult,
} from './rebalance.js';
import { type LifeEvent, statusOf, transition, transitionIllegal } from './status-machine.js';
import { type Changed, phaseSinceMs } from './topology-requests.js';

export interface RebalanceSurroundings {
  /** The cluster's. */
  readonly settings: Settings;
  readonly now: StoredMoment;
  /** What a round would decide about the topology. */
  readonly preview: (as: Pick<RoundTopology, 'plan' | 'rebalance'>) => Promise<TopologyOutcome>;
}

/**
 * The record that follows from a request, and what it would come to.
 *
 * @throws TRANSITION_ILLEGAL, PARALLELISM_ILLEGAL, COMPONENT_NOT_FOUND, RESOURCES_NOT_HEEDED, TOO_MANY_WORKERS, TOO_MANY_EXECUTORS, and
 *   why it could not be loaded
 */
export async function decideRebalance(
  name: string,
  known: KnownTopology,
  request: RebalanceRequest,
  { settings: cluster, now, preview }: RebalanceSurroundings,
): Promise<Changed<RebalanceResult>> {
  const { record, loaded } = known;
  const wallMs = Math.floor(now.wallMs);
  const before = record.phase.kind === 'rebalancing' ? record.phase.desired : record.desired;
  const isRepeated = request.requestId !== undefined && before?.requestId === request.requestId;
  const desired = isRepeated ? before : desiredAfter(before, request, wallMs);
  const event: LifeEvent = { kind: 'rebalance', waitMs: request.waitMs, desired };
  const moved = isRepeated ? undefined : transition(record.phase, event, now);
  if (moved?.kind === 'refused') throw transitionIllegal(name, record.phase, event);
  if (loaded === undefined) throw IsobarError.from(known.loadProblem ?? notLoaded(known.id));
  const { description, settings } = loaded;
  checkRebalance(
    request,
    loaded.plan.tasks.map(({ component }) => component),
    { asStorm: cluster['scheduling.compatibility'].includes('storm') },
  );
  checkResources(request, cluster['scheduling.strategy']);
  const plan = planTopology(description, settings, desired);
  const { revision, placement } = desired;
  const outcome = await preview({ plan, rebalance: { revision, placement } });
  const after = outcome.kind === 'changed' ? outcome.assignment : known.assignment;
  const phase = moved?.kind === 'moved' ? moved.phase : record.phase;
  const result: RebalanceResult = {
    topologyId: known.id,
    status: statusOf(phase),
    revision,
    waitMs: phase.kind === 'rebalancing' ? phase.wait.waitMs : null,
    workers: plan.topologyWorkers,
    executors: countExecutors(plan.executors),
    notes: [...plan.adjustments, ...workersNote(plan.topologyWorkers, after)],
    changes: placementChanges(known.assignment, after),
    unplacedReason: outcome.unplacedReason,
  };
  if (request.preview || moved?.kind !== 'moved') return { result };
  return {
    record: {
      ...record,
      phase,
      phaseSinceMs: phase === record.phase ? phaseSinceMs(record) : wallMs,
      ...(moved.desired === undefined ? {} : { desired: moved.desired }),
    },
    result,
  };
}

/** What becomes of workers that are more than there are executors or slots for. */
function workersNote(wanted: number, after: Assignment | undefined): readonly string[] {
  const placed = (after?.slots ?? []).filter(({ executors }) => executors.length > 0).length;
  if (placed === 0 || placed >= wanted) return [];
  return [`Of the ${wanted} workers that are wanted ${placed} have a slot and executors.`];
}

function countExecutors(
  executors: readonly { readonly component: string }[],
): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const { component } of executors) counts.set(component, (counts.get(component) ?? 0) + 1);
  return Object.fromEntries(counts);
}

export function notLoaded(topologyId: string): ErrorRecord {
  return { code: 'TOPOLOGY_CODE_LOST', message: `topology ${topologyId} is not loaded`, details: {} };
}
