/**
 * How daemons of `isobar dev` are told from others and talked to: each owns a directory lock of its own while it lives, and
 * answers at a socket, whoever started it and whether that one still lives.
 */
import { join } from 'node:path';
import {
  type Channel,
  type ChannelHandlers,
  type ChannelServer,
  connectChannel,
  directoryOwner,
  type ErrorRecord,
  IsobarError,
  isSameProcessAlive,
  type Logger,
  type ProcessIdentity,
  serveChannels,
} from '../../base/index.js';
import type { DaemonPlan } from './daemon-plan.js';
import type { DevDirectory } from './dev-directory.js';

/** How far a daemon has come. */
export type DaemonState = 'starting' | 'ready' | 'closing';

export interface DaemonAnswer {
  readonly pid: number;
  readonly version: string;
  readonly state: DaemonState;
  readonly startedMs: number;
  /** Where it serves metrics now; null: nowhere. Absent: another version's. */
  readonly metricsUrl?: string | null;
}

/** Written as JSON to a file whose path is the daemon's first argument. */
export interface DevDaemonLaunch extends DaemonPlan {
  /** The cluster's directory. */
  readonly directory: string;
  readonly coordinatorAddress: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Among how many supervisors this machine is divided. */
  readonly supervisors: number;
}

/** What a daemon tells whoever started it, while that one still listens. */
export type FromDevDaemon =
  | { readonly kind: 'ready' }
  /** It ends. */
  | { readonly kind: 'failed'; readonly error: ErrorRecord };

export interface DaemonFiles {
  /** Of its directory lock. */
  readonly lock: string;
  readonly launch: string;
  readonly log: string;
  readonly socket: string;
}

export function daemonFiles(directory: DevDirectory, id: string): DaemonFiles {
  // Sockets' names must be short; a name of a supervisor has 32 characters at most.
  const socket = id.startsWith('supervisor-') ? `v-${id.slice('supervisor-'.length)}` : `d-${id}`;
  return {
    lock: join(directory.daemons, id),
    launch: join(directory.daemons, `${id}.json`),
    log: join(directory.logs, `${id}.log`),
    socket: join(directory.socketDirectory, `${socket}.sock`),
  };
}

/** The process that is this daemon now. */
export function findDaemon(directory: DevDirectory, id: string): ProcessIdentity | undefined {
  return directoryOwner(daemonFiles(directory, id).lock, isSameProcessAlive);
}

const ASK_TIMEOUT_MS = 2000;

/** What a daemon says of itself; undefined: nothing (yet, any more, or for now). */
export async function askDaemon(directory: DevDirectory, id: string): Promise<DaemonAnswer | undefined> {
  let channel: Channel | undefined;
  try {
    channel = await connectChannel(daemonFiles(directory, id).socket);
    // The same version's, or one that answers the same: its fields are only shown.
    return (await channel.request('about', null, { timeoutMs: ASK_TIMEOUT_MS })) as DaemonAnswer;
  } catch {
    return undefined;
  } finally {
    channel?.close();
  }
}

/** Asks a daemon to close; resolves to whether it has heard. It ends by itself. */
export async function tellDaemonToClose(
  directory: DevDirectory,
  id: string,
  how: { readonly stopWorkers: boolean },
): Promise<boolean> {
  let channel: Channel | undefined;
  try {
    channel = await connectChannel(daemonFiles(directory, id).socket);
    await channel.request('close', how, { timeoutMs: ASK_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  } finally {
    channel?.close();
  }
}

/** The daemon's side. `close` is answered before it is carried out. */
export function serveDaemon(
  socketPath: string,
  handlers: { about(): DaemonAnswer; close(how: { readonly stopWorkers: boolean }): void },
  logger: Logger,
): Promise<ChannelServer> {
  const conversation: ChannelHandlers = {
    onRequest(method, body) {
      if (method === 'about') return handlers.about();
      if (method !== 'close')
        throw new IsobarError('USAGE', `a daemon does not answer "${method}"`, { found: method });
      const stopWorkers =
        typeof body === 'object' && body !== null && 'stopWorkers' in body && body.stopWorkers === true;
      handlers.close({ stopWorkers });
      return null;
    },
  };
  return serveChannels(socketPath, () => conversation, logger);
}
