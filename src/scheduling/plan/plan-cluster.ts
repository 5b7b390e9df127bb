/**
 * A plan: what Nimbus's rounds would make of a cluster, without touching it. The rounds are `schedulingRound` itself, one after
 * the other as Nimbus makes them, until nothing changes any more.
 *
 * P1  Nothing is decided here: every assignment comes from a round. P2  At most `maxRounds` rounds are made; work within a
 * round is bounded by its strategy. P3  The same cluster gives the same plan.
 */
import type { Assignment } from '../assignment.js';
import { type ClusterSnapshot, type PlacedWorker, slotKey } from '../cluster-snapshot.js';
import type { RoundTopology, SchedulingOutcome } from '../round-types.js';
import { clusterTopologyOf, schedulingRound } from '../scheduling-round.js';
import { inParts, installedStrategies } from '../strategies/installed-strategies.js';
import { strategyNamed } from '../strategies/strategies.js';
import type { Strategy } from '../strategies/strategy.js';
import type { ImaginedCluster, ImaginedTopology } from './imagined-cluster.js';
import { type Lack, lacksOf } from './lacks.js';
import { type Move, movesOfRound } from './placement-moves.js';
import { type PlacementMetrics, placementMetrics } from './placement-metrics.js';
import { type PlanWarning, planWarnings } from './plan-warnings.js';

export interface PlanOptions {
  /** Name of the strategy. */
  readonly strategy: string;
  /** From 1. */
  readonly maxRounds: number;
  /** How a strategy is asked, by its name; not given: those that come with Isobar, directly. */
  readonly named?: (name: string) => Strategy;
  /** Called before each step that may take long, with what it is, in the third person. */
  readonly onStep?: (what: string) => void;
}

export interface PlannedTopology extends ImaginedTopology {
  /** What the rounds have made of it. */
  readonly planned: Assignment | undefined;
  /** A fault that keeps it from being placed. */
  readonly failure: { readonly code: string; readonly message: string } | null;
}

export interface ClusterPlan {
  readonly strategy: string;
  /** Rounds that changed something. */
  readonly rounds: number;
  /** Another round would change nothing. */
  readonly isSettled: boolean;
  /** In order of id. */
  readonly topologies: readonly PlannedTopology[];
  /** On the machines as they were before any change, with what ran. */
  readonly before: PlacementMetrics;
  readonly after: PlacementMetrics;
  /** The cluster after the last round, as a strategy sees it. */
  readonly snapshot: ClusterSnapshot;
  /** Round by round. */
  readonly moves: readonly Move[];
  readonly lacks: readonly Lack[];
  readonly warnings: readonly PlanWarning[];
  /** What the strategy said, round by round. */
  readonly notes: readonly string[];
}

/**
 * Plans a cluster.
 *
 * @param original the cluster before the changes that are planned; what `before` is measured on
 * @throws SETTINGS_INVALID for a strategy that does not exist, and for modules that are not named as they have to be
 */
export function planCluster(
  cluster: ImaginedCluster,
  { strategy, maxRounds, named = (name) => strategyNamed(name, cluster.settings), onStep }: PlanOptions,
  original: ImaginedCluster = cluster,
): ClusterPlan {
  named(strategy);
  const decide = inParts(strategy, installedStrategies(cluster.settings), named);
  const { blacklistedHosts } = cluster;
  const schedule: Strategy =
    blacklistedHosts === undefined ? decide : (seen) => decide({ ...seen, blacklistedHosts });
  const intervalMs = cluster.settings['nimbus.round-interval'];
  const stored = new Map(cluster.topologies.map((one) => [one.id, one.stored]));
  const moves: Move[] = [];
  const notes: string[] = [];
  let { silentSlots } = cluster;
  let outcome: SchedulingOutcome;
  let rounds = 0;
  let isSettled = false;
  do {
    const nowMs = cluster.nowMs + rounds * intervalMs;
    const topologies = cluster.topologies.map((one) =>
      roundTopology(one, stored.get(one.id), silentSlots, nowMs),
    );
    onStep?.(`makes round ${rounds + 1} by ${strategy}`);
    outcome = schedulingRound({
      nowMs,
      supervisors: cluster.supervisors,
      topologies,
      strategy: schedule,
    });
    isSettled = outcome.topologies.every(({ kind }) => kind !== 'changed') && !outcome.runAgain;
    if (isSettled) break;
    rounds++;
    onStep?.('looks at what moves');
    const rebalanced = new Set(topologies.flatMap((one) => (one.rebalance === undefined ? [] : [one.id])));
    moves.push(...movesOfRound({ round: rounds, strategy, outcome, rebalanced, before: new Map(stored) }));
    for (const note of outcome.decided.result.notes ?? []) if (!notes.includes(note)) notes.push(note);
    for (const one of outcome.topologies)
      if (one.kind === 'changed') stored.set(one.topologyId, one.assignment);
    // Whoever was silent has been given up.
    silentSlots = new Set();
  } while (rounds < maxRounds);
  onStep?.('measures the placement');
  const snapshot = snapshotOf(cluster, stored);
  const failures = new Map(
    outcome.topologies.flatMap((one) =>
      one.kind === 'failed' ? [[one.topologyId, one.error] as const] : [],
    ),
  );
  const topologies = [...cluster.topologies]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map((topology): PlannedTopology => {
      const error = failures.get(topology.id);
      const failure = error === undefined ? null : { code: error.code, message: error.message };
      return { ...topology, planned: stored.get(topology.id), failure };
    });
  const after = placementMetrics(snapshot);
  const lacks = lacksOf(outcome);
  return {
    strategy,
    // The first round may store that nothing has a place.
    rounds: moves.at(-1)?.round ?? 0,
    isSettled,
    topologies,
    before: placementMetrics(snapshotOf(original)),
    after,
    snapshot,
    moves,
    lacks,
    warnings: planWarnings({ cluster, strategy, snapshot, metrics: after, isSettled, maxRounds }),
    notes,
  };
}

/** A topology as a round takes it: everybody is heard of, but for silent slots. */
export function roundTopology(
  { id, plan, settings, facts, rebalance, measured }: ImaginedTopology,
  stored: Assignment | undefined,
  silentSlots: ReadonlySet<string>,
  nowMs: number,
): RoundTopology {
  const slotOf = new Map<number, string>();
  if (silentSlots.size > 0)
    for (const slot of stored?.slots ?? [])
      for (const [first] of slot.executors) slotOf.set(first, slotKey(slot));
  return {
    id,
    plan,
    settings,
    facts,
    stored,
    ...(measured === undefined ? {} : { measured }),
    ...(rebalance === undefined || rebalance.revision <= (stored?.revision ?? 0) ? {} : { rebalance }),
    lastHeartbeatMs: (firstTask) => (silentSlots.has(slotOf.get(firstTask) ?? '') ? undefined : nowMs),
  };
}

/** The cluster as strategies see it, with what runs or is planned to. */
export function snapshotOf(
  { supervisors, topologies }: ImaginedCluster,
  placed?: ReadonlyMap<string, Assignment | undefined>,
): ClusterSnapshot {
  const present = supervisors.filter(({ gone }) => gone !== true);
  return {
    supervisors: present,
    topologies: topologies.map(clusterTopologyOf),
    placement: new Map(
      topologies.map(({ id, stored }) => {
        const slots: readonly PlacedWorker[] = (placed === undefined ? stored : placed.get(id))?.slots ?? [];
        return [id, slots] as const;
      }),
    ),
  };
}
