/** The protocol between a worker's main thread and its executor threads: tagged unions, split by direction. */
import type { ErrorRecord, RawSettings } from '../base/index.js';
import type { LongCall, OldestPending, StoredPosition, TopologyPhase } from '../coordination/index.js';
import type { ComponentTasks, ExecutorRange } from '../scheduling/index.js';

/** Handed to a new executor thread. */
export interface ThreadStart {
  readonly index: number;
  readonly generation: number;
  readonly topologyId: string;
  readonly topologyName: string;
  readonly codePath: string;
  readonly descriptionPath: string;
  readonly settings: readonly RawSettings[];
  readonly deadLetterDirectory: string;
  readonly logPath: string;
  readonly progress: SharedArrayBuffer;
  readonly doorbell: SharedArrayBuffer;
  /** Rings to and from the main thread. */
  readonly toMain: SharedArrayBuffer;
  readonly fromMain: SharedArrayBuffer;
  readonly mainDoorbell: SharedArrayBuffer;
}

export interface TaskStart {
  readonly task: number;
  readonly component: string;
  readonly counters: SharedArrayBuffer;
  /** Of this life of the task: higher than that of any life before. */
  readonly generation: number;
  /** Where a spout goes on; undefined: from the start. */
  readonly position: StoredPosition | undefined;
  /** Crashes since a row of it last got through (spouts). */
  readonly crashes: number;
}

/** One destination thread as an executor thread sees it. */
export interface EndpointRoute {
  /** Unique in this worker for (thread, generation); never used again after that generation is lost. */
  readonly id: number;
  readonly thread: number;
  readonly generation: number;
  /** Index of the peer for the main thread; -1: a thread of this worker. */
  readonly peer: number;
  /** Rings between this thread and a thread of this worker (null for itself and for remote ones). */
  readonly outgoing: SharedArrayBuffer | null;
  readonly incoming: SharedArrayBuffer | null;
  readonly doorbell: SharedArrayBuffer | null;
}

export type ToThread =
  /** First of all: the numbering of all tasks. */
  | { readonly kind: 'tasks'; readonly tasks: readonly ComponentTasks[] }
  /** Which tasks share an executor from now on; those that run stay as they are. */
  | { readonly kind: 'executors'; readonly ranges: readonly ExecutorRange[] }
  | { readonly kind: 'start-tasks'; readonly tasks: readonly TaskStart[] }
  /** At once: rows that wait for these tasks fail as moved. */
  | { readonly kind: 'stop-tasks'; readonly tasks: readonly number[] }
  | {
      readonly kind: 'routes';
      readonly version: number;
      readonly tasks: readonly ComponentTasks[];
      readonly endpoints: readonly EndpointRoute[];
      /** Endpoint id by task number; -1: nowhere now. */
      readonly endpointOfTask: Int32Array;
      /** An endpoint was lost with this change: mark every pending tree. */
      readonly lost: boolean;
    }
  | { readonly kind: 'mark' }
  /** Nobody does anything: trees that are older than the message time-out fail, since no row of them is anywhere. */
  | { readonly kind: 'expire' }
  | { readonly kind: 'phase'; readonly phase: TopologyPhase }
  | { readonly kind: 'stop' };

export interface ThreadError {
  readonly component: string;
  readonly task: number;
  readonly error: ErrorRecord;
}

export type FromThread =
  | { readonly kind: 'loaded' }
  /** The thread cannot run this topology at all. */
  | { readonly kind: 'unusable'; readonly error: ErrorRecord }
  /** They take rows. */
  | { readonly kind: 'started'; readonly tasks: readonly number[] }
  /** They are closed. */
  | { readonly kind: 'stopped'; readonly tasks: readonly number[] }
  | { readonly kind: 'routes-applied'; readonly version: number }
  | { readonly kind: 'positions'; readonly positions: readonly StoredPosition[] }
  | { readonly kind: 'error'; readonly error: ThreadError }
  | { readonly kind: 'dead-letter-file'; readonly path: string }
  | {
      readonly kind: 'report';
      readonly counters: readonly (readonly [component: string, name: string, value: number])[];
      readonly oldest: OldestPending | null;
      /** Calls whose promise has been open for long. */
      readonly longCalls: readonly LongCall[];
    }
  /** A frame of a peer says what no sender can mean. `session`: number that the main thread wrote into it. */
  | { readonly kind: 'broken-frame'; readonly session: number; readonly error: ErrorRecord }
  /** Something changed that a decision waits for. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'closed' };
