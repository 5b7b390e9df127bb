/**
 * What every daemon is here: something that was started with options and can be closed. Each has a module of its own; a
 * main decides which of them share a process.
 */
import type { Clock, Logger, Settings } from '../../base/index.js';

export interface Daemon {
  /** `stopWorkers`: a supervisor ends its workers first, and leaves the cluster. Otherwise workers go on. */
  close(options: { readonly stopWorkers: boolean }): Promise<void>;
}

/** What all daemons are given. */
export interface DaemonSurroundings {
  /** The cluster's. */
  readonly settings: Settings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborted: stop starting. */
  readonly signal: AbortSignal;
}
