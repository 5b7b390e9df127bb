/** The embedded coordinator as a daemon. */
import { openEmbeddedCoordinator } from '../../coordination/index.js';
import type { Daemon, DaemonSurroundings } from './daemon.js';

export interface CoordinatorDaemonOptions extends DaemonSurroundings {
  /** Its own. */
  readonly directory: string;
  readonly socketPath: string;
}

/** @throws STATE_DIRECTORY_OWNED, STATE_DIRECTORY_UNUSABLE, STATE_DAMAGED, STATE_VERSION_UNKNOWN, SOCKET_PATH_TOO_LONG */
export async function startCoordinatorDaemon(options: CoordinatorDaemonOptions): Promise<Daemon> {
  const coordinator = await openEmbeddedCoordinator({
    directory: options.directory,
    socketPath: options.socketPath,
    clock: options.clock,
    logger: options.logger,
    sessionTimeoutMs: options.settings['coordinator.session-timeout'],
  });
  return { close: () => coordinator.close() };
}
