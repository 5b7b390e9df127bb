import { mkdtempSync, statSync, existsSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { connectChannel, serveChannels, type ChannelHandlers, type ChannelServer } from './channel.js';
import { hasCode, IsobarError } from './errors.js';

let server: ChannelServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const serve = async (handlers: ChannelHandlers): Promise<string> => {
  const path = join(mkdtempSync(join(tmpdir(), 'channel-')), 'private', 's.sock');
  server = await serveChannels(path, () => handlers);
  return path;
};

const rejection = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

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
    const { serialize } = await import('node:v8');
    const payload = serialize({ kind: 'event', name: 'e', body: 7 });
    const header = Buffer.alloc(4);
    header.writeUInt32BE(payload.length);
    for (const byte of Buffer.concat([header, payload])) raw.write(Buffer.from([byte]));
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
    const error = await rejection(serveChannels(`/tmp/${'x'.repeat(120)}`, () => ({})));
    expect(hasCode(error, 'SOCKET_PATH_TOO_LONG')).toBe(true);
  });
});
