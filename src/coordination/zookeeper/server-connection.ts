/**
 * One connection to one ZooKeeper server, made of one client of `node-zookeeper-client`; sessions, retries and the choice
 * of a server are above (`session.ts`). The library speaks the protocol; what it gets wrong in failures is kept
 * from it, since its own reconnecting would send stale requests, read half a frame of the connection before and never
 * notice a silent server or lost data.
 *
 * Z1 A client connects once. Whatever ends the connection ends all its calls with `lost`, and nothing is queued for later.
 * Z2 The library is given whole frames of a sane size, with error codes that it knows; anything else ends the connection.
 * Z3 A server that is silent for two thirds of the session's time-out, or leaves a call unanswered for all of it, is gone.
 *    Time in which this process itself did not run is not counted.
 */
import type { Socket } from 'node:net';
import { type Client, createClient, Event, Exception, type Stat } from 'node-zookeeper-client';
import type { CancelTimer, Clock } from '../../base/index.js';
import { afterArrivedInput } from '../after-arrived-input.js';
import type { ZooKeeperServer } from './address.js';
import type { DigestCredentials } from './credentials.js';
import { checkGreeting, FrameSplitter, withKnownError } from './frames.js';
import { type Acl, CREATE_EPHEMERAL, CREATE_PERSISTENT, toLibraryAcl } from './library-values.js';

/** What a server said no with; `lost`: the connection went, and the call may have taken effect. */
export type Refusal =
  | 'lost'
  | 'no-node'
  | 'node-exists'
  | 'bad-version'
  | 'not-empty'
  | 'no-auth'
  | { readonly code: number };

export type Answer<T> =
  | { readonly isDone: true; readonly value: T }
  | { readonly isDone: false; readonly refusal: Refusal };

/** A session, as another connection needs it to go on with it. */
export interface SessionTicket {
  readonly id: Buffer;
  readonly password: Buffer;
}

export type OpenOutcome =
  | { readonly kind: 'open'; readonly connection: ServerConnection }
  /** The session of the ticket is over. */
  | { readonly kind: 'expired' }
  /** The server took the connection and closed it: it does not serve now, or has not seen what this client has. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'not-zookeeper' };

/** What a watch tells, once. `children`: one was added or removed. */
export interface NodeEvent {
  readonly path: string;
  readonly kind: 'created' | 'changed' | 'removed' | 'children';
}

export interface ServerConnectionOptions {
  readonly server: ZooKeeperServer;
  readonly ticket: SessionTicket | null;
  /** The last transaction that the client has seen: a server that has not is refused. Eight bytes. */
  readonly lastSeen: Buffer;
  readonly sessionTimeoutMs: number;
  /** Time for connecting and being let in, ms. */
  readonly openTimeoutMs: number;
  readonly credentials: DigestCredentials | null;
  readonly clock: Clock;
  /** A watch has fired. */
  readonly onNodeEvent: (event: NodeEvent) => void;
  /** Called once, after `open`. */
  readonly onClosed: (connection: ServerConnection) => void;
}

/** What is used of the library beyond its interface. It is pinned to one version; `openServerConnection` checks it. */
interface Internals {
  servers: readonly ZooKeeperServer[];
  zxid: Buffer;
  readonly socket?: Socket;
  connect: () => void;
  onSocketData: (chunk: Buffer) => void;
}

type Callback<T> = (error: Error | Exception | null, value: T) => void;

const EVENT_KINDS: ReadonlyMap<number, NodeEvent['kind']> = new Map([
  [Event.NODE_CREATED, 'created'],
  [Event.NODE_DATA_CHANGED, 'changed'],
  [Event.NODE_DELETED, 'removed'],
  [Event.NODE_CHILDREN_CHANGED, 'children'],
]);
const CHECKS_PER_TIMEOUT = 12;
const CLOSE_TIMEOUT_MS = 1000;

/** Connects to a server and opens a session, or goes on with that of a ticket. Never rejects for what a server does. */
export function openServerConnection(options: ServerConnectionOptions): Promise<OpenOutcome> {
  return new Promise((resolve) => {
    const connection = new ServerConnection(options, resolve);
    connection.start();
  });
}

export class ServerConnection {
  readonly #options: ServerConnectionOptions;
  readonly #client: Client;
  readonly #internals: Internals;
  readonly #frames = new FrameSplitter();
  readonly #settle: (outcome: OpenOutcome) => void;
  /** Start of each call that is under way, oldest first, with what ends it. */
  readonly #calls = new Map<number, { readonly sinceMs: number; readonly lose: () => void }>();
  readonly #timers: CancelTimer[] = [];
  readonly #closed: Promise<void>;
  #resolveClosed: () => void = () => {};
  #phase: 'opening' | 'open' | 'closed' = 'opening';
  #hasReached = false;
  #isForeign = false;
  #reason = 'no answer in time';
  #nextCall = 0;
  #lastHeardMs: number;
  #lastCheckMs: number;
  #missedMs = 0;

