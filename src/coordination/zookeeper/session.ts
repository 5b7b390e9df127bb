/**
 * One session over the servers of an ensemble: which server it is connected to, and what comes after a loss.
 *
 *     away ──a server lets it in, the data are right──► connected ──connection lost──► away
 *       └──a server lets it in, the data are not──► refused ──looked again, and they are──► connected
 *
 * S1 The session is the ensemble's to end: however long it was away, the client asks for its old session first.
 * S2 A new session is made as soon as the ensemble says that the old one has expired.
 * S3 A server that has not seen what this client has refuses it, for good if the ensemble has lost its data. Once the
 *    client has been away for a session's time-out and was refused, every other round asks without that memory.
 * S4 Nothing is read or written over a connection before `check` has found the cluster's own data behind it.
 */
import { IsobarError, type CancelTimer, type Clock, type Logger } from '../../base/index.js';
import type { SessionEvent } from '../node-store.js';
import { formatServer, type ZooKeeperServer } from './address.js';
import type { DigestCredentials } from './credentials.js';
import {
  type NodeEvent,
  type OpenOutcome,
  openServerConnection,
  type ServerConnection,
  type SessionTicket,
} from './server-connection.js';

/** What a look at the data behind a connection found; an error says why they are not to be used. */
export type CheckResult = 'right' | 'lost' | IsobarError;

export interface ZooKeeperSessionOptions {
  readonly servers: readonly ZooKeeperServer[];
  /** The address, for messages. */
  readonly where: string;
  readonly credentials: DigestCredentials | null;
  readonly sessionTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly check: (connection: ServerConnection) => Promise<CheckResult>;
  readonly onNodeEvent: (event: NodeEvent) => void;
  /** Changes after the first connection. */
  readonly onEvent: (event: SessionEvent) => void;
}

type State =
  | { readonly kind: 'away'; readonly sinceMs: number }
  | { readonly kind: 'connected'; readonly connection: ServerConnection }
  | { readonly kind: 'refused'; readonly connection: ServerConnection; readonly error: IsobarError }
  | { readonly kind: 'closed' };

interface Waiter {
  readonly resolve: (connection: ServerConnection) => void;
  readonly reject: (error: IsobarError) => void;
}

const FIRST_RETRY_MS = 20;
const MAX_RETRY_MS = 1000;
const MIN_OPEN_TIMEOUT_MS = 500;
const MAX_OPEN_TIMEOUT_MS = 5000;
/** Data that are not this cluster's are looked at again after this time: they may be restored. */
const RECHECK_MS = 2000;
const NOTHING_SEEN = Buffer.alloc(8);

export class ZooKeeperSession {
  readonly #options: ZooKeeperSessionOptions;
  readonly #servers: readonly ZooKeeperServer[];
  readonly #waiters = new Set<Waiter>();
  readonly #cancels = new Set<CancelTimer>();
  #state: State;
  #nextServer = 0;
  #ticket: SessionTicket | null = null;
  #lastSeen: Buffer = NOTHING_SEEN;
  #isChecking = false;

  constructor(options: ZooKeeperSessionOptions) {
    this.#options = options;
    // Clients spread over the servers.
    this.#servers = shuffled(options.servers, options.random);
    this.#state = { kind: 'away', sinceMs: options.clock.nowMs() };
  }

  /** @throws COORDINATOR_UNAVAILABLE, and what `check` finds wrong */
  async connect(): Promise<void> {
    try {
      await this.#establish(true);
    } catch (error) {
      this.#state = { kind: 'closed' };
      throw error;
    }
  }

  /** Ends a session of a process that is gone, if it still lives, so that what it held is free at once. */
  async endFormer(ticket: SessionTicket): Promise<void> {
    for (const server of this.#servers) {
      const outcome = await this.#open(server, ticket, NOTHING_SEEN);
      if (outcome.kind === 'open') await outcome.connection.close();
      if (outcome.kind === 'open' || outcome.kind === 'expired') return;
    }
  }

