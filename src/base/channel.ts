/**
 * Control messages over a Unix socket: requests with answers and events without, both ways, never on the data path.
 *
 * A message is a 4-byte big-endian length and that many bytes of structured-clone data (node:v8), so Map, bigint and
 * bytes pass unchanged. Bodies come from processes of the same user: the socket lives in a 0700 directory.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import { dirname } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { type ErrorRecord, IsobarError, toErrorRecord } from './errors.js';

/** Node cuts longer paths without a word (sun_path is 108 bytes with its end). */
export const MAX_SOCKET_PATH_BYTES = 107;
const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;

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
  /** Called once, when the connection is gone, whoever closed it. */
  onClose?(channel: Channel): void;
}

/** One end of a control connection. */
export class Channel {
  readonly #socket: net.Socket;
  readonly #handlers: ChannelHandlers;
  readonly #pending = new Map<number, { resolve: (body: unknown) => void; reject: (error: Error) => void }>();
  #nextId = 1;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  #closed = false;

  constructor(socket: net.Socket, handlers: ChannelHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
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
      this.#send({ kind: 'request', id, method, body });
    });
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

  #send(message: Message): void {
    const payload = serialize(message);
    const header = Buffer.allocUnsafe(4);
    header.writeUInt32BE(payload.length);
    this.#socket.cork();
    this.#socket.write(header);
    this.#socket.write(payload);
    this.#socket.uncork();
  }

  #onData(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    while (this.#receivedBytes >= 4) {
      const head = this.#gather(4);
      const length = head.readUInt32BE(0);
      if (length > MAX_MESSAGE_BYTES) return this.close();
      if (this.#receivedBytes < 4 + length) return;
      const buffer = this.#gather(4 + length);
      const rest = buffer.subarray(4 + length);
      this.#received = rest.length > 0 ? [rest] : [];
      this.#receivedBytes = rest.length;
      let message: unknown;
      try {
        message = deserialize(buffer.subarray(4, 4 + length));
      } catch {
        return this.close();
      }
      if (!isMessage(message)) return this.close();
      void this.#dispatch(message);
    }
  }

  /** Makes the first chunk hold at least `bytes` bytes and returns it. */
  #gather(bytes: number): Buffer {
    if (this.#received[0]!.length < bytes) this.#received = [Buffer.concat(this.#received)];
    return this.#received[0]!;
  }

  async #dispatch(message: Message): Promise<void> {
    switch (message.kind) {
      case 'event':
        this.#handlers.onEvent?.(message.name, message.body, this);
        return;
      case 'answer':
        this.#pending.get(message.id)?.resolve(message.body);
        return;
      case 'failure':
        this.#pending.get(message.id)?.reject(IsobarError.from(message.error));
        return;
      case 'request':
        try {
          if (this.#handlers.onRequest === undefined) {
            throw new IsobarError('INTERNAL', `nobody answers "${message.method}" here`);
          }
          const body = await this.#handlers.onRequest(message.method, message.body, this);
          if (!this.#closed) this.#send({ kind: 'answer', id: message.id, body });
        } catch (error) {
          if (!this.#closed) this.#send({ kind: 'failure', id: message.id, error: toErrorRecord(error) });
        }
        return;
    }
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

export interface ChannelServer {
  readonly path: string;
  readonly channels: ReadonlySet<Channel>;
  /** Stops listening, closes every connection and removes the socket file. */
  close(): Promise<void>;
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

/** Creates the private directory that sockets live in (mode 0700). */
export function makePrivateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
}

/** Serves control connections at `path`; a stale socket file there is replaced. */
export async function serveChannels(
  path: string,
  handlers: (channel: () => Channel) => ChannelHandlers,
): Promise<ChannelServer> {
  checkSocketPath(path);
  makePrivateDirectory(dirname(path));
  rmSync(path, { force: true });
  const channels = new Set<Channel>();
  const server = net.createServer((socket) => {
    const own = handlers(() => channel);
    const channel: Channel = new Channel(socket, {
      ...own,
      onClose: (closed) => {
        channels.delete(closed);
        own.onClose?.(closed);
      },
    });
    channels.add(channel);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return {
    path,
    channels,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const channel of channels) channel.close();
      await closed;
      rmSync(path, { force: true });
    },
  };
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