  constructor(options: ServerConnectionOptions, settle: (outcome: OpenOutcome) => void) {
    this.#options = options;
    this.#settle = settle;
    this.#lastHeardMs = this.#runningMs();
    this.#lastCheckMs = options.clock.nowMs();
    this.#closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    const { ticket, credentials } = options;
    const libraryOptions = {
      sessionTimeout: options.sessionTimeoutMs,
      retries: 0,
      ...(ticket === null ? {} : { sessionId: ticket.id, sessionPassword: ticket.password }),
    };
    this.#client = createClient('set-below', libraryOptions);
    this.#internals = internalsOf(this.#client);
    this.#internals.servers = [options.server];
    this.#internals.zxid = Buffer.from(options.lastSeen);
    if (credentials !== null) {
      this.#client.addAuthInfo('digest', Buffer.from(`${credentials.user}:${credentials.password}`));
    }
  }

  get session(): SessionTicket {
    return { id: this.#client.getSessionId(), password: this.#client.getSessionPassword() };
  }

  /** As granted by the server. */
  get sessionTimeoutMs(): number {
    return this.#client.getSessionTimeout();
  }

  get lastSeen(): Buffer {
    return Buffer.from(this.#internals.zxid);
  }

  get isOpen(): boolean {
    return this.#phase === 'open';
  }

  /** Called once, by {@link openServerConnection}. */
  start(): void {
    const internals = this.#internals;
    const deliver = internals.onSocketData.bind(internals);
    internals.onSocketData = (chunk) => this.#onData(chunk, deliver);
    this.#client.once('connected', () => this.#onConnected());
    this.#client.once('expired', () => this.#end({ kind: 'expired' }));
    this.#timers.push(this.#options.clock.after(this.#options.openTimeoutMs, () => this.destroy()));
    this.#client.connect();
    internals.connect = () => {};
    // The library makes its socket in the next tick, which it has asked for before this.
    process.nextTick(() => {
      internals.socket?.once('connect', () => {
        this.#hasReached = true;
      });
      internals.socket?.once('error', (error) => {
        this.#reason = error.message;
      });
      // Behind the library's own listener; its event "disconnected" does not come before the first connection.
      internals.socket?.once('close', () => this.#end(this.#failedOutcome()));
      if (this.#phase === 'closed') internals.socket?.destroy();
    });
  }

  create(path: string, data: Buffer, isEphemeral: boolean, acl: Acl): Promise<Answer<string>> {
    const mode = isEphemeral ? CREATE_EPHEMERAL : CREATE_PERSISTENT;
    return this.#call((done) => this.#client.create(path, data, toLibraryAcl(acl), mode, done));
  }

  async getData(path: string): Promise<Answer<{ readonly data: Buffer; readonly stat: Stat }>> {
    let stat: Stat | undefined;
    const answer = await this.#call<Buffer | undefined>((done) =>
      this.#client.getData(path, (error, data, found) => {
        stat = found;
        done(error, data);
      }),
    );
    if (!answer.isDone) return answer;
    return stat === undefined
      ? { isDone: false, refusal: 'lost' }
      : { isDone: true, value: { data: answer.value ?? Buffer.alloc(0), stat } };
  }

  setData(path: string, data: Buffer, version: number): Promise<Answer<Stat>> {
    return this.#call((done) => this.#client.setData(path, data, version, done));
  }

  remove(path: string, version = -1): Promise<Answer<undefined>> {
    return this.#call((done) => this.#client.remove(path, version, (error) => done(error, undefined)));
  }

  getChildren(path: string): Promise<Answer<readonly string[]>> {
    return this.#call((done) => this.#client.getChildren(path, done));
  }

  /** As {@link getChildren}, and `onNodeEvent` is called once when a child is added or removed. */
  watchChildren(path: string): Promise<Answer<readonly string[]>> {
    return this.#call((done) => this.#client.getChildren(path, this.#onEvent, done));
  }

  /** Resolves to whether the node exists; `onNodeEvent` is called once when it is created, changed or removed. */
  async watchNode(path: string): Promise<Answer<boolean>> {
    const answer = await this.#call<Stat | null>((done) => this.#client.exists(path, this.#onEvent, done));
    return answer.isDone ? { isDone: true, value: answer.value !== null } : answer;
  }

  /** Whether anybody may write the node; undefined where this process may not ask. */
  async isOpenToAll(path: string): Promise<boolean | undefined> {
    const answer = await this.#call<readonly { readonly id: { readonly scheme: string } }[]>((done) =>
      this.#client.getACL(path, done),
    );
    return answer.isDone ? answer.value.some(({ id }) => id.scheme === 'world') : undefined;
  }

  /** Ends the session and the connection. */
  async close(): Promise<void> {
    if (this.#phase !== 'open') {
      this.destroy();
      return;
    }
    this.#client.close();
    this.#timers.push(this.#options.clock.after(CLOSE_TIMEOUT_MS, () => this.destroy()));
    await this.#closed;
  }

