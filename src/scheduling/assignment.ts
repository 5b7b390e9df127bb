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

export interface Assignment {
  readonly topologyId: string;
  /** Rises by one with each change; supervisors converge on the newest. */
  readonly version: number;
  /** Numbering of all components that have tasks, in order of first task. */
  readonly tasks: readonly ComponentTasks[];
  /** Slots in use, ordered by supervisor and port. */
  readonly slots: readonly SlotAssignment[];
  /** The last rebalance that it fulfils; not given: none. */
  readonly revision?: number;
}
