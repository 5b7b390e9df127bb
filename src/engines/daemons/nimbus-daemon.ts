/** Nimbus as a daemon: connected to the coordinator, with its blobs, answering commands at the control socket. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { serveControl, serveMetrics } from '../../api/index.js';
import { Shutdown } from '../../base/index.js';
import { createBlobStore, EventJournal, startNimbus } from '../../nimbus/index.js';
import { connectPatiently } from './connect-patiently.js';
import type { Daemon, DaemonSurroundings } from './daemon.js';

export interface NimbusDaemonOptions extends DaemonSurroundings {
  readonly coordinatorAddress: string;
  /** Where it keeps the code of topologies. */
  readonly blobDirectory: string;
  readonly controlSocket: string;
  /** Where a supervisor of this machine listens. */
  supervisorSocket(supervisorId: string): string;
}

export interface NimbusDaemon extends Daemon {
  /** Where it serves metrics now; null: nowhere, or the port is taken. */
  readonly metricsUrl: string | null;
}

/** @throws SOCKET_PATH_TOO_LONG, STATE_DIRECTORY_UNUSABLE */
export async function startNimbusDaemon(options: NimbusDaemonOptions): Promise<NimbusDaemon> {
  const { blobDirectory, controlSocket, settings, clock, logger } = options;
  const shutdown = new Shutdown();
  try {
    const coordination = await connectPatiently({ ...options, directory: blobDirectory });
    shutdown.add('coordination', () => coordination.close());
    const nimbus = await startNimbus({
      id: `nimbus-${process.pid}`,
      coordination,
      blobStore: createBlobStore(blobDirectory),
      journal: new EventJournal(join(blobDirectory, 'events.jsonl'), logger),
      settings,
      clock,
      logger,
      randomBytes,
    });
    shutdown.add('nimbus', () => nimbus.close());
    const control = await serveControl(controlSocket, nimbus, logger, (id) => options.supervisorSocket(id));
    shutdown.add('control', () => control.close());
    const { 'metrics.address': address, 'metrics.port': port } = settings;
    const metrics = port === null ? undefined : await serveMetrics({ nimbus, address, port, clock, logger });
    if (metrics !== undefined) shutdown.add('metrics', () => metrics.close());
    return {
      get metricsUrl() {
        return metrics?.url ?? null;
      },
      close: () => shutdown.close(),
    };
  } catch (error) {
    await shutdown.close();
    throw error;
  }
}
