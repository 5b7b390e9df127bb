/**
 * The difference that one round makes, as moves: executors that go together from one slot to another, with the rule that took
 * them away and the rule that put them there.
 */
import type { Assignment, ExecutorRange } from '../assignment.js';
import { type PlacedWorker, type Slot, slotKey } from '../cluster-snapshot.js';
import { compareRanges, compareText, rangeKey } from '../order.js';
import type { ResourceAwareResult } from '../strategies/resource-aware/resource-aware.js';
import type { SchedulingOutcome } from '../round-types.js';
import type { SchedulingResult } from '../strategies/strategy.js';
import { executorLoads } from '../load/index.js';
import type { PlanRule } from './plan-rules.js';

export interface MovedExecutor {
  readonly component: string;
  readonly range: ExecutorRange;
}

export interface Move {
  /** The round that makes it, from 1. */
  readonly round: number;
  readonly topologyId: string;
  /** In order of first task. */
  readonly executors: readonly MovedExecutor[];
  /** null: they had no slot. */
  readonly from: Slot | null;
  /** null: they have none now. */
  readonly to: Slot | null;
  readonly load: number;
  /** Why they did not stay; null: they had no slot. */
  readonly left: PlanRule | null;
  /** Why they went there; null: they have no slot. */
  readonly chosen: PlanRule | null;
  /** What the machine that they go to carried before and after the round, moves of others included. */
  readonly machineLoad: { readonly before: number; readonly after: number } | null;
  /** Topologies that it made room for. */
  readonly evictedBy: readonly string[];
}

export interface RoundOfMoves {
  readonly round: number;
  readonly strategy: string;
  readonly outcome: SchedulingOutcome;
  /** Topologies with a rebalance that is carried out in this round. */
  readonly rebalanced: ReadonlySet<string>;
  /** What ran before, by topology. */
  readonly before: ReadonlyMap<string, Assignment | undefined>;
}

/** In order of topology, then of slot. Cost: O(E log E). */
export function movesOfRound({
  round,
  strategy,
  outcome,
  before,
  rebalanced,
}: RoundOfMoves): readonly Move[] {
  const { snapshot, result } = outcome.decided;
  const moves: Move[] = [];
  const loads = machineLoads(outcome, before);
  const topologies = new Map(snapshot.topologies.map((topology) => [topology.id, topology]));
  const evictors = evictorsOf(result);
  const reserved = new Set(result.reservedHosts);
  const hosts = new Map(snapshot.supervisors.map(({ id, host }) => [id, host]));
  for (const changed of outcome.topologies) {
    if (changed.kind !== 'changed') continue;
    const topology = topologies.get(changed.topologyId);
    if (topology === undefined) continue;
    const old = before.get(topology.id)?.slots ?? [];
    const dead = new Map(changed.dead.map(({ range, cause }) => [rangeKey(range), cause]));
    const loadOf = executorLoads(topology);
    const componentOf = new Map(topology.executors.map(({ range, component }) => [range[0], component]));
    const now = new Map(changed.assignment.slots.map((slot) => [slotKey(slot), slot]));
    const kept = new Set(old.filter((slot) => goesOn(slot, now.get(slotKey(slot)))).map(slotKey));
    const whyLeft = (from: Slot, to: Slot | null, range: ExecutorRange, isPlanned: boolean): PlanRule => {
      const cause = dead.get(rangeKey(range));
      if (cause === 'gone') return 'machine-gone';
      if (cause !== undefined) return 'worker-silent';
      if (!isPlanned) return 'counts-changed';
      if (rebalanced.has(topology.id)) return 'rebalance';
      if ((evictors.get(topology.id) ?? []).length > 0) return 'evicted';
      if (strategy === 'isolation' && reserved.has(hosts.get(from.supervisor) ?? '')) return 'host-reserved';
      if (strategy === 'balanced') {
        const [goesOnThere, joins] = [kept.has(slotKey(from)), to !== null && kept.has(slotKey(to))];
        if (goesOnThere === joins) return 'more-even';
        return joins ? 'slot-given' : 'spreads-out';
      }
      return strategy === 'default' || strategy === 'isolation' ? 'uneven-worker' : 'placed-anew';
    };
    for (const { from, to, ranges } of groupedMoves(old, changed.assignment.slots)) {
      const [first] = ranges;
      if (first === undefined) continue;
      const isPlanned = componentOf.has(first[0]);
      const left = from === null ? null : whyLeft(from, to, first, isPlanned);
      moves.push({
        round,
        topologyId: topology.id,
        executors: ranges.map((range) => ({ component: componentOf.get(range[0]) ?? '', range })),
        from,
        to,
        load: ranges.reduce((sum, [task]) => sum + loadOf(task), 0),
        left,
        chosen:
          to === null
            ? null
            : kept.has(slotKey(to))
              ? 'joins-worker'
              : chosenBy(strategy, topology.balance?.mode, reserved.has(hosts.get(to.supervisor) ?? '')),
        machineLoad: to === null ? null : (loads.get(to.supervisor) ?? null),
        evictedBy: left === 'evicted' ? (evictors.get(topology.id) ?? []) : [],
      });
    }
  }
  return moves;
}

