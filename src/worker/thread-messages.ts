/** The protocol between a worker's main thread and its executor threads: tagged unions, split by direction. */
import type { ErrorRecord, RawSettings } from '../base/index.js';
import type {
  LongCall,
  OldestPending,
  StoredPosition,
  TapRequest,
  TappedRow,
  TopologyPhase,
} from '../coordination/index.js';
import type { ComponentTasks, ExecutorRange } from '../scheduling/index.js';
import type { CounterPlace } from './counters.js';

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
  /** What all writers of that log share (see LogFile). */
  readonly logShared: SharedArrayBuffer;
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
  readonly counters: CounterPlace;
  /** Of this life of the task: higher than that of any life before. */
  readonly generation: number;
  /** Where a spout goes on; undefined: from the start. */
  readonly position: StoredPosition | undefined;
  /** Crashes since a row of it last got through (spouts). */
  readonly crashes: number;
  /** What `save` returned at its former place, as structured-clone data. */
  readonly saved:
    | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
    | { readonly kind: 'file'; readonly path: string }
    | null;
  /**
   * It has come from another place: a start that fails is told and harms nobody else here, and it takes rows only once
   * the main thread has said `go`.
   */
  readonly isArrival: boolean;
}

/** Rows for this task are held by their senders while it is on its way. */
export interface HeldTask {
  readonly task: number;
  /** Number of the move, to tell marks of one from those of another. */
  readonly id: number;
}

/** What a task that has finished its rows leaves behind. */
export interface SavedTask {
  readonly task: number;
  readonly id: number;
  /** `bytes`: what `save` returned, as structured-clone data. `failed`: it is as if nobody had asked. */
  readonly state:
    | { readonly kind: 'none' }
    | { readonly kind: 'saved'; readonly bytes: Uint8Array<ArrayBuffer> }
    | { readonly kind: 'failed'; readonly error: ErrorRecord };
  /** Spouts: where to go on. */
  readonly position: unknown;
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
  /** A prepared arrival takes rows from now on. */
  | { readonly kind: 'go'; readonly task: number }
  /** At once: rows that wait for these tasks fail as moved. */
  | { readonly kind: 'stop-tasks'; readonly tasks: readonly number[] }
  | {
      readonly kind: 'routes';
      readonly version: number;
      readonly tasks: readonly ComponentTasks[];
      readonly endpoints: readonly EndpointRoute[];
      /** Endpoint id by task number; -1: nowhere now. */
      readonly endpointOfTask: Int32Array;
      readonly held: readonly HeldTask[];
      /** An endpoint was lost with this change: mark every pending tree. */
      readonly lost: boolean;
      /** Not only sessions with peers were lost: a thread or process has ended, and a row may be behind it. */
      readonly hasEnded: boolean;
    }
  /** No row for this task comes any more: it finishes what it has, for `limitMs` at most, and saves its state. */
  | { readonly kind: 'finish-task'; readonly task: number; readonly id: number; readonly limitMs: number }
  /** It goes on here after all. */
  | { readonly kind: 'keep-task'; readonly task: number }
  /** Say `flushed` when all that has been sent is in the rings. */
  | { readonly kind: 'flush' }
  /** Something was lost, as with routes. */
  | { readonly kind: 'mark'; readonly hasEnded: boolean }
  /** Rows of old trees may be nowhere: those without progress from now on are replayed as after a loss. */
  | { readonly kind: 'suspect' }
  /** Nobody does anything: trees that are older than the message time-out fail, since no row of them is anywhere. */
  | { readonly kind: 'expire' }
  /** Show live rows for a moment; answered with `tapped`. */
  | { readonly kind: 'tap'; readonly id: number; readonly request: TapRequest }
  /** Where is a row of that tree? Answered with `found-row`. */
  | {
      readonly kind: 'find-row';
      readonly id: number;
      readonly rootTask: number;
      readonly sequence: number;
    }
  | { readonly kind: 'phase'; readonly phase: TopologyPhase }
  | { readonly kind: 'stop' };

export interface ThreadError {
  readonly component: string;
  readonly task: number;
  readonly error: ErrorRecord;
}

/** The thread ends for this reason; `details` name component and task where it is known whose code it was. */
export interface ThreadCrashed {
  readonly kind: 'crashed';
  readonly error: ErrorRecord;
}

export type FromThread =
  | { readonly kind: 'loaded' }
  /** The thread cannot run this topology at all. */
  | { readonly kind: 'unusable'; readonly error: ErrorRecord }
  /** An arrival is there, and waits for `go`. */
  | { readonly kind: 'prepared'; readonly task: number }
  | { readonly kind: 'start-failed'; readonly task: number; readonly error: ErrorRecord }
  /** They take rows. */
  | { readonly kind: 'started'; readonly tasks: readonly number[] }
  /** They are closed. */
  | { readonly kind: 'stopped'; readonly tasks: readonly number[] }
  /** A thread sends nothing more to a task of this thread that is to move. */
  | { readonly kind: 'cut'; readonly task: number; readonly id: number; readonly endpoint: number }
  | { readonly kind: 'flushed' }
  | { readonly kind: 'task-saved'; readonly saved: SavedTask }
  | { readonly kind: 'routes-applied'; readonly version: number }
  | { readonly kind: 'positions'; readonly positions: readonly StoredPosition[] }
  | { readonly kind: 'error'; readonly error: ThreadError }
  | { readonly kind: 'dead-letter-file'; readonly path: string }
  /** Words for people; null: not in this thread. */
  | { readonly kind: 'found-row'; readonly id: number; readonly holder: string | null }
  | {
      readonly kind: 'tapped';
      readonly id: number;
      readonly rows: readonly TappedRow[];
      readonly seen: number;
    }
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
