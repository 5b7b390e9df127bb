/**
 * A client of the embedded coordinator: one session over a connection that comes and goes.
 *
 * K1 While away every call rejects with COORDINATOR_UNAVAILABLE; nothing is queued, since callers re-read.
 * K2 The session is the coordinator's to end: however long it was away, the client asks for its old session first.
 * K3 After each reconnect every watch is called, whatever happened meanwhile.
 */
import {
  type CancelTimer,
  type Channel,
  type Clock,
  connectChannel,
  hasCode,
  IsobarError,
  type Logger,
  type ProcessIdentity,
} from '../../base/index.js';
import type { Coordination, StopWatching } from '../coordination.js';
import type { NodeKind, NodeStore, OnNodeChange, SessionEvent, StoredNode } from '../node-store.js';
import { StoreCoordination } from '../store-coordination.js';

import {
  changedSchema,
  childrenAnswerSchema,
  type OpenAnswer,
  openAnswerSchema,
  parseMessage,
  readAnswerSchema,
  type RequestBody,
  type RequestMethod,
  writeAnswerSchema,
} from './protocol.js';
import { afterArrivedInput } from '../after-arrived-input.js';

interface EmbeddedClientOptions {
  readonly socketPath: string;
  /** This process: when it is verified gone, the session ends before its time-out. */
  readonly process: ProcessIdentity;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sessionTimeoutMs: number;
}

const FIRST_RETRY_MS = 10;
const MAX_RETRY_MS = 250;
const CLOSE_TIMEOUT_MS = 1000;

/**
 * Connects to the embedded coordinator of this machine. Later losses of the connection are repaired by itself.
 * @throws COORDINATOR_UNAVAILABLE when nobody serves the socket now, SOCKET_PATH_TOO_LONG
 */
export async function connectEmbeddedCoordination(options: EmbeddedClientOptions): Promise<Coordination> {
  const store = new EmbeddedNodeStore(options);
  await store.connect();
  return new StoreCoordination(store, options.logger);
}

type Connection =
  | { readonly kind: 'connected'; readonly channel: Channel; readonly stopPings: CancelTimer }
  | { readonly kind: 'away'; readonly cancelRetry: CancelTimer }
  | { readonly kind: 'closed' };

export class EmbeddedNodeStore implements NodeStore {
  readonly #options: EmbeddedClientOptions;
  readonly #watches = new Map<string, Set<OnNodeChange>>();
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  #connection: Connection = { kind: 'away', cancelRetry: () => {} };
  #session: string | null = null;

  constructor(options: EmbeddedClientOptions) {
    this.#options = options;
  }