  /** Ends the connection; the session lives on until its time-out. */
  destroy(): void {
    const { socket } = this.#internals;
    if (socket === undefined) this.#end(this.#failedOutcome());
    else socket.destroy();
  }

  /** One function for all watches: the library drops it where it is registered for the same path already. */
  readonly #onEvent = ({ path, type }: Event): void => {
    const kind = EVENT_KINDS.get(type);
    if (this.#phase === 'open' && kind !== undefined) this.#options.onNodeEvent({ path, kind });
  };

  #call<T>(start: (done: Callback<T>) => void): Promise<Answer<T>> {
    if (this.#phase !== 'open') return Promise.resolve({ isDone: false, refusal: 'lost' });
    return new Promise((resolve) => {
      const id = this.#nextCall++;
      const lose = (): void => resolve({ isDone: false, refusal: 'lost' });
      this.#calls.set(id, { sinceMs: this.#runningMs(), lose });
      start((error, value) => {
        this.#calls.delete(id);
        resolve(error === null ? { isDone: true, value } : { isDone: false, refusal: refusalOf(error) });
      });
    });
  }

  #onConnected(): void {
    if (this.#phase !== 'opening') return;
    this.#phase = 'open';
    for (const cancel of this.#timers.splice(0)) cancel();
    const { clock } = this.#options;
    const periodMs = this.sessionTimeoutMs / CHECKS_PER_TIMEOUT;
    this.#lastCheckMs = clock.nowMs();
    this.#timers.push(clock.every(periodMs, () => this.#checkSilence(periodMs)));
    this.#settle({ kind: 'open', connection: this });
  }

  #onData(chunk: Buffer, deliver: (frame: Buffer) => void): void {
    this.#lastHeardMs = this.#runningMs();
    try {
      for (const frame of this.#frames.push(chunk)) {
        deliver(this.#phase === 'opening' ? checkGreeting(frame) : withKnownError(frame));
      }
    } catch (error) {
      this.#isForeign = this.#phase === 'opening';
      this.#reason = error instanceof Error ? error.message : String(error);
      this.destroy();
    }
  }

  /** Z3. What has arrived and was not read yet is no silence. */
  #checkSilence(periodMs: number): void {
    const nowMs = this.#options.clock.nowMs();
    const lateMs = nowMs - this.#lastCheckMs - periodMs;
    if (lateMs > periodMs) this.#missedMs += lateMs;
    this.#lastCheckMs = nowMs;
    if (!this.#isSilent()) return;
    afterArrivedInput(() => {
      if (this.#phase === 'open' && this.#isSilent()) this.destroy();
    }, 16);
  }

  #isSilent(): boolean {
    const nowMs = this.#runningMs();
    if (nowMs - this.#lastHeardMs >= (this.sessionTimeoutMs * 2) / 3) return true;
    for (const { sinceMs } of this.#calls.values()) return nowMs - sinceMs >= this.sessionTimeoutMs;
    return false;
  }

  /** A clock that stands still while this process does not run. */
  #runningMs(): number {
    return this.#options.clock.nowMs() - this.#missedMs;
  }

  #failedOutcome(): OpenOutcome {
    if (this.#isForeign) return { kind: 'not-zookeeper' };
    return this.#hasReached ? { kind: 'refused' } : { kind: 'unreachable', reason: this.#reason };
  }

  #end(outcome: OpenOutcome): void {
    if (this.#phase === 'closed') return;
    const wasOpen = this.#phase === 'open';
    this.#phase = 'closed';
    for (const cancel of this.#timers.splice(0)) cancel();
    for (const { lose } of this.#calls.values()) lose();
    this.#calls.clear();
    this.#internals.socket?.destroy();
    if (wasOpen) this.#options.onClosed(this);
    else this.#settle(outcome);
    this.#resolveClosed();
  }
}

/** @throws Error when the library is not the version that this file knows. */
function internalsOf(client: Client): Internals {
  // Not part of the library's types.
  const { connectionManager } = client as unknown as { readonly connectionManager: Internals };
  const isKnown =
    Array.isArray(connectionManager.servers) &&
    Buffer.isBuffer(connectionManager.zxid) &&
    typeof connectionManager.connect === 'function' &&
    typeof connectionManager.onSocketData === 'function';
  if (!isKnown) throw new Error('node-zookeeper-client is not the version that Isobar was made for');
  return connectionManager;
}

function refusalOf(error: Error | Exception): Refusal {
  const code = 'code' in error ? error.code : Exception.SYSTEM_ERROR;
  switch (code) {
    case Exception.CONNECTION_LOSS:
    case Exception.SESSION_EXPIRED:
      return 'lost';
    case Exception.NO_NODE:
      return 'no-node';
    case Exception.NODE_EXISTS:
      return 'node-exists';
    case Exception.BAD_VERSION:
      return 'bad-version';
    case Exception.NOT_EMPTY:
      return 'not-empty';
    case Exception.NO_AUTH:
    case Exception.AUTH_FAILED:
    case Exception.INVALID_ACL:
      return 'no-auth';
    default:
      return { code };
  }
}
