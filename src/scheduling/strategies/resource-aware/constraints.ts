/**
 * Which components of a topology keep apart, by integer. Names that the topology does not have, and counts below 1, are
 * ignored; a component that is to be spread has one executor on a supervisor at most.
 */
import type { PlacementRules } from '../../resources.js';
import type { TopologyRequest } from './topology-request.js';

export interface Constraints {
  /** By component: those that may not be in its worker. */
  readonly incompatible: readonly ReadonlySet<number>[];
  /** By component: most of its executors on one supervisor; Infinity: no limit. */
  readonly mostPerMachine: readonly number[];
}

export function constraintsOf({ components, rules }: TopologyRequest): Constraints {
  const indexOf = new Map(components.map((id, index) => [id, index]));
  const incompatible = components.map(() => new Set<number>());
  for (const [one, other] of rules.constraints?.incompatible ?? []) {
    const a = indexOf.get(one);
    const b = indexOf.get(other);
    if (a === undefined || b === undefined) continue;
    incompatible[a]!.add(b);
    incompatible[b]!.add(a);
  }
  return { incompatible, mostPerMachine: components.map((id) => mostPerMachine(id, rules)) };
}

function mostPerMachine(id: string, { constraints, spreadComponents }: PlacementRules): number {
  const most = constraints?.maxPerSupervisor.get(id);
  if (most !== undefined && most >= 1) return most;
  return spreadComponents?.includes(id) === true ? 1 : Infinity;
}

/** How constrained a component is: those it may not meet, and more the fewer a supervisor may have. */
export function severityOf({ incompatible, mostPerMachine }: Constraints, component: number): number {
  const most = mostPerMachine[component]!;
  const spread = most === Infinity ? 0 : Math.floor(incompatible.length / most);
  return incompatible[component]!.size + spread;
}
