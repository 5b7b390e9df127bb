/** What goes into a scheduling round, and what comes out. */
import type { ErrorRecord, LogFields, Settings } from '../base/index.js';
import type { Assignment, ExecutorRange } from './assignment.js';
import type { ClusterSnapshot, ClusterSupervisor, ClusterTopology } from './cluster-snapshot.js';
import type { PlannedExecutor } from './executors.js';
import type { TopologyPlan } from './plan-topology.js';
import type { MeasuredLoads } from './resources.js';
import type { SchedulingResult, Strategy } from './strategies/strategy.js';

export interface RoundSupervisor extends ClusterSupervisor {
  /** Its machine is gone: its executors are dead at once. A supervisor that is only away is left out of the list. */
  readonly gone?: boolean;
}

/** What strategies may want to know of a topology besides its counts. */
export type TopologyFacts = Pick<ClusterTopology, 'name' | 'owner' | 'priority' | 'uptimeMs' | 'rules'>;

/** A rebalance that the assignment in force does not fulfil yet. */
export interface PendingRebalance {
  readonly revision: number;
  /** `few-moves`: what can stay stays. `from-scratch`: as if nothing had been placed; its own slots are free for it. */
  readonly placement: 'few-moves' | 'from-scratch';
}

export interface RoundTopology {
  readonly id: string;
  readonly plan: TopologyPlan;
  readonly settings: Settings;
  /** The assignment in force. */
  readonly stored: Assignment | undefined;
  readonly rebalance?: PendingRebalance;
  readonly facts?: TopologyFacts;
  /** What its executors were measured to use; not given: nothing. */
  readonly measured?: MeasuredLoads;
  /**
   * When the last heartbeat for an executor, named by its first task, was received in its present slot, by the clock of
   * `nowMs`; undefined: none so far.
   */
  lastHeartbeatMs(firstTask: number): number | undefined;
}

/** A topology with executors that have no slot, and the slots that it might get. */
export interface PlacementNeed {
  readonly topologyId: string;
  /** Slots that it wants beyond those with executors that are alive. */
  readonly wanted: number;
  /** Free slots by supervisor. */
  readonly free: ReadonlyMap<string, readonly string[]>;
  /** Has it workers that live? What it lacks can join them. */
  readonly isRunning: boolean;
}

export interface RoundInput {
  readonly nowMs: number;
  readonly supervisors: readonly RoundSupervisor[];
  /** All topologies that run, in any order; slots of others count as free. */
  readonly topologies: readonly RoundTopology[];
  readonly strategy: 'even' | Strategy;
  /** Slots that topologies wait for that are not part of the round; not given: none. */
  readonly spokenFor?: number;
  /**
   * Why a topology is not placed yet although it could be, or null: place it. Asked for each that needs a slot; one that is
   * held keeps what it has. Not given: nobody is held.
   */
  readonly holds?: (need: PlacementNeed) => string | null;
  /** Exactly as Storm decides, without Isobar's additions. Default: false. */
  readonly compatibility?: boolean;
}

export interface DeadExecutor extends PlannedExecutor {
  readonly supervisor: string;
  readonly port: number;
  /** `gone`: with its machine. `silent`: its heartbeats stopped. `never-started`: none came within the launch time. */
  readonly cause: 'gone' | 'silent' | 'never-started';
}

/** An entry for the log: a fixed past-tense event and its values. */
export interface RoundLogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly event: string;
  readonly fields: LogFields;
}

interface OutcomeFacts {
  readonly topologyId: string;
  readonly dead: readonly DeadExecutor[];
  /** Executors without a slot after this round, in order of first task. */
  readonly unplaced: readonly PlannedExecutor[];
  /** Why, and what to do; null if every executor has a slot. */
  readonly unplacedReason: string | null;
}

/** `changed`: `assignment` is to be stored. `failed`: the topology keeps what it had. */
export type TopologyOutcome =
  | (OutcomeFacts & {
      readonly kind: 'changed';
      readonly assignment: Assignment;
      /** Supervisors that must hear of it, ascending. */
      readonly notify: readonly string[];
      /** Executors that start now: their slot is new or its content changed. */
      readonly started: readonly ExecutorRange[];
    })
  | (OutcomeFacts & { readonly kind: 'unchanged' })
  | (OutcomeFacts & { readonly kind: 'failed'; readonly error: ErrorRecord });

export interface SchedulingOutcome {
  /** In order of id. */
  readonly topologies: readonly TopologyOutcome[];
  readonly log: readonly RoundLogLine[];
  /** Executors wait for slots that were hidden in this round only: another round, after the writes, can place them. */
  readonly runAgain: boolean;
  /** What the strategy saw, and what it answered before that was checked. */
  readonly decided: { readonly snapshot: ClusterSnapshot; readonly result: SchedulingResult };
}
