/**
 * Opens a coordination from the address of a coordinator: the path of the embedded coordinator's socket. Daemons and
 * workers know nothing else of which coordinator they have.
 */
import type { Clock, Logger, ProcessIdentity, Settings } from '../base/index.js';
import type { Coordination } from './coordination.js';
import { connectEmbeddedCoordination } from './embedded/client.js';

export type CoordinatorSettings = Pick<Settings, 'coordinator.session-timeout'>;

export interface CoordinationOptions {
  /** Path of the embedded coordinator's socket. */
  readonly address: string;
  /** This process. */
  readonly process: ProcessIdentity;
  readonly settings: CoordinatorSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Connects to a coordinator. Later losses of the connection are repaired by itself.
 * @throws COORDINATOR_UNAVAILABLE when nobody answers now, SOCKET_PATH_TOO_LONG
 */
export function connectCoordination(options: CoordinationOptions): Promise<Coordination> {
  const { address, process, settings, clock, logger } = options;
  return connectEmbeddedCoordination({
    socketPath: address,
    process,
    clock,
    logger,
    sessionTimeoutMs: settings['coordinator.session-timeout'],
  });
}
