/**
 * Asks the daemon of a cluster, and asks again when it ends in between: somebody may be starting it anew. Every request may be
 * sent twice; those that must not be carried out twice name themselves.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { hasCode, IsobarError } from '../base/index.js';
import { controlSocketPath } from './cluster-place.js';
import { CONTRACT_VERSION, type ControlRequests, type PingAnswer } from './contract.js';
import { connectControl, type ControlClient } from './control-socket.js';

export interface ClusterClient {
  /** @throws what the request throws, DAEMON_NOT_RUNNING, DAEMON_VERSION_MISMATCH, CONNECTION_LOST, REQUEST_TIMEOUT */
  ask<M extends keyof ControlRequests>(
    method: M,
    body: ControlRequests[M]['body'],
  ): Promise<ControlRequests[M]['answer']>;
  close(): void;
}

/** How long a daemon is waited for that has answered before, or has left its socket: a successor needs seconds on a busy machine. */
const PATIENCE_MS = 15_000;
const RETRY_MS = 100;
const SLOW_MS = 2000;
const PING_TIMEOUT_MS = 5000;

export interface ClusterClientOptions {
  /** How long a daemon is waited for that has left its socket. */
  readonly patienceMs?: number;
  /** Told once if a question has had no answer for `slowMs`; `isAway`: because no daemon can be reached. */
  readonly onSlow?: (isAway: boolean) => void;
  readonly slowMs?: number;
}

/** Talks to the cluster in `directory`; nothing is connected before the first question. */
export function clusterClient(directory: string, options: ClusterClientOptions = {}): ClusterClient {
  const socketPath = controlSocketPath(directory);
  let connection: ControlClient | undefined;
  let hasBeenThere = false;
  let isAway = false;
  let isSlowTold = false;
  const tellSlow = (): void => {
    if (!isSlowTold) options.onSlow?.(isAway);
    isSlowTold = true;
  };
  const connected = async (): Promise<ControlClient> => {
    if (connection?.isClosed === false) return connection;
    connection = await openControl(socketPath);
    hasBeenThere = true;
    return connection;
  };
  /** A daemon that was killed leaves its socket; one that starts has none for a moment. */
  const mayBeBack = (error: unknown): boolean => {
    if (hasCode(error, 'NOT_LEADER') || hasCode(error, 'COORDINATOR_UNAVAILABLE')) return true;
    if (hasCode(error, 'DAEMON_NOT_RUNNING')) return hasBeenThere;
    const hasSocket = statSync(socketPath, { throwIfNoEntry: false }) !== undefined;
    return hasCode(error, 'CONNECTION_LOST') && (hasBeenThere || hasSocket);
  };
  return {
    ask: async (method, body) => {
      const startMs = performance.now();
      const slow = setTimeout(tellSlow, options.slowMs ?? SLOW_MS);
      try {
        for (;;) {
          try {
            const answer = await (await connected()).ask(method, body);
            isAway = false;
            return answer;
          } catch (error) {
            if (!mayBeBack(error)) throw error;
            isAway = true;
            const patienceMs = options.patienceMs ?? PATIENCE_MS;
            if (performance.now() - startMs >= patienceMs) throw gaveUp(error, directory, socketPath);
            await pause(RETRY_MS);
          }
        }
      } finally {
        clearTimeout(slow);
      }
    },
    close: () => connection?.close(),
  };
}

/** Connects to a daemon that speaks this contract. @throws DAEMON_NOT_RUNNING, DAEMON_VERSION_MISMATCH, CONNECTION_LOST */
async function openControl(socketPath: string): Promise<ControlClient> {
  checkPlace(socketPath);
  const control = await connectControl(socketPath);
  let answer: PingAnswer;
  try {
    answer = await control.ask('ping', null, { timeoutMs: PING_TIMEOUT_MS });
  } catch (error) {
    control.close();
    throw hasCode(error, 'USAGE') ? otherVersion(socketPath, 'a daemon that knows no ping') : error;
  }
  // Whatever a daemon of another version answers, it may lack what it does not know of.
  const contract: unknown = (answer as Partial<PingAnswer> | null)?.contract;
  if (contract === CONTRACT_VERSION) return control;
  control.close();
  throw otherVersion(
    socketPath,
    contract === undefined ? 'version 1' : `version ${JSON.stringify(contract)}`,
  );
}

function otherVersion(socketPath: string, found: string): IsobarError {
  return new IsobarError(
    'DAEMON_VERSION_MISMATCH',
    'the daemon speaks another version of the control contract than this command',
    { expected: `version ${CONTRACT_VERSION}`, found, where: socketPath },
  );
}

/** @throws DAEMON_NOT_RUNNING where no daemon of this user has ever been */
function checkPlace(socketPath: string): void {
  const found = [dirname(socketPath), socketPath].map((path) => statSync(path, { throwIfNoEntry: false }));
  const user = process.getuid?.();
  const isForeign = found.some((stats) => user !== undefined && stats !== undefined && stats.uid !== user);
  if (!found.includes(undefined) && !isForeign) return;
  throw new IsobarError('DAEMON_NOT_RUNNING', 'no daemon is running there', {
    expected: 'a daemon that listens',
    found: isForeign ? 'a directory or socket of another user' : 'no socket',
    where: socketPath,
  });
}

function gaveUp(error: unknown, directory: string, socketPath: string): unknown {
  if (!hasCode(error, 'CONNECTION_LOST')) return error;
  return new IsobarError(
    'DAEMON_NOT_RUNNING',
    `the daemon of ${directory} does not answer any more`,
    { expected: 'a daemon that listens', found: 'a socket that nobody serves', where: socketPath },
    error,
  );
}
