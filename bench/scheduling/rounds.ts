/** Whole scheduling rounds over a snapshot: what Nimbus decides from stored assignments and heartbeats. */
import type { Assignment, TopologyPlan } from '../../build/scheduling/index.js';
import type { ClusterSnapshot, ClusterTopology, Library, SchedulingOutcome, Strategy } from './library.js';

const NOW_MS = 1_000_000;

export interface Rounds {
  /** The round that places all; what it stores, by topology. @throws Error if a topology was refused. */
  readonly first: () => ReadonlyMap<string, Assignment>;
  readonly again: (stored: ReadonlyMap<string, Assignment>) => SchedulingOutcome;
}

export function roundOf(
  { scheduling, settings }: Library,
  snapshot: ClusterSnapshot,
  strategy: Strategy,
): Rounds {
  const topologies = snapshot.topologies.map((topology) => ({ facts: topology, plan: planOf(topology) }));
  const round = (nowMs: number, stored: ReadonlyMap<string, Assignment>): SchedulingOutcome =>
    scheduling.schedulingRound({
      nowMs,
      supervisors: snapshot.supervisors,
      topologies: topologies.map(({ facts, plan }) => ({
        id: facts.id,
        facts,
        plan,
        settings,
        stored: stored.get(facts.id),
        lastHeartbeatMs: () => nowMs,
      })),
      strategy,
    });
  return {
    first: () => {
      const assignments = new Map<string, Assignment>();
      for (const outcome of round(NOW_MS, new Map()).topologies) {
        if (outcome.kind === 'failed') throw new Error(outcome.error.message);
        if (outcome.kind === 'changed') assignments.set(outcome.topologyId, outcome.assignment);
      }
      return assignments;
    },
    // Long after the launch, so that heartbeats decide who lives.
    again: (stored) => round(NOW_MS + 3_600_000, stored),
  };
}

function planOf({ workers, executors, components = [] }: ClusterTopology): TopologyPlan {
  const tasks: { component: string; first: number; last: number }[] = [];
  for (const { component, range } of executors) {
    const last = tasks.at(-1);
    if (last?.component === component) last.last = range[1];
    else tasks.push({ component, first: range[0], last: range[1] });
  }
  return { topologyWorkers: workers, tasks, executors, components, ackers: 0, adjustments: [] };
}
