/** The ways to place a topology by resources, and what each of them decides from. */
import type { IdleGroups } from './idle-groups.js';
import type { ShareOrder } from './machine-order.js';
import type { Machines } from './machines.js';
import type { TopologyState } from './topology-state.js';
import type { SlotBooks } from './trial.js';

/**
 * Ways to place a topology. Those of the same search differ in how they break ties. `ordersOnce`: the order of supervisors is begun
 * anew only after a step back, as in Storm's `DefaultResourceAwareStrategyOld`.
 */
export const PLACERS = {
  default: { search: 'depth-first', shares: 'average-first', ordersOnce: false },
  generic: { search: 'depth-first', shares: 'average-first', ordersOnce: false },
  'default-old': { search: 'depth-first', shares: 'smallest-first', ordersOnce: true },
  'generic-old': { search: 'depth-first', shares: 'average-only', ordersOnce: false },
  'constraint-solver': { search: 'constraints', shares: 'average-first', ordersOnce: false },
  'round-robin': { search: 'round-robin', shares: 'average-first', ordersOnce: false },
} as const satisfies Record<string, { search: string; shares: ShareOrder; ordersOnce: boolean }>;

export type PlacerName = keyof typeof PLACERS;

export interface PlaceOptions {
  readonly minimumWorkerCpu: number;
  /** Most states of any topology's search. */
  readonly maxSearchStates: number;
  /** Grey-listed supervisors by index: they are used last. */
  readonly greyListed: readonly number[];
  /** As Storm does it in every respect. */
  readonly asStorm: boolean;
}

export interface PlaceInput {
  readonly machines: Machines;
  readonly state: TopologyState;
  /** All topologies, for those that run beside this one. */
  readonly all: readonly TopologyState[];
  readonly placer: PlacerName;
  readonly books: SlotBooks;
  readonly idle: IdleGroups;
  readonly options: PlaceOptions;
}
