/** What is said between whoever asks a strategy and the thread that runs it. */
import type { MessagePort } from 'node:worker_threads';
import type { ErrorRecord, Settings } from '../../base/index.js';
import type { PlacedWorker, SchedulingResult } from '../../scheduling/index.js';
import type { PostedSnapshot } from './sent-lists.js';

/** `own`: comes with Isobar. `installed`: a module of the operator's, by its absolute path. */
export type StrategySource =
  | { readonly kind: 'own'; readonly name: string; readonly settings: Settings }
  | { readonly kind: 'installed'; readonly name: string; readonly module: string };

export interface StrategyThreadStart {
  readonly source: StrategySource;
  readonly port: MessagePort;
  /** One word, counted up with each answer, for who waits without an event loop. */
  readonly answered: SharedArrayBuffer;
}

export interface StrategyQuestion {
  readonly number: number;
  readonly snapshot: PostedSnapshot;
}

export type StrategyAnswer =
  | { readonly number: number; readonly kind: 'decided'; readonly decision: PostedDecision }
  | { readonly number: number; readonly kind: 'failed'; readonly error: ErrorRecord };

/** A result without what a message cannot carry. Lists of workers that are the snapshot's own are left out. */
export interface PostedDecision extends Omit<SchedulingResult, 'placement' | 'failures'> {
  readonly placement: readonly (readonly [string, readonly PlacedWorker[] | null])[];
  readonly failures: readonly (readonly [string, ErrorRecord])[];
}
