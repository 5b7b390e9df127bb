/** The protocol between a worker's main thread and its executor threads: tagged unions, split by direction. */
import type { ErrorRecord, RawSettings } from '../base/index.js';
import type { OldestPending, StoredPosition, TopologyPhase } from '../coordination/index.js';
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

export interface ExecutorStart {
  readonly range: ExecutorRange;
  readonly component: string;
  readonly counters: SharedArrayBuffer;
  /** Stored positions of its tasks (spouts), undefined entries left out. */
  readonly positions: readonly StoredPosition[];
  /** Rows to be dead-lettered or replayed alone after repeated crashes, by task. */
  readonly crashes: readonly (readonly [task: number, crashes: number])[];
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
  | { readonly kind: 'start-executors'; readonly executors: readonly ExecutorStart[] }
  | { readonly kind: 'stop-executors'; readonly ranges: readonly ExecutorRange[] }
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
  | { readonly kind: 'started'; readonly range: ExecutorRange }
  | { readonly kind: 'stopped'; readonly ranges: readonly ExecutorRange[] }
  | { readonly kind: 'routes-applied'; readonly version: number }
  | { readonly kind: 'positions'; readonly positions: readonly StoredPosition[] }
  | { readonly kind: 'error'; readonly error: ThreadError }
  | { readonly kind: 'dead-letter-file'; readonly path: string }
  | {
      readonly kind: 'report';
      readonly counters: readonly (readonly [component: string, name: string, value: number])[];
      readonly oldest: OldestPending | null;
    }
  /** Something changed that a decision waits for. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'closed' };
