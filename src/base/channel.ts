/**
 * Control messages over a Unix socket: requests with answers and events without, both ways, never on the data path.
 *
 * A message is a 4-byte big-endian length and that many bytes of structured-clone data (node:v8), so Map, bigint and
 * bytes pass unchanged. Bodies come from processes of the same user: the socket lives in a 0700 directory.
 *
 * Invariants
 * H1  Nothing that the other side sends ends this process: what is no message, and an event whose handler throws, ends
 *     the connection, and `onFault` is told why.
 * H2  A server's memory is bounded whatever its clients do: those that do not read their answers are not read from
 *     (only a server may wait so: two sides that wait for each other would wait for ever), those that do not read their
 *     events are cut off, and all unfinished messages of a server together, both ways, have a bound.
 */
import net from 'node:net';
import { deserialize, serialize } from 'node:v8';
import { type ErrorRecord, IsobarError, toErrorRecord, toIsobarError } from './errors.js';

/** Node cuts longer paths without a word (sun_path is 108 bytes with its end). */
export const MAX_SOCKET_PATH_BYTES = 107;
export const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;
/** A side that has left this much unread is cut off when there is more to tell or to ask it. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
/** What one client may hold before the sum of all is looked at. */
const CHECKED_BYTES = 64 * 1024;
/** Of a message that comes in pieces smaller than this, so many are joined: each takes far more memory than its bytes. */
const SMALL_BYTES = 4096;
const SMALL_PIECES = 1024;
/** Unread bytes and open requests of one client above which a server reads no more from it. */
const PAUSE_UNREAD_BYTES = 1024 * 1024;
const PAUSE_OPEN_REQUESTS = 64;

type Message =
  | { kind: 'request'; id: number; method: string; body: unknown }
  | { kind: 'answer'; id: number; body: unknown }
  | { kind: 'failure'; id: number; error: ErrorRecord }
  | { kind: 'event'; name: string; body: unknown };

/** Whether decoded bytes have the shape of a message; anything else ends the connection, never the process. */
function isMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  switch (fields['kind']) {
    case 'request':
      return typeof fields['id'] === 'number' && typeof fields['method'] === 'string';
    case 'answer':
      return typeof fields['id'] === 'number';
    case 'failure':
      return (
        typeof fields['id'] === 'number' && typeof fields['error'] === 'object' && fields['error'] !== null
      );
    case 'event':
      return typeof fields['name'] === 'string';
    default:
      return false;
  }
}

export interface ChannelHandlers {
  /** Answers a request of the other side; what it throws reaches the caller as the same code. */
  onRequest?(method: string, body: unknown, channel: Channel): unknown;
  onEvent?(name: string, body: unknown, channel: Channel): void;
  /** Called before the connection is closed because of what the other side did, or did not do. */
  onFault?(fault: IsobarError, channel: Channel): void;
  /** Called once, when the connection is gone, whoever closed it. */
  onClose?(channel: Channel): void;
}

/** What the channels of one server share: the bound on what all of them hold. */
export interface ServerMemory {
  /** Cuts off the channel that holds most if all of them together hold too much. */
  bound(): void;
}

/** One end of a control connection. */
export class Channel {
  readonly #socket: net.Socket;
  readonly #handlers: ChannelHandlers;
  readonly #pending = new Map<number, { resolve: (body: unknown) => void; reject: (error: Error) => void }>();
  readonly #server: ServerMemory | null;
  #nextId = 1;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  /** How many of the last pieces are small. */
  #smallPieces = 0;
  #openRequests = 0;
  #paused = false;
  #closed = false;

