/** Why executors have no place: what they need, what there is, the machine that comes closest, and the rule that keeps them off. */
import { type ClusterSnapshot, type Slot, slotKey } from '../cluster-snapshot.js';
import type { SchedulingOutcome, TopologyOutcome } from '../round-types.js';
import type { PlannedExecutor } from '../executors.js';
import { useOfSupervisors } from '../resource-use.js';

/** Amounts by resource: `slots`, `cpuPercent`, `memoryMb`, `onHeapMb`, and others by name. */
export type Amounts = Readonly<Record<string, number>>;

export interface Lack {
  readonly topologyId: string;
  readonly executors: readonly PlannedExecutor[];
  /** The component whose executor was tried last; null: no single one. */
  readonly component: string | null;
  readonly need: Amounts;
  /** Free on all machines together. */
  readonly have: Amounts;
  /** null: there is no machine that may be used. */
  readonly best: { readonly machine: string; readonly have: Amounts } | null;
  /** The first rule that failed on the best machine. */
  readonly rule: string;
  /** A sentence with what to do. */
  readonly text: string;
}

/** In order of topology. Cost: O(topologies × machines). */
export function lacksOf(outcome: SchedulingOutcome): readonly Lack[] {
  const { snapshot, result } = outcome.decided;
  const left = new Left(outcome);
  return outcome.topologies.flatMap((one): readonly Lack[] => {
    const { topologyId, unplaced: executors, unplacedReason } = one;
    if (executors.length === 0 || unplacedReason === null) return [];
    const facts = { topologyId, executors, text: unplacedReason };
    const shortage = result.unplaced.get(topologyId)?.shortage;
    if (shortage === undefined) return [{ ...facts, component: null, ...slotLack(snapshot, left.freeSlots) }];
    const { component, need, have, best, rule } = shortage;
    if (rule === 'cluster-total') {
      // All executors together, and only what is short.
      const short = Object.entries(amountsOf(need)).filter(([, amount]) => amount > 0);
      const only = (amounts: Amounts): Amounts =>
        Object.fromEntries(short.map(([name]) => [name, amounts[name] ?? 0]));
      const most = left.machineWithMost(short[0]?.[0] ?? 'cpuPercent');
      return [
        {
          ...facts,
          component: null,
          need: Object.fromEntries(short),
          have: only(amountsOf(have)),
          best: most === null ? null : { machine: most.machine, have: only(most.have) },
          rule,
        },
      ];
    }
    return [
      {
        ...facts,
        component,
        need: { ...amountsOf(need), onHeapMb: need.onHeapMb },
        have: amountsOf(have),
        best: best === null ? null : { machine: best.supervisor, have: amountsOf(best) },
        rule,
      },
    ];
  });
}

/** What is left on machines after a round, worked out when somebody asks. */
class Left {
  readonly #outcome: SchedulingOutcome;
  #freeSlots: ReadonlyMap<string, number> | undefined;
  #amounts: ReadonlyMap<string, Amounts> | undefined;

  constructor(outcome: SchedulingOutcome) {
    this.#outcome = outcome;
  }

  /** Slots by machine that nobody holds. */
  get freeSlots(): ReadonlyMap<string, number> {
    const { decided, topologies } = this.#outcome;
    this.#freeSlots ??= freeSlots(decided.snapshot, topologies);
    return this.#freeSlots;
  }

  machineWithMost(resource: string): { readonly machine: string; readonly have: Amounts } | null {
    this.#amounts ??= freeAmounts(this.#outcome);
    let best: { readonly machine: string; readonly have: Amounts } | null = null;
    for (const [machine, have] of this.#amounts) {
      if (best === null || (have[resource] ?? 0) > (best.have[resource] ?? 0)) best = { machine, have };
    }
    return best;
  }
}

function freeAmounts({ decided: { snapshot, result } }: SchedulingOutcome): ReadonlyMap<string, Amounts> {
  const uses = useOfSupervisors(snapshot, result.placement);
  return new Map(
    snapshot.supervisors.map(({ id, resources }) => {
      const { cpuPercent = 0, memoryMb = 0, generic = new Map<string, number>() } = uses.get(id) ?? {};
      const named = Object.entries(resources?.generic ?? {}).map(
        ([name, amount]) => [name, amount - (generic.get(name) ?? 0)] as const,
      );
      return [
        id,
        {
          cpuPercent: (resources?.cpuPercent ?? 0) - cpuPercent,
          memoryMb: (resources?.memoryMb ?? 0) - memoryMb,
          ...Object.fromEntries(named),
        },
      ];
    }),
  );
}

function amountsOf({
  cpuPercent,
  memoryMb,
  generic,
}: {
  readonly cpuPercent: number;
  readonly memoryMb: number;
  readonly generic: Amounts;
}): Amounts {
  return { cpuPercent, memoryMb, ...generic };
}

function slotLack(
  { supervisors }: ClusterSnapshot,
  free: ReadonlyMap<string, number>,
): Pick<Lack, 'need' | 'have' | 'best' | 'rule'> {
  let best: Lack['best'] = null;
  let [total, mostFree, mostSlots] = [0, -1, -1];
  for (const { id, ports } of supervisors) {
    const own = free.get(id) ?? 0;
    total += own;
    if (own < mostFree || (own === mostFree && ports.length <= mostSlots)) continue;
    [mostFree, mostSlots] = [own, ports.length];
    best = { machine: id, have: { slots: own } };
  }
  return {
    need: { slots: 1 },
    have: { slots: total },
    best,
    rule: best === null ? 'no-supervisor' : mostFree === 0 ? 'no-free-slot' : 'by-strategy',
  };
}

function freeSlots(
  { supervisors, placement }: ClusterSnapshot,
  outcomes: readonly TopologyOutcome[],
): ReadonlyMap<string, number> {
  const held = new Set<string>();
  for (const outcome of outcomes) {
    const slots: readonly Slot[] =
      outcome.kind === 'changed' ? outcome.assignment.slots : (placement.get(outcome.topologyId) ?? []);
    for (const slot of slots) held.add(slotKey(slot));
  }
  return new Map(
    supervisors.map(({ id, ports }) => [
      id,
      ports.filter((port) => !held.has(slotKey({ supervisor: id, port }))).length,
    ]),
  );
}
