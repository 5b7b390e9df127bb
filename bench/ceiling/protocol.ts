/** What the harness and the processes of a ceiling say to each other, and what a process and its threads share. */
import { HISTOGRAM_BUCKETS } from '../histogram.js';
import { TOTALS } from './host.js';

/** What a host does; the first word of its control words. */
export const RUN = 0;
export const DRAIN = 1;
export const STOP = 2;

export interface CeilingStart {
  readonly acking: boolean;
  /** Sentences per second of one host; 0: as fast as it goes. */
  readonly ratePerHost: number;
  /** One process with so many threads, or one host of two processes that meet at a socket. */
  readonly place:
    | { readonly kind: 'threads'; readonly count: 1 | 2 }
    | { readonly kind: 'process'; readonly index: 0 | 1; readonly socketPath: string };
}

export type ToCeiling =
  | ({ readonly kind: 'start' } & CeilingStart)
  | { readonly kind: 'sample' }
  | { readonly kind: 'drain' }
  | { readonly kind: 'stop' };

export interface HostSample {
  readonly totals: Float64Array;
  readonly histogram: Int32Array;
}

export type FromCeiling =
  | { readonly kind: 'listening' }
  | { readonly kind: 'running' }
  | { readonly kind: 'sample'; readonly atMs: number; readonly hosts: readonly HostSample[] }
  | { readonly kind: 'counts'; readonly hosts: readonly ReadonlyMap<string, number>[] };

/** Memory that a host's thread shares with the main thread of its process. */
export interface HostMemory {
  readonly control: Int32Array;
  readonly totals: Float64Array;
  readonly histogram: Int32Array;
}

export function openHostMemory(memory: SharedArrayBuffer): HostMemory {
  return {
    control: new Int32Array(memory, 0, 2),
    totals: new Float64Array(memory, 8, TOTALS),
    histogram: new Int32Array(memory, 8 + TOTALS * 8, HISTOGRAM_BUCKETS),
  };
}

export function allocateHostMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(8 + TOTALS * 8 + HISTOGRAM_BUCKETS * 4);
}
