/**
 * What is asked and answered when somebody wants to see live rows: from Nimbus's daemon over the supervisor's socket to the
 * worker, and from its main thread to the executor threads. Plain data.
 */
/** A tap ends by itself: whoever wants more asks again, and whoever is gone costs nothing. */
export interface TapRequest {
  readonly component: string;
  /** Rows that it takes instead of those that it emits. */
  readonly taken: boolean;
  /** Only rows whose field reads so. */
  readonly where: { readonly field: string; readonly value: string } | null;
  /** Rows that are wanted of each thread at most. */
  readonly limit: number;
  readonly windowMs: number;
}

export interface TappedRow {
  /** When it passed, ms since the epoch. */
  readonly atMs: number;
  readonly task: number;
  /** Emitted to, or the input that it came by. */
  readonly stream: string;
  /** JSON, as dead letters have values; cut where `isCut`, and then no JSON any more. */
  readonly row: string;
  readonly isCut: boolean;
}

export interface TapReport {
  /** In order of time. */
  readonly rows: readonly TappedRow[];
  /** Rows that passed while the tap was open. */
  readonly seen: number;
  /** Threads that did not answer in time, since a call of user code holds them up. */
  readonly silentThreads: number;
}

export const MAX_TAP_ROWS = 1000;
export const MIN_TAP_WINDOW_MS = 50;
export const MAX_TAP_WINDOW_MS = 5000;

/** What a supervisor is asked by somebody who is no worker. */
export interface SlotTap {
  readonly topologyId: string;
  readonly port: number;
  readonly request: TapRequest;
}

/** Which row of which tree a supervisor is asked to look for in a worker. */
export interface SlotSearch {
  readonly topologyId: string;
  readonly port: number;
  readonly rootTask: number;
  readonly sequence: number;
}
