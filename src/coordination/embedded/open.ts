/** The door to the embedded coordinator for all who may never open it: what it needs is loaded when it is opened. */
import type { EmbeddedCoordinator, EmbeddedCoordinatorOptions } from './server.js';

/** Opens the coordinator of a directory and serves it at a socket; see {@link EmbeddedCoordinator}, also for its errors. */
export async function openEmbeddedCoordinator(
  options: EmbeddedCoordinatorOptions,
): Promise<EmbeddedCoordinator> {
  const server = await import('./server.js');
  return server.openEmbeddedCoordinator(options);
}
