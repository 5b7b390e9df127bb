/** A supervisor as a daemon: the owner of its directory, connected to the coordinator, reading code where Nimbus keeps it. */
import { fileURLToPath } from 'node:url';
import {
  isSameProcessAlive,
  lockDirectory,
  type ProcessIdentity,
  processIdentity,
  Shutdown,
  packageEntry,
} from '../../base/index.js';
import { createBlobStore } from '../../nimbus/index.js';
import { startSupervisor, type Supervisor } from '../../supervisor/index.js';
import { connectPatiently } from './connect-patiently.js';
import type { Daemon, DaemonSurroundings } from './daemon.js';
import { type MachineShare, processOwner } from './machine.js';

const WORKER_ENTRY = fileURLToPath(packageEntry('worker/main'));

export interface SupervisorDaemonOptions extends DaemonSurroundings, MachineShare {
  readonly id: string;
  readonly host: string;
  readonly rack: string;
  /** Its own; nobody else's while it runs. */
  readonly directory: string;
  readonly socketPath: string;
  readonly coordinatorAddress: string;
  /** Of Nimbus. */
  readonly blobDirectory: string;
  /** Of the sockets between workers of this machine. */
  readonly peerSocketDirectory: string;
  readonly deadLetterDirectory: string;
  /** `run`: workers end with this process. */
  readonly keeper: ProcessIdentity | null;
}

export interface SupervisorDaemon extends Daemon {
  readonly supervisor: Supervisor;
}

/** @throws STATE_DIRECTORY_OWNED, STATE_DIRECTORY_UNUSABLE, SOCKET_PATH_TOO_LONG */
export async function startSupervisorDaemon(options: SupervisorDaemonOptions): Promise<SupervisorDaemon> {
  const shutdown = new Shutdown();
  try {
    const own = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
    const lock = lockDirectory(options.directory, own, isSameProcessAlive);
    shutdown.add('directory lock', () => lock.release());
    const coordination = await connectPatiently(options);
    shutdown.add('coordination', () => coordination.close());
    const supervisor = await startSupervisor({
      ...options,
      owner: processOwner(),
      coordination,
      workerEntry: WORKER_ENTRY,
      socketDirectory: options.peerSocketDirectory,
      blobs: createBlobStore(options.blobDirectory),
    });
    return {
      supervisor,
      close: async (how) => {
        await supervisor.close(how);
        await shutdown.close();
      },
    };
  } catch (error) {
    await shutdown.close();
    throw error;
  }
}
