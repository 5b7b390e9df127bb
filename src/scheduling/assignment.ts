/**
 * The result of scheduling: which executor runs in which slot, and since when. Plain data that is stored in the
 * coordinator and read by supervisors and workers.
 */

/** An executor: the inclusive range of the task numbers that it holds, all of one component. */
export type ExecutorRange = readonly [first: number, last: number];

/** The tasks of one component; numbers are consecutive. */
export interface ComponentTasks {
  readonly component: string;
  readonly first: number;
  readonly last: number;
}

export interface SlotAssignment {
  readonly supervisor: string;
  readonly host: string;
  readonly port: number;
  /** In ascending order of first task. */
  readonly executors: readonly ExecutorRange[];
  /** When this set of executors was given to this slot, in ms since the epoch. */
  readonly startedMs: number;
}

/** Tasks on their way from a slot to the one that lists them now; they start there only once they have been released. */
export interface TaskMove {
  readonly tasks: ExecutorRange;
  readonly from: { readonly supervisor: string; readonly port: number };
  /** Version of the assignment that began the move: its name in handovers. It stays when the destination changes. */
  readonly move: number;
}

/** Where tasks go next. The workers of these slots get ready while everything runs where it is. */
export interface MoveTarget {
  readonly slots: readonly SlotAssignment[];
  /** Since when, ms since the epoch. */
  readonly sinceMs: number;
  /** Tasks go whose state cannot travel, and lose it. */
  readonly losesState: boolean;
  /** The rebalance that it fulfils; not given: none. */
  readonly revision?: number;
}

export interface Assignment {
  readonly topologyId: string;
  /** Rises by one with each change; supervisors converge on the newest. */
  readonly version: number;
  /** Numbering of all components that have tasks, in order of first task. */
  readonly tasks: readonly ComponentTasks[];
  /**
   * Slots in use, ordered by supervisor and port. One without executors has a worker that gets ready for them, or that has
   * still something to hand over.
   */
  readonly slots: readonly SlotAssignment[];
  /** The last rebalance that it fulfils; not given: none. */
  readonly revision?: number;
  /** First half of a planned move; absent: none is being prepared. */
  readonly target?: MoveTarget;
  /** Second half; absent: nothing is under way. */
  readonly moves?: readonly TaskMove[];
}