  /** `server`: what the channels of one server share; null for the side that has connected. */
  constructor(socket: net.Socket, handlers: ChannelHandlers, server: ServerMemory | null = null) {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#server = server;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('drain', () => this.#readOn());
    socket.on('error', () => {});
    socket.on('close', () => this.#onClose());
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /**
   * Asks and waits for the answer. Rejects with the other side's error, with CONNECTION_LOST when the connection goes,
   * or with REQUEST_TIMEOUT after `timeoutMs` (default: no limit).
   */
  request(method: string, body: unknown = null, options: { timeoutMs?: number } = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(this.#lost(method));
      const id = this.#nextId++;
      let timer: NodeJS.Timeout | undefined;
      const settle = (): void => {
        clearTimeout(timer);
        this.#pending.delete(id);
      };
      this.#pending.set(id, {
        resolve: (answer) => {
          settle();
          resolve(answer);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
      if (options.timeoutMs !== undefined) {
        timer = setTimeout(() => {
          this.#pending
            .get(id)
            ?.reject(
              new IsobarError('REQUEST_TIMEOUT', `no answer to "${method}" in ${options.timeoutMs} ms`),
            );
        }, options.timeoutMs);
      }
      try {
        this.#send({ kind: 'request', id, method, body });
      } catch (error) {
        this.#pending.get(id)?.reject(toIsobarError(error));
      }
    });
  }

  /** Bytes that the other side has not taken yet. */
  get unreadBytes(): number {
    return this.#socket.writableLength;
  }

  /** Bytes of unfinished messages, in either direction. */
  get heldBytes(): number {
    return this.#socket.destroyed ? 0 : this.#receivedBytes + this.#socket.writableLength;
  }

  /** Sends without waiting; lost silently when the connection is gone. */
  event(name: string, body: unknown = null): void {
    if (!this.#closed) this.#send({ kind: 'event', name, body });
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Sends what is queued, then closes. */
  end(): void {
    this.#socket.end();
  }

  /** Whether this connection keeps the process alive (default: it does). */
  setReferenced(referenced: boolean): void {
    if (referenced) this.#socket.ref();
    else this.#socket.unref();
  }

  /** Ends the connection because of the other side (H1). */
  fail(fault: IsobarError): void {
    if (this.#closed || this.#socket.destroyed) return;
    this.#handlers.onFault?.(fault, this);
    this.close();
  }

  #send(message: Message): void {
    // Answers are bounded by the requests that are read.
    if (this.unreadBytes > MAX_UNREAD_BYTES && (message.kind === 'event' || message.kind === 'request')) {
      this.fail(channelFault('a side that reads what it is sent', `${this.unreadBytes} unread bytes`));
      return;
    }
    const payload = serialize(message);
    if (payload.length > MAX_MESSAGE_BYTES) {
      throw new IsobarError('MESSAGE_TOO_LARGE', `a message of ${payload.length} bytes is too large`, {
        expected: `at most ${MAX_MESSAGE_BYTES} bytes`,
        found: `${payload.length} bytes`,
      });
    }
    const header = Buffer.allocUnsafe(4);
    header.writeUInt32BE(payload.length);
    this.#socket.cork();
    this.#socket.write(header);
    this.#socket.write(payload);
    this.#socket.uncork();
    if (this.unreadBytes > CHECKED_BYTES) this.#server?.bound();
  }

  #onData(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    this.#smallPieces = chunk.length < SMALL_BYTES ? this.#smallPieces + 1 : 0;
    this.#read();
    if (this.#smallPieces >= SMALL_PIECES) this.#joinSmallPieces();
    if (this.#receivedBytes > CHECKED_BYTES) this.#server?.bound();
  }

  /** Takes whole messages from what was received, as long as this side may read (H2). */
  #read(): void {
    while (this.#receivedBytes >= 4 && !this.#socket.destroyed) {
      if (this.#server !== null && !this.#mayRead()) {
        this.#paused = true;
        this.#socket.pause();
        return;
      }
      const length = this.#gather(4).readUInt32BE(0);
      if (length > MAX_MESSAGE_BYTES) {
        this.fail(channelFault(`at most ${MAX_MESSAGE_BYTES} bytes`, `a message of ${length} bytes`));
        return;
      }
      if (this.#receivedBytes < 4 + length) return;
      const buffer = this.#gather(4 + length);
      const rest = buffer.subarray(4 + length);
      this.#received = rest.length > 0 ? [rest] : [];
      this.#receivedBytes = rest.length;
      const message = decode(buffer.subarray(4, 4 + length));
      if (message === undefined) {
        this.fail(channelFault('a message', `${length} bytes that are none`));
        return;
      }
      this.#dispatch(message);
    }
  }

  #mayRead(): boolean {
    return this.#socket.writableLength <= PAUSE_UNREAD_BYTES && this.#openRequests < PAUSE_OPEN_REQUESTS;
  }

  #readOn(): void {
    if (!this.#paused || !this.#mayRead()) return;
    this.#paused = false;
    this.#socket.resume();
    this.#read();
  }

  #joinSmallPieces(): void {
    const small = this.#received.splice(-this.#smallPieces);
    if (small.length > 0) this.#received.push(Buffer.concat(small));
    this.#smallPieces = 0;
  }

  /** Makes the first chunk hold at least `bytes` bytes and returns it. */
  #gather(bytes: number): Buffer {
    if (this.#received[0]!.length < bytes) this.#received = [Buffer.concat(this.#received)];
    return this.#received[0]!;
  }

  #dispatch(message: Message): void {
    switch (message.kind) {
      case 'event':
        try {
          this.#handlers.onEvent?.(message.name, message.body, this);
        } catch (error) {
          this.fail(channelFault(`an event "${message.name.slice(0, 100)}" that can be read`, error));
        }
        return;
      case 'answer':
        this.#pending.get(message.id)?.resolve(message.body);
        return;
      case 'failure':
        this.#pending.get(message.id)?.reject(IsobarError.from(message.error));
        return;
      case 'request':
        void this.#answer(message.id, message.method, message.body);
        return;
    }
  }

  async #answer(id: number, method: string, body: unknown): Promise<void> {
    this.#openRequests++;
    let answer: Message;
    try {
      if (this.#handlers.onRequest === undefined) {
        throw new IsobarError('INTERNAL', `nobody answers "${method}" here`);
      }
      answer = { kind: 'answer', id, body: await this.#handlers.onRequest(method, body, this) };
    } catch (error) {
      answer = { kind: 'failure', id, error: toErrorRecord(error) };
    }
    this.#openRequests--;
    if (this.#closed) return;
    try {
      this.#send(answer);
    } catch (error) {
      // What cannot be sent (too large, not cloneable) is a fault of the answer: its asker must not wait for ever.
      this.#send({ kind: 'failure', id, error: toErrorRecord(plainCopy(error)) });
    }
    this.#readOn();
  }

  #onClose(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiting of [...this.#pending.values()]) waiting.reject(this.#lost('request'));
    this.#handlers.onClose?.(this);
  }

  #lost(what: string): IsobarError {
    return new IsobarError('CONNECTION_LOST', `the connection was lost before "${what}" was answered`);
  }
}

/** A message from its bytes; undefined for anything else. */
function decode(bytes: Buffer): Message | undefined {
  try {
    const message: unknown = deserialize(bytes);
    return isMessage(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

export function channelFault(expected: string, found: unknown): IsobarError {
  const text = found instanceof Error ? found.message : String(found);
  return new IsobarError(
    'PEER_PROTOCOL_ERROR',
    `the other side of a control connection does not keep to the protocol: expected ${expected}, found ${text}`,
    { expected, found: text },
    found instanceof Error ? found : undefined,
  );
}

/** An error with nothing but text. */
function plainCopy(error: unknown): IsobarError {
  const { code, message } = toIsobarError(error);
  return new IsobarError(code, message);
}

/** Refuses a socket path that Node would cut. */
export function checkSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw new IsobarError('SOCKET_PATH_TOO_LONG', `the socket path ${path} has ${bytes} bytes`, {
      expected: `at most ${MAX_SOCKET_PATH_BYTES} bytes`,
      found: `${bytes} bytes`,
      where: path,
    });
  }
}

/** Connects to a control socket; rejects with CONNECTION_LOST when nobody listens. */
export async function connectChannel(path: string, handlers: ChannelHandlers = {}): Promise<Channel> {
  checkSocketPath(path);
  const socket = net.connect(path);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', (error) =>
      reject(new IsobarError('CONNECTION_LOST', `nobody listens at ${path}`, { where: path }, error)),
    );
  });
  return new Channel(socket, handlers);
}
