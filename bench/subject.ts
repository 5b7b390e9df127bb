/** What a bench measures: something that is running, can be asked how far it is, and can be ended with its result checked. */
import type { Quantiles } from './histogram.js';

/** How far a subject is. Totals since its start. */
export interface Sample {
  /** When the totals stood so, ms since the epoch. */
  readonly atMs: number;
  /** Sentences acked; with acking off: words counted / 6. */
  readonly sentences: number;
  /** Words that the counting step has handled. */
  readonly words: number;
}

export interface Subject<S extends Sample = Sample> {
  /** The processes that do the work, daemons included. */
  pids(): readonly number[];
  /** The latest totals; may wait until the subject tells. */
  sample(): Promise<S>;
  /** Complete latency of the trees that were acked between two samples; undefined when there were none. */
  latency(before: S, after: S): Quantiles | undefined;
  /**
   * Drains, checks that nothing is lost or counted wrongly, and ends.
   *
   * Rejects with a sentence saying what was counted and what should have been.
   */
  finish(): Promise<void>;
  /** Ends at once; calling it after `finish` does nothing. */
  kill(): void;
}

/** Where the parts of the topology run. */
export type Placement = 'one-thread' | 'two-threads' | 'two-workers';

export const PLACEMENTS: readonly Placement[] = ['one-thread', 'two-threads', 'two-workers'];

export interface SubjectOptions {
  readonly placement: Placement;
  readonly acking: boolean;
  /** Sentences per second in all; 0: as fast as it goes. */
  readonly rate: number;
}

export type StartSubject = (options: SubjectOptions) => Promise<Subject>;
