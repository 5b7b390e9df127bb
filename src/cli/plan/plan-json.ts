/** The JSON of `isobar plan`, as docs/plan.md says. Pure. */
import {
  type ClusterPlan,
  type Explanation,
  PLAN_RULES,
  type PlacementMetrics,
  type SlotTimeline,
} from '../../scheduling/index.js';

/** Raised when a field changes its meaning. */
const FORMAT = 1;

export function planJson(plan: ClusterPlan, notes: readonly string[]): object {
  const { strategy, rounds, isSettled, before, after, moves, lacks, warnings } = plan;
  const rules = new Set(moves.flatMap(({ left, chosen }) => [left, chosen]).filter((rule) => rule !== null));
  return {
    type: 'plan',
    format: FORMAT,
    strategy,
    rounds,
    isSettled,
    before: metricsJson(before),
    after: metricsJson(after),
    topologies: topologiesJson(plan),
    moves,
    rules: Object.fromEntries([...rules].map((rule) => [rule, PLAN_RULES[rule]])),
    lacks,
    warnings,
    notes: [...plan.notes, ...notes],
  };
}

export function compareJson(plans: readonly ClusterPlan[]): object {
  return {
    type: 'plan-comparison',
    format: FORMAT,
    plans: plans.map(({ strategy, rounds, isSettled, before, after, moves, lacks, warnings }) => ({
      strategy,
      rounds,
      isSettled,
      before: metricsJson(before),
      after: metricsJson(after),
      unplacedExecutors: lacks.reduce((sum, { executors }) => sum + executors.length, 0),
      movedExecutors: moves
        .filter(({ from }) => from !== null)
        .reduce((sum, { executors }) => sum + executors.length, 0),
      warnings: warnings.length,
    })),
  };
}

export function explainJson({ strategy }: ClusterPlan, explanation: Explanation): object {
  return { type: 'plan-explanation', format: FORMAT, strategy, ...explanation };
}

export function timelineJson({ after, ...rest }: SlotTimeline): object {
  return { type: 'plan-timeline', format: FORMAT, ...rest, after: metricsJson(after) };
}

function metricsJson({ machineLoad, workerLoad, classLoads, ...rest }: PlacementMetrics): object {
  const levels = ({ max, min, mean }: PlacementMetrics['machineLoad']): object => ({
    max,
    min,
    mean,
    maxOverMean: mean === 0 ? null : max / mean,
  });
  return {
    ...rest,
    machineLoad: levels(machineLoad),
    workerLoad: levels(workerLoad),
    classLoads: Object.fromEntries(Object.entries(classLoads).map(([name, load]) => [name, levels(load)])),
  };
}

function topologiesJson({ topologies, snapshot, lacks }: ClusterPlan): object[] {
  const unplaced = new Map(lacks.map(({ topologyId, executors }) => [topologyId, executors.length]));
  return topologies.map(({ id, facts, plan, failure }) => {
    const componentOf = new Map(plan.executors.map(({ range, component }) => [range[0], component]));
    return {
      id,
      name: facts.name ?? id,
      workersWanted: plan.topologyWorkers,
      executors: plan.executors.length,
      unplacedExecutors: unplaced.get(id) ?? 0,
      failure,
      placement: (snapshot.placement.get(id) ?? []).map(({ supervisor, port, executors }) => ({
        supervisor,
        port,
        executors: executors.map((range) => ({ component: componentOf.get(range[0]) ?? null, range })),
      })),
    };
  });
}
