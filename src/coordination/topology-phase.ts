/** Where a topology is in its life, and what a rebalance has made of it: parts of its record. Plain data. */
import type { ErrorRecord, StoredMoment } from '../base/index.js';

/** A wait that goes on over restarts of whoever waits. */
export interface StoredWait {
  readonly since: StoredMoment;
  readonly waitMs: number;
}

/**
 * The phase of a topology.
 *
 * Alive: `active`: runs. `inactive`: runs, and its spouts read nothing. `rebalancing`: as inactive, until the wait is
 * over; then it is placed anew and is what it was before. `draining`: sources have been told to stop, pending trees
 * complete. `ending`: all sources ended and all trees are complete; the components of `stage` (index into `stages`) call
 * `end`. `killed`: as inactive, until the wait is over; then it is removed.
 *
 * Over, without workers: `finished`: ran to its end or was drained. `failed`: cannot run (see `error`). `stopped`: told
 * to stop at once. `removed`: its record goes once its workers are verified gone.
 */
export type TopologyPhase =
  | { readonly kind: 'active' }
  | { readonly kind: 'inactive' }
  | {
      readonly kind: 'rebalancing';
      readonly previous: 'active' | 'inactive';
      readonly wait: StoredWait;
      /** What the topology is to be once the wait is over. */
      readonly desired: DesiredState;
    }
  | { readonly kind: 'draining'; readonly sinceMs: number }
  | { readonly kind: 'ending'; readonly stage: number; readonly stages: readonly (readonly string[])[] }
  | { readonly kind: 'killed'; readonly wait: StoredWait }
  | { readonly kind: 'finished'; readonly drained: boolean }
  | { readonly kind: 'failed'; readonly error: ErrorRecord }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'removed' };

/** What a rebalance has made of a topology. Tasks never change. */
export interface DesiredState {
  /** Rises with each rebalance; the assignment that fulfils it carries the same number. */
  readonly revision: number;
  /** Workers wanted; not given: as submitted. */
  readonly workers?: number;
  /** Executors by component, as asked for; there are never more than tasks. Others are as submitted. */
  readonly executors: Readonly<Record<string, number>>;
  /** Resources by component, by name; others are as submitted. */
  readonly resources: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** `few-moves`: what can stay where it is stays. `from-scratch`: as if nothing had been placed. */
  readonly placement: 'few-moves' | 'from-scratch';
  /** When it came into force, ms since the epoch. */
  readonly changedMs: number;
  /** Named by whoever asked, so that a request that was sent twice is carried out once. */
  readonly requestId?: string;
}

/** Is it over, and keeps no worker? */
export function isTerminal({ kind }: TopologyPhase): boolean {
  return kind === 'finished' || kind === 'failed' || kind === 'stopped' || kind === 'removed';
}