  /** The session, for {@link endFormer} of a later process; null before the first connection. */
  get ticket(): SessionTicket | null {
    return this.#ticket;
  }

  /** @throws COORDINATOR_UNAVAILABLE, COORDINATOR_DATA_LOST, … while nothing can be asked */
  connection(): ServerConnection {
    if (this.#state.kind === 'connected') return this.#state.connection;
    if (this.#state.kind === 'refused') throw this.#state.error;
    throw this.unavailable(this.#state.kind === 'closed' ? 'closed' : 'no connection');
  }

  /** As {@link connection}, waiting for one until `deadlineMs` of the clock. */
  nextConnection(deadlineMs: number): Promise<ServerConnection> {
    if (this.#state.kind !== 'away') return Promise.resolve().then(() => this.connection());
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { resolve, reject };
      this.#waiters.add(waiter);
      this.#after(Math.max(0, deadlineMs - this.#options.clock.nowMs()), () => {
        if (this.#waiters.delete(waiter)) reject(this.unavailable('no connection'));
      });
    });
  }

  /** Looks at the data again: they may be gone although the connection is there. */
  recheck(): void {
    if (this.#state.kind === 'connected' || this.#state.kind === 'refused') {
      void this.#recheck(this.#state.connection);
    }
  }

  isOfThisSession(owner: Buffer): boolean {
    return this.#ticket?.id.equals(owner) === true;
  }

  async close(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    for (const { reject } of this.#waiters) reject(this.unavailable('closed'));
    this.#waiters.clear();
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
    if (state.kind === 'connected' || state.kind === 'refused') await state.connection.close();
  }

  unavailable(found: string): IsobarError {
    const { where } = this.#options;
    return new IsobarError(
      'COORDINATOR_UNAVAILABLE',
      this.#state.kind === 'closed' && found === 'closed'
        ? 'this connection to the coordinator is closed'
        : `the coordinator at ${where} does not answer (${found})`,
      { expected: 'a coordinator that answers', found, where },
    );
  }

  /** Goes round the servers until one lets the session in. */
  async #establish(isFirst: boolean): Promise<void> {
    const { clock, logger, sessionTimeoutMs, where } = this.#options;
    const sinceMs = clock.nowMs();
    let wasRefused = false;
    let isReported = false;
    for (let round = 0; ; round++) {
      const isLong = clock.nowMs() - sinceMs >= sessionTimeoutMs;
      const lastSeen = isLong && wasRefused && round % 2 === 1 ? NOTHING_SEEN : this.#lastSeen;
      const faults: string[] = [];
      for (let count = 0; count < this.#servers.length; count++) {
        const server = this.#servers[this.#nextServer++ % this.#servers.length]!;
        const fault = await this.#try(server, lastSeen, isFirst);
        if (fault === null || this.#hasClosed()) return;
        wasRefused ||= fault === REFUSED;
        faults.push(`${formatServer(server)}: ${fault}`);
      }
      if (isFirst && (isLong || !wasRefused)) throw this.unavailable(faults.join(', '));
      logger.debug('coordination.reconnect-failed', { round, faults });
      if (isLong && !isReported) {
        isReported = true;
        logger.warn('coordination.coordinator-away', { where, forMs: clock.nowMs() - sinceMs, faults });
      }
      const longestMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(round, 10));
      await this.#delay(longestMs * (0.5 + this.#options.random() / 2));
      if (this.#hasClosed()) return;
    }
  }

  /** One server. Resolves to what kept it from letting the session in, or null. @throws what `check` finds, at first */
  async #try(server: ZooKeeperServer, lastSeen: Buffer, isFirst: boolean): Promise<string | null> {
    let outcome = await this.#open(server, this.#ticket, lastSeen);
    if (outcome.kind === 'expired' && !this.#hasClosed()) {
      this.#onExpired();
      outcome = await this.#open(server, null, lastSeen);
    }
    if (outcome.kind !== 'open') return faultOf(outcome);
    const { connection } = outcome;
    if (this.#hasClosed()) {
      await connection.close();
      return null;
    }
    this.#ticket = connection.session;
    const result = await this.#options.check(connection);
    if (this.#hasClosed() || (isFirst && result instanceof IsobarError)) await connection.close();
    if (this.#hasClosed()) return null;
    if (isFirst && result instanceof IsobarError) throw result;
    if (result === 'lost' || !connection.isOpen) return 'the connection was lost at once';
    this.#enter(connection, result, isFirst);
    return null;
  }

  #enter(connection: ServerConnection, result: 'right' | IsobarError, isFirst: boolean): void {
    const { logger, where } = this.#options;
    const before = this.#state;
    if (result === 'right') {
      this.#state = { kind: 'connected', connection };
      if (!isFirst) logger.info('coordination.reconnected', { where });
      if (!isFirst) this.#options.onEvent('connected');
      for (const { resolve } of this.#waiters) resolve(connection);
    } else {
      this.#state = { kind: 'refused', connection, error: result };
      if (before.kind === 'connected') this.#options.onEvent('suspended');
      if (before.kind !== 'refused' || before.error.code !== result.code) {
        logger.error('coordination.refused', { code: result.code, message: result.message, where });
      }
      this.#after(RECHECK_MS, () => void this.#recheck(connection));
      for (const { reject } of this.#waiters) reject(result);
    }
    this.#waiters.clear();
  }

  async #recheck(connection: ServerConnection): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const result = await this.#options.check(connection);
    this.#isChecking = false;
    const { kind } = this.#state;
    if (result === 'lost' || !connection.isOpen || kind === 'closed' || kind === 'away') return;
    if (kind === 'refused' || result !== 'right') this.#enter(connection, result, false);
  }

  #onClosed(connection: ServerConnection): void {
    this.#lastSeen = connection.lastSeen;
    const state = this.#state;
    if (state.kind === 'away' || state.kind === 'closed' || state.connection !== connection) return;
    this.#state = { kind: 'away', sinceMs: this.#options.clock.nowMs() };
    this.#options.logger.warn('coordination.connection-lost', { where: this.#options.where });
    if (state.kind === 'connected') this.#options.onEvent('suspended');
    void this.#establish(false);
  }

  #onExpired(): void {
    if (this.#ticket === null) return;
    this.#ticket = null;
    this.#options.logger.warn('coordination.session-expired', { where: this.#options.where });
    this.#options.onEvent('expired');
  }

  #open(server: ZooKeeperServer, ticket: SessionTicket | null, lastSeen: Buffer): Promise<OpenOutcome> {
    const { credentials, sessionTimeoutMs, clock, onNodeEvent } = this.#options;
    const shareMs = sessionTimeoutMs / this.#servers.length;
    return openServerConnection({
      server,
      ticket,
      lastSeen,
      sessionTimeoutMs,
      openTimeoutMs: Math.max(MIN_OPEN_TIMEOUT_MS, Math.min(MAX_OPEN_TIMEOUT_MS, shareMs)),
      credentials,
      clock,
      onNodeEvent,
      onClosed: (connection) => this.#onClosed(connection),
    });
  }

  #hasClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  #after(delayMs: number, run: () => void): void {
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#cancels.delete(cancel);
      run();
    });
    this.#cancels.add(cancel);
  }

  #delay(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#after(delayMs, resolve));
  }
}

const REFUSED = 'it takes connections but does not serve';

function faultOf(outcome: Exclude<OpenOutcome, { kind: 'open' }>): string {
  switch (outcome.kind) {
    case 'refused':
      return REFUSED;
    case 'unreachable':
      return outcome.reason;
    case 'not-zookeeper':
      return 'it is no ZooKeeper server';
    case 'expired':
      return 'it ended a new session';
  }
}

/** Fisher and Yates. */
function shuffled<T>(values: readonly T[], random: () => number): readonly T[] {
  const all = [...values];
  for (let last = all.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [all[last], all[other]] = [all[other]!, all[last]!];
  }
  return all;
}