function chosenBy(strategy: string, mode: string | undefined, isReserved: boolean): PlanRule {
  switch (strategy) {
    case 'balanced':
      if (mode === 'none') return 'fill-machine';
      if (mode === 'slots') return 'fewest-slots-used';
      return mode === 'min-resources' ? 'most-slots-used' : 'least-loaded';
    case 'even':
    case 'default':
      return 'round-robin';
    case 'isolation':
      return isReserved ? 'own-host' : 'round-robin';
    case 'resource-aware':
      return 'resources-fit';
    default:
      return 'by-strategy';
  }
}

/** Does a worker go on with something of what it had? Then what comes to it joins it. */
function goesOn(before: PlacedWorker, now: PlacedWorker | undefined): boolean {
  if (now === undefined) return false;
  const had = new Set(before.executors.map(rangeKey));
  return now.executors.some((range) => had.has(rangeKey(range)));
}

/** Executors by where they were and where they are; those that stay are left out. */
function groupedMoves(
  before: readonly PlacedWorker[],
  after: readonly PlacedWorker[],
): readonly {
  readonly from: Slot | null;
  readonly to: Slot | null;
  readonly ranges: readonly ExecutorRange[];
}[] {
  const old = new Map<string, PlacedWorker>();
  for (const worker of before) for (const range of worker.executors) old.set(rangeKey(range), worker);
  const groups = new Map<string, { from: Slot | null; to: Slot | null; ranges: ExecutorRange[] }>();
  const note = (from: Slot | null, to: Slot | null, range: ExecutorRange): void => {
    const key = `${from === null ? '' : slotKey(from)} ${to === null ? '' : slotKey(to)}`;
    const group = groups.get(key) ?? { from, to, ranges: [] };
    groups.set(key, group);
    group.ranges.push(range);
  };
  for (const worker of after) {
    for (const range of worker.executors) {
      const from = old.get(rangeKey(range));
      old.delete(rangeKey(range));
      if (from === undefined || slotKey(from) !== slotKey(worker)) note(from ?? null, worker, range);
    }
  }
  for (const [key, worker] of old) {
    const range = worker.executors.find((one) => rangeKey(one) === key);
    if (range !== undefined) note(worker, null, range);
  }
  const slot = (one: Slot | null): Slot | null =>
    one === null ? null : { supervisor: one.supervisor, port: one.port };
  return [...groups.values()].map(({ from, to, ranges }) => ({
    from: slot(from),
    to: slot(to),
    ranges: ranges.sort(compareRanges),
  }));
}

function machineLoads(
  { topologies, decided: { snapshot } }: SchedulingOutcome,
  before: RoundOfMoves['before'],
): ReadonlyMap<string, { readonly before: number; readonly after: number }> {
  const loads = new Map(
    snapshot.supervisors.map(({ id, otherLoad = 0 }) => [id, { before: otherLoad, after: otherLoad }]),
  );
  const outcomes = new Map(topologies.map((outcome) => [outcome.topologyId, outcome]));
  for (const topology of snapshot.topologies) {
    const loadOf = executorLoads(topology);
    const old = before.get(topology.id)?.slots ?? [];
    const outcome = outcomes.get(topology.id);
    const now = outcome?.kind === 'changed' ? outcome.assignment.slots : old;
    for (const [which, slots] of [
      ['before', old],
      ['after', now],
    ] as const) {
      for (const { supervisor, executors } of slots) {
        const machine = loads.get(supervisor);
        if (machine !== undefined) machine[which] += executors.reduce((sum, [task]) => sum + loadOf(task), 0);
      }
    }
  }
  return loads;
}

/** By topology: those that it made room for. */
function evictorsOf(result: SchedulingResult): ReadonlyMap<string, readonly string[]> {
  const by = new Map<string, string[]>();
  const { evicted } = result as Partial<Pick<ResourceAwareResult, 'evicted'>>; // of one strategy only
  for (const [winner, losers] of evicted ?? []) {
    for (const loser of losers) by.set(loser, [...(by.get(loser) ?? []), winner].sort(compareText));
  }
  return by;
}
