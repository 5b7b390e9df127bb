import { EventEmitter } from 'node:events';
import { mkdtempSync, statSync, existsSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { serialize, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Channel, connectChannel, type ChannelHandlers } from './channel.js';
import { serveChannels, type ChannelServer } from './channel-server.js';
import { hasCode, IsobarError } from './errors.js';
import { silentLogger } from './logger.js';

let server: ChannelServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const serve = async (handlers: ChannelHandlers): Promise<string> => {
  const path = join(mkdtempSync(join(tmpdir(), 'channel-')), 'private', 's.sock');
  server = await serveChannels(path, () => handlers, silentLogger);
  return path;
};

const rejection = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

const withLength = (payload: Uint8Array): Buffer => {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(payload.length);
  return Buffer.concat([header, payload]);
};
const messageBytes = (message: unknown): Buffer => withLength(serialize(message));

/** An array in an array in an array …: `serialize` itself would not go that deep. */
const deepArray = (depth: number): Buffer =>
  Buffer.concat([
    Buffer.from([0xff, 0x0f]),
    Buffer.alloc(2 * depth, Buffer.from([0x41, 1])),
    Buffer.from([0x49, 2]),
    Buffer.alloc(3 * depth, Buffer.from([0x24, 0, 1])),
  ]);

const until = async (reached: () => boolean): Promise<void> => {
  while (!reached()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe('Channel', () => {
  it('answers requests with any structured value', async () => {
    const path = await serve({ onRequest: (method, body) => ({ method, body }) });
    const channel = await connectChannel(path);
    const body = {
      map: new Map([[1, 'ü\ud800']]),
      big: 2n ** 80n,
      bytes: new Uint8Array([1, 2]),
      long: 'x'.repeat(300_000),
    };
    expect(await channel.request('echo', body)).toEqual({ method: 'echo', body });
    channel.close();
  });

  it('passes an error on with its code and details', async () => {
    const path = await serve({
      onRequest: () => {
        throw new IsobarError('SLOT_OCCUPIED', 'taken', { where: 'a:1' });
      },
    });
    const channel = await connectChannel(path);
    const error = await rejection(channel.request('x'));
    expect(hasCode(error, 'SLOT_OCCUPIED') && error.details.where).toBe('a:1');
    channel.close();
  });

  it('rejects what is under way when the connection goes', async () => {
    const path = await serve({ onRequest: (_method, _body, channel) => new Promise(() => channel.close()) });
    const channel = await connectChannel(path);
    expect(hasCode(await rejection(channel.request('x')), 'CONNECTION_LOST')).toBe(true);
  });

  it('says so when nobody answers in time', async () => {
    const path = await serve({ onRequest: () => new Promise(() => undefined) });
    const channel = await connectChannel(path);
    expect(hasCode(await rejection(channel.request('x', null, { timeoutMs: 10 })), 'REQUEST_TIMEOUT')).toBe(
      true,
    );
    channel.close();
  });

  it('reads messages that come one byte at a time, and hangs up on rubbish', async () => {
    const events: unknown[] = [];
    const path = await serve({
      onEvent: (name, body) => events.push([name, body]),
      onRequest: (_m, body) => body,
    });
    const raw = net.connect(path);
    for (const byte of messageBytes({ kind: 'event', name: 'e', body: 7 })) raw.write(Buffer.from([byte]));
    const closed = new Promise<void>((resolve) => raw.on('close', () => resolve()));
    raw.write(Buffer.from([0, 0, 0, 4, 1, 2, 3, 4]));
    await closed;
    expect(events).toEqual([['e', 7]]);
    const channel = await connectChannel(path);
    expect(await channel.request('still-there', 1)).toBe(1);
    channel.close();
  });

  it('keeps its sockets in a private directory and removes them', async () => {
    const path = await serve({});
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    await server!.close();
    expect(existsSync(path)).toBe(false);
  });

  it('refuses a path that Node would cut', async () => {
    const error = await rejection(serveChannels(`/tmp/${'x'.repeat(120)}`, () => ({}), silentLogger));
    expect(hasCode(error, 'SOCKET_PATH_TOO_LONG')).toBe(true);
  });

  it.each([
    ['bytes that are no message', withLength(Buffer.from('rubbish'))],
    ['a length that nobody may claim', Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ['an empty message', Buffer.alloc(4)],
    ['a value without a kind', messageBytes(5)],
    ['an unknown kind', messageBytes({ kind: 'toString', id: 1 })],
    ['a request without an id', messageBytes({ kind: 'request', method: 'm' })],
    ['a value nested 200,000 deep', withLength(deepArray(200_000))],
    ['an event whose handler throws', messageBytes({ kind: 'event', name: 'bad', body: null })],
  ])('cuts off a client that sends %s, says why, and serves the others', async (_what, bytes) => {
    const faults: string[] = [];
    const path = await serve({
      onRequest: (_method, body) => body,
      onEvent: () => {
        throw new TypeError('cannot read');
      },
      onFault: (fault) => faults.push(fault.code),
    });
    const channel = await connectChannel(path);
    const raw = net.connect(path);
    const closed = new Promise<void>((resolve) => raw.on('close', () => resolve()));
    raw.on('error', () => undefined);
    raw.write(bytes);
    await closed;
    expect(faults).toEqual(['PEER_PROTOCOL_ERROR']);
    expect(await channel.request('still-there', 1)).toBe(1);
    channel.close();
  });

  it('ignores answers to nothing, and failures of any shape', async () => {
    const path = await serve({ onRequest: (_method, body) => body });
    const channel = await connectChannel(path);
    const [end] = server!.channels;
    const raw = net.connect(path);
    raw.write(
      Buffer.concat([
        messageBytes({ kind: 'answer', id: 9 }),
        messageBytes({ kind: 'failure', id: 9, error: {} }),
      ]),
    );
    expect(await channel.request('still-there', 1)).toBe(1);
    expect(end!.isClosed).toBe(false);
    raw.destroy();
    channel.close();
  });

  it('fails a request whose answer cannot be sent', async () => {
    const path = await serve({ onRequest: () => () => 1 });
    const channel = await connectChannel(path);
    expect(hasCode(await rejection(channel.request('x')), 'INTERNAL')).toBe(true);
    expect(hasCode(await rejection(channel.request('x', () => 1)), 'INTERNAL')).toBe(true);
    channel.close();
  });

  it('reads no more from a client that does not read its answers, and answers all when it does', async () => {
    let asked = 0;
    const path = await serve({
      onRequest: () => {
        asked++;
        return new Uint8Array(100_000);
      },
    });
    const raw = net.connect(path);
    raw.pause();
    const requests = 2000;
    raw.write(
      Buffer.concat(
        Array.from({ length: requests }, (_, id) => messageBytes({ kind: 'request', id, method: 'm' })),
      ),
    );
    await until(() => [...server!.channels].some(({ unreadBytes }) => unreadBytes > 1024 * 1024));
    const healthy = await connectChannel(path);
    await healthy.request('m');
    await healthy.request('m');
    // A megabyte of answers, and the requests that were open by then.
    expect(asked).toBeLessThan(200);
    let bytes = 0;
    raw.on('data', (chunk: Buffer) => (bytes += chunk.length));
    raw.resume();
    await until(() => bytes > requests * 100_000);
    expect(asked).toBe(requests + 2);
    raw.destroy();
    healthy.close();
  });

  it('cuts off a side that does not read its events', async () => {
    const faults: string[] = [];
    let silent: Channel | undefined;
    const path = await serve({
      onRequest: (_method, _body, channel) => {
        silent = channel;
      },
      onFault: (fault) => faults.push(fault.message),
    });
    const raw = net.connect(path);
    raw.on('error', () => undefined);
    raw.pause();
    raw.write(messageBytes({ kind: 'request', id: 1, method: 'm' }));
    await until(() => silent !== undefined);
    const event = new Uint8Array(1024 * 1024);
    for (let i = 0; i < 200; i++) silent!.event('news', event);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain('reads what it is sent');
    await until(() => silent!.isClosed);
    raw.destroy();
  });

  it('bounds what all clients together leave unread', async () => {
    const faults: string[] = [];
    const path = await serve({ onFault: (fault) => faults.push(fault.message) });
    const clients = Array.from({ length: 8 }, () => net.connect(path));
    for (const client of clients) client.on('error', () => undefined).pause();
    await until(() => server!.channels.size === clients.length);
    const event = new Uint8Array(1024 * 1024);
    for (let i = 0; i < 60; i++) for (const channel of server!.channels) channel.event('news', event);
    const held = [...server!.channels].reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    expect(held).toBeLessThan(330 * 1024 * 1024);
    expect(faults.length).toBeGreaterThan(0);
    expect(faults.length).toBeLessThan(clients.length);
    for (const client of clients) client.destroy();
  });

  it('bounds the unfinished messages of all clients together', async () => {
    const path = await serve({});
    const clients = Array.from({ length: 4 }, () => net.connect(path));
    const closed = new Set<net.Socket>();
    const chunk = Buffer.alloc(1024 * 1024);
    await Promise.all(
      clients.map(async (client) => {
        client.on('error', () => undefined);
        client.on('close', () => closed.add(client));
        client.write(Buffer.from([0x0f, 0xff, 0xff, 0xf0]));
        for (let i = 0; i < 110 && !client.destroyed; i++) {
          await new Promise<void>((resolve) => client.write(chunk, () => resolve()));
        }
      }),
    );
    const total = (): number => [...server!.channels].reduce((sum, { heldBytes }) => sum + heldBytes, 0);
    await until(() => closed.size > 0);
    expect(closed.size).toBeLessThan(clients.length);
    expect(total()).toBeLessThan(330 * 1024 * 1024);
    for (const client of clients) client.destroy();
  });

  it('takes little more memory than its bytes for a message that comes in crumbs', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const socket = Object.assign(new EventEmitter(), { destroyed: false, writableLength: 0 });
    const events: unknown[] = [];
    // Of a socket, only what a channel uses to read.
    const channel = new Channel(socket as unknown as net.Socket, {
      onEvent: (_name, body) => events.push(body),
    });
    const body = 'x'.repeat(300_000);
    const bytes = messageBytes({ kind: 'event', name: 'e', body });
    const last = bytes.length - 1;
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let at = 0; at < last; at++) socket.emit('data', Buffer.from([bytes[at]!]));
    collect();
    const heldBytes = process.memoryUsage().heapUsed - before;
    expect(channel.heldBytes).toBe(last);
    socket.emit('data', bytes.subarray(last));
    expect(events).toEqual([body]);
    // Each crumb by itself takes some hundred bytes.
    expect(heldBytes).toBeLessThan(10_000_000);
  });
});
