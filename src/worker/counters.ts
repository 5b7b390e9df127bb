/**
 * Counters of tasks in shared memory: the executor thread adds with plain stores, the main thread reads when it writes a
 * heartbeat, so a thread that is stuck in user code can still be reported on.
 *
 * One block per task, which stays with it when it changes its thread: `COUNTER_FIELDS` float64, then a latency sketch of
 * int32 buckets.
 */
import { SKETCH_BUCKETS } from '../base/index.js';

/** Places of a task's counters. Totals since its worker started, unless said otherwise. */
export const C_EMITTED = 0;
export const C_TRANSFERRED = 1;
export const C_EXECUTED = 2;
export const C_ACKED = 3;
export const C_FAILED = 4;
export const C_REPLAYED = 5;
export const C_DEAD_LETTERS = 6;
/** Depths now. */
export const C_QUEUED = 7;
export const C_PENDING = 8;
/** Flags: 0 or 1. */
export const C_ENDED = 9;
export const C_STOPPED = 10;
export const C_GENERATION = 11;
/** Failures and replays by reason: as many places as `FAILURE_REASONS`. */
export const C_FAILURES_BY_REASON = 12;
export const C_REPLAYS_BY_REASON = 17;
/** Spouts: trees that are out now. A crash may be due to one of them. */
export const C_TREES = 22;
/** Spouts, acking on: rows that nobody would emit again if they failed. */
export const C_UNREPLAYABLE = 23;
/** Flag: the task can be moved without losing what it knows. */
export const C_MOVABLE = 24;
/** Milliseconds in which its executor ran rows, kept at the executor's first task. */
export const C_BUSY_MS = 25;
/** Milliseconds in which its executor had rows and its receivers took none, kept at the executor's first task. */
export const C_BLOCKED_MS = 26;
/** Spouts: rows that the source has yet to give, as it says, and one more; 0: it does not say. */
export const C_LAG = 27;
export const COUNTER_FIELDS = 28;

/** Reasons in the order of their places and of their codes on the wire. */
export const FAILURE_REASONS = ['user', 'timeout', 'lost', 'moved', 'overflow'] as const;

export interface CounterBlock {
  /** `COUNTER_FIELDS` of them. */
  readonly counters: Float64Array;
  /** Bolts: of executing a row. Spouts: from emit to the tree's completion. */
  readonly sketch: Int32Array;
}

/** Where the block of a task is, for its thread to open. */
export interface CounterPlace {
  readonly buffer: SharedArrayBuffer;
  /** In bytes. */
  readonly offset: number;
}

/** A multiple of 8. */
const BLOCK_BYTES = COUNTER_FIELDS * 8 + Math.ceil((SKETCH_BUCKETS * 4) / 8) * 8;
const MOST_BLOCKS_OF_BUFFER = 256;

/**
 * Allocates blocks, many of them in one buffer: to make a buffer, and to hand it to a thread, costs far more than a block. A
 * buffer goes when none of its blocks is used any more, so the first ones are small.
 */
export class CounterStore {
  #buffer = new SharedArrayBuffer(0);
  #nextOffset = 0;
  #buffers = 0;

  /** How many buffers there have been. */
  get buffers(): number {
    return this.#buffers;
  }

  allocate(): CounterPlace {
    if (this.#nextOffset >= this.#buffer.byteLength) {
      this.#buffer = new SharedArrayBuffer(
        BLOCK_BYTES * Math.min(2 ** this.#buffers++, MOST_BLOCKS_OF_BUFFER),
      );
      this.#nextOffset = 0;
    }
    const place = { buffer: this.#buffer, offset: this.#nextOffset };
    this.#nextOffset += BLOCK_BYTES;
    return place;
  }
}

export function openCounters({ buffer, offset }: CounterPlace): CounterBlock {
  return {
    counters: new Float64Array(buffer, offset, COUNTER_FIELDS),
    sketch: new Int32Array(buffer, offset + COUNTER_FIELDS * 8, SKETCH_BUCKETS),
  };
}

/** Places in a thread's progress words (int32, shared). */
export const P_CALLS = 0;
/** Task in whose code the thread is, or was last; 0: none yet. */
export const P_TASK = 1;
/** The call of user code that it is in, by its code (see user-calls.ts); 0: in none. */
export const P_IN_CALL = 2;
export const P_LAG_MS = 3;
/** Rises with each turn of the loop. */
export const P_TURNS = 4;
/** Collections of garbage in the thread, and the time that they took. */
export const P_COLLECTIONS = 5;
export const P_COLLECTION_MS = 6;
export const PROGRESS_WORDS = 8;
