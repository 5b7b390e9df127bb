/** What a case of the scheduling bench is: made ready once, then decided over and over. */
import type { Library } from './library.js';

/** The row of a peer's own bench with which a case is compared. */
export type PeerRow =
  | { readonly peer: 'storm'; readonly label: string }
  | { readonly peer: 'flink'; readonly run: string; readonly case: string; readonly strategy: string };

/** What holds for a result, by metric: a value with its unit, and what a peer's row calls the same. */
export interface Fact {
  readonly value: number;
  readonly unit: string;
  readonly ofPeer?: string;
}

export interface Prepared {
  /** What is timed. */
  readonly decide: () => unknown;
  /** What holds for the last result. */
  readonly facts: () => Readonly<Record<string, Fact>>;
}

export interface SchedulingCase {
  readonly name: string;
  /** A file of the directory with production clusters; not given: the case makes its own cluster. */
  readonly data?: string;
  readonly compare?: PeerRow;
  readonly prepare: (library: Library, dataFile: string) => Prepared;
}
