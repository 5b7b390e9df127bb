/** What a keeper tells its daemon, and what the daemon answers over its IPC channel. Plain data. */
import type { ErrorRecord, RawSettings, ProcessIdentity } from '../../base/index.js';

import type { RunDirectory } from './run-directory.js';

/** Written as JSON to a file whose path is the daemon's first argument. */
export interface DaemonLaunch {
  readonly directory: RunDirectory;
  /** The cluster's settings over the defaults. */
  readonly settings: RawSettings;
  readonly keeper: ProcessIdentity;
}

export type FromDaemon =
  /** `stopped`: names of topologies that a former run of the state directory had not ended. */
  | { readonly kind: 'ready'; readonly stopped: readonly string[] }
  /** It could not start and ends. */
  | { readonly kind: 'failed'; readonly error: ErrorRecord };

export type ToDaemon = {
  /** Stop the workers, verify that they are gone, and end. */
  readonly kind: 'close';
};

/** Second argument of the first daemon of a run: topologies that it finds are of a former run. */
export const FIRST_DAEMON = 'first';

/** Names of the sockets in the run's socket directory. */
export const COORDINATOR_SOCKET = 'coordinator.sock';
export const SUPERVISOR_SOCKET = 'supervisor.sock';
/** The only supervisor of a local cluster. */
export const SUPERVISOR_ID = 'local';
