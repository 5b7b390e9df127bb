/**
 * Opens a coordination from the address of a coordinator: the path of the embedded coordinator's socket, or
 * `zookeeper://host:port,host:port/chroot`. Daemons and workers know nothing else of which coordinator they have.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { isAbsolute, join } from 'node:path';
import {
  type Clock,
  hasCode,
  IsobarError,
  type Logger,
  type ProcessIdentity,
  type Settings,
} from '../base/index.js';
import type { Coordination } from './coordination.js';
import { PARENT_PATHS } from './paths.js';
import { StoreCoordination } from './store-coordination.js';
import { isZooKeeperAddress, parseZooKeeperAddress, withoutCredentials } from './zookeeper/address.js';
import { readCredentials } from './zookeeper/credentials.js';

export type CoordinatorSettings = Pick<Settings, 'coordinator.session-timeout'> &
  Partial<Pick<Settings, 'coordinator.credentials-file'>>;

export interface CoordinationOptions {
  /** Path of the embedded coordinator's socket, or `zookeeper://host:port,host:port/chroot`. */
  readonly address: string;
  /** This process. */
  readonly process: ProcessIdentity;
  /**
   * A daemon's own directory. In it a daemon remembers which cluster of a ZooKeeper it belongs to, and takes no other for
   * it, nor an empty place. Without a directory (a worker) nothing is remembered, and an empty place is refused.
   */
  readonly directory?: string;
  readonly settings: CoordinatorSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}

const MEMORY_FILE = 'coordinator-memory.json';

/**
 * Connects to a coordinator. Later losses of the connection are repaired by itself.
 * @throws COORDINATOR_ADDRESS_INVALID, COORDINATOR_CREDENTIALS_INVALID, COORDINATOR_UNAVAILABLE when nobody answers now,
 *   COORDINATOR_ACCESS_DENIED, COORDINATOR_DATA_FOREIGN, COORDINATOR_DATA_LOST, STATE_VERSION_UNKNOWN, SOCKET_PATH_TOO_LONG
 */
export async function connectCoordination(options: CoordinationOptions): Promise<Coordination> {
  const { address, process, settings, clock, logger } = options;
  const sessionTimeoutMs = settings['coordinator.session-timeout'];
  if (isZooKeeperAddress(address)) return connectZooKeeper(options);
  checkPath(address);
  // Loaded when it is needed, as below: whoever only reads what others have written starts sooner without.
  const { connectEmbeddedCoordination } = await import('./embedded/client.js');
  return connectEmbeddedCoordination({ socketPath: address, process, clock, logger, sessionTimeoutMs });
}

/** @throws COORDINATOR_ADDRESS_INVALID */
function checkPath(address: string): void {
  if (isAbsolute(address)) return;
  const shown = withoutCredentials(address);
  throw new IsobarError('COORDINATOR_ADDRESS_INVALID', `"${shown}" is no address of a coordinator`, {
    expected: 'zookeeper://HOST:PORT,HOST:PORT/CHROOT',
    found: shown,
    where: 'address of the coordinator',
  });
}

/** The coordinator cannot be asked now: nobody may conclude anything from that, and all may try again. */
export function isCoordinatorAway(error: unknown): boolean {
  return AWAY_CODES.some((code) => hasCode(error, code));
}

const AWAY_CODES = [
  'COORDINATOR_UNAVAILABLE',
  'COORDINATOR_ACCESS_DENIED',
  'COORDINATOR_DATA_FOREIGN',
  'COORDINATOR_DATA_LOST',
  'SESSION_EXPIRED',
] as const;

async function connectZooKeeper(options: CoordinationOptions): Promise<Coordination> {
  const { address, directory, settings, clock, logger } = options;
  const credentialsFile = settings['coordinator.credentials-file'] ?? null;
  if (credentialsFile !== null && !isAbsolute(credentialsFile)) {
    // Daemons and workers run in directories of their own.
    throw new IsobarError('COORDINATOR_CREDENTIALS_INVALID', `${credentialsFile} is no absolute path`, {
      expected: 'an absolute path',
      found: credentialsFile,
      where: 'coordinator.credentials-file',
    });
  }
  // Loaded when it is needed: it brings a library along.
  const { ZooKeeperNodeStore } = await import('./zookeeper/zookeeper-store.js');
  const store = new ZooKeeperNodeStore({
    address: parseZooKeeperAddress(address),
    credentials: credentialsFile === null ? null : readCredentials(credentialsFile, logger),
    sessionTimeoutMs: settings['coordinator.session-timeout'],
    memoryFile: directory === undefined ? null : join(directory, MEMORY_FILE),
    newCluster: randomBytes(8).toString('hex'),
    parents: PARENT_PATHS,
    clock,
    logger,
    random: () => randomInt(2 ** 32) / 2 ** 32,
  });
  await store.connect();
  return new StoreCoordination(store, logger);
}