  /** The first connection; called once. @throws COORDINATOR_UNAVAILABLE */
  async connect(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      this.#connection = { kind: 'closed' };
      throw hasCode(error, 'CONNECTION_LOST') ? this.#unavailable(error) : error;
    }
  }

  async create(path: string, data: Uint8Array, kind: NodeKind): Promise<void> {
    await this.#request('create', { path, data, kind });
  }

  async read(path: string): Promise<StoredNode | undefined> {
    const answer = await this.#request('read', { path });
    return parseMessage(readAnswerSchema, 'read', answer) ?? undefined;
  }

  async write(path: string, data: Uint8Array, version: number): Promise<number> {
    return parseMessage(writeAnswerSchema, 'write', await this.#request('write', { path, data, version }));
  }

  async remove(path: string, version: number): Promise<void> {
    await this.#request('remove', { path, version });
  }

  async children(path: string): Promise<readonly string[]> {
    return parseMessage(childrenAnswerSchema, 'children', await this.#request('children', { path }));
  }

  watch(path: string, onChange: OnNodeChange): StopWatching {
    // A registration of its own, so that one function given twice can be stopped once.
    const registered: OnNodeChange = (children) => onChange(children);
    const callbacks = this.#watches.get(path);
    if (callbacks !== undefined) callbacks.add(registered);
    else {
      this.#watches.set(path, new Set([registered]));
      if (this.#connection.kind === 'connected') this.#connection.channel.event('watch', path);
    }
    return () => {
      const current = this.#watches.get(path);
      if (current?.delete(registered) !== true || current.size > 0) return;
      this.#watches.delete(path);
      if (this.#connection.kind === 'connected') this.#connection.channel.event('unwatch', path);
    };
  }

  onSession(listener: (event: SessionEvent) => void): StopWatching {
    const registered = (event: SessionEvent): void => listener(event);
    this.#listeners.add(registered);
    return () => {
      this.#listeners.delete(registered);
    };
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = { kind: 'closed' };
    this.#watches.clear();
    this.#listeners.clear();
    if (connection.kind === 'away') connection.cancelRetry();
    if (connection.kind !== 'connected') return;
    connection.stopPings();
    const cancelDeadline = this.#options.clock.after(CLOSE_TIMEOUT_MS, () => connection.channel.close());
    try {
      await connection.channel.request('close');
    } catch (error) {
      // The coordinator ends the session by its time-out, or when this process is gone.
      this.#options.logger.debug('coordination.close-unanswered', { error: String(error) });
    } finally {
      cancelDeadline();
      connection.channel.close();
    }
  }

  async #request<M extends RequestMethod>(method: M, body: RequestBody<M>): Promise<unknown> {
    if (this.#connection.kind !== 'connected') throw this.#unavailable();
    try {
      return await this.#connection.channel.request(method, body);
    } catch (error) {
      if (hasCode(error, 'CONNECTION_LOST') || hasCode(error, 'SESSION_EXPIRED')) {
        throw this.#unavailable(error);
      }
      throw error;
    }
  }

  /** Connects and opens or resumes the session. Rejects when it cannot now; `#connection` is unchanged then. */
  async #open(): Promise<void> {
    const { clock, socketPath, sessionTimeoutMs } = this.#options;
    const channel = await connectChannel(socketPath, {
      onEvent: (name, body) => {
        if (name === 'changed') this.#onChanged(parseMessage(changedSchema, name, body));
      },
      onFault: (fault) =>
        this.#options.logger.warn('coordination.coordinator-refused', { reason: fault.message }),
      onClose: (closed) => this.#onClose(closed),
    });
    const cancelDeadline = clock.after(sessionTimeoutMs, () => afterArrivedInput(() => channel.close()));
    const watches = [...this.#watches.keys()];
    let opened: OpenAnswer;
    try {
      const answer = await channel.request('open', {
        session: this.#session,
        timeoutMs: sessionTimeoutMs,
        process: this.#options.process,
        watches,
      } satisfies RequestBody<'open'>);
      opened = parseMessage(openAnswerSchema, 'open', answer);
    } catch (error) {
      channel.close();
      throw error;
    } finally {
      cancelDeadline();
    }
    const { session, timeoutMs } = opened;
    if (this.#connection.kind === 'closed' || channel.isClosed) {
      channel.close();
      throw this.#unavailable();
    }
    // Watches that began or ended while this was on its way.
    for (const path of this.#watches.keys()) if (!watches.includes(path)) channel.event('watch', path);
    for (const path of watches) if (!this.#watches.has(path)) channel.event('unwatch', path);
    const previous = this.#session;
    this.#session = session;
    this.#connection = { kind: 'connected', channel, stopPings: this.#startPings(channel, timeoutMs) };
    if (previous === null) return;
    if (previous !== session) {
      this.#options.logger.warn('coordination.session-expired', { socketPath });
      this.#emit('expired');
    }
    this.#options.logger.info('coordination.reconnected', { socketPath, resumed: previous === session });
    this.#emit('connected');
    for (const path of [...this.#watches.keys()]) this.#callWatches(path);
  }

  /** A coordinator that answers no ping for two thirds of the time-out is away, though its socket is open. */
  #startPings(channel: Channel, timeoutMs: number): CancelTimer {
    const { clock, logger } = this.#options;
    let lastHeardMs = clock.nowMs();
    const ping = (): void => {
      channel.request('ping').then(
        () => {
          lastHeardMs = clock.nowMs();
        },
        (error: unknown) => {
          // The connection is gone, which #onClose handles, or the session is, and the server closes the connection.
          logger.debug('coordination.ping-failed', { error: String(error) });
        },
      );
    };
    const isSilent = (): boolean => clock.nowMs() - lastHeardMs >= (timeoutMs * 2) / 3;
    return clock.every(timeoutMs / 3, () => {
      ping();
      if (!isSilent()) return;
      afterArrivedInput(() => {
        if (channel.isClosed || !isSilent()) return;
        logger.warn('coordination.coordinator-silent', { forMs: clock.nowMs() - lastHeardMs });
        channel.close();
      }, 16);
    });
  }

  #onClose(channel: Channel): void {
    const connection = this.#connection;
    if (connection.kind !== 'connected' || connection.channel !== channel) return;
    connection.stopPings();
    this.#options.logger.warn('coordination.connection-lost', { socketPath: this.#options.socketPath });
    this.#retry(0);
    this.#emit('suspended');
  }

  #retry(attempt: number): void {
    const { clock, logger } = this.#options;
    const delayMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
    const cancelRetry = clock.after(delayMs, () => {
      this.#open().catch((error: unknown) => {
        if (this.#connection.kind !== 'away') return;
        logger.debug('coordination.reconnect-failed', { attempt, error: String(error) });
        this.#retry(attempt + 1);
      });
    });
    this.#connection = { kind: 'away', cancelRetry };
  }

  #onChanged(changes: readonly (readonly [path: string, children: readonly string[]])[]): void {
    for (const [path, children] of changes) this.#callWatches(path, children);
  }

  #callWatches(path: string, children?: readonly string[]): void {
    for (const callback of [...(this.#watches.get(path) ?? [])]) this.#callSafely(() => callback(children));
  }

  #emit(event: SessionEvent): void {
    for (const listener of [...this.#listeners]) this.#callSafely(() => listener(event));
  }

  /** A callback that throws must not keep the others from being called. */
  #callSafely(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#options.logger.error('coordination.callback-failed', { error: String(error) });
    }
  }

  #unavailable(cause?: unknown): IsobarError {
    const { socketPath } = this.#options;
    return new IsobarError(
      'COORDINATOR_UNAVAILABLE',
      this.#connection.kind === 'closed'
        ? 'this connection to the coordinator is closed'
        : `the coordinator at ${socketPath} does not answer`,
      { expected: 'a coordinator that answers', found: 'no connection', where: socketPath },
      cause,
    );
  }
}
