/** The interface of a scheduling strategy: a pure function from a snapshot to slots and reasons. */
import type { ClusterSnapshot, Placement } from '../cluster-snapshot.js';
import type { PlannedExecutor } from '../executors.js';
import type { Shortage } from './resource-aware/shortage.js';

/** Executors of one topology that got no slot, and why, as a sentence with what to do. */
export interface Unplaced {
  readonly executors: readonly PlannedExecutor[];
  readonly reason: string;
  /** For a strategy that looks at resources: what exactly is missing. */
  readonly shortage?: Shortage;
}

export interface SchedulingResult {
  /** Everything that is placed when the strategy is done, kept workers included. */
  readonly placement: Placement;
  /** By topology id; topologies whose executors all have a slot are absent. */
  readonly unplaced: ReadonlyMap<string, Unplaced>;
  /** What was thrown while one topology was placed; it has its old workers, and the others are not affected. */
  readonly failures: ReadonlyMap<string, unknown>;
  /** Sentences that explain the result: what was balanced, how near it is to the best, what was moved and why. */
  readonly notes?: readonly string[];
  /** Hosts on which the strategy keeps everything else away, ascending. */
  readonly reservedHosts?: readonly string[];
  /** It answers for capacities: no supervisor is used beyond what it offers, no new worker beyond its topology's heap. Not given: it does not. */
  readonly keepsCapacity?: boolean;
  /** Elementary steps that were taken, for tests of how work grows. */
  readonly steps: number;
}

/**
 * Places what needs to be placed. Deterministic: the same snapshot gives the same result. Executors that do not fit
 * come back in `unplaced`, never dropped and never thrown.
 */
export type Strategy = (snapshot: ClusterSnapshot) => SchedulingResult;
