import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChannelServer, connectChannel, IsobarError, silentLogger } from '../base/index.js';
import type { Nimbus, SubmitRequest } from '../nimbus/index.js';
import { connectControl, serveControl } from './control-socket.js';

let root: string;
let path: string;
let server: ChannelServer;
let submitted: SubmitRequest[];
let named: string[];

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'isobar-control-'));
  path = join(root, 'control.sock');
  submitted = [];
  named = [];
  const nimbus: Nimbus = {
    id: 'n1',
    isLeader: true,
    submit: async (request) => {
      submitted.push(request);
      return { topologyId: 'words-1-1', notes: ['a note'] };
    },
    drain: async (name) => {
      named.push(`drain ${name}`);
    },
    kill: async (name) => {
      throw new IsobarError('TOPOLOGY_NOT_ALIVE', `no ${name}`, { where: name });
    },
    status: async () => ({ atMs: 1, nimbusId: 'n1', supervisors: [], topologies: [] }),
    close: async () => undefined,
  };
  server = await serveControl(path, nimbus, silentLogger);
});

afterEach(async () => {
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

describe('the control socket', () => {
  it('carries requests and answers, a large bundle included', async () => {
    const client = await connectControl(path);
    const code = Buffer.alloc(20_000_000, 'x');
    const result = await client.submit({ description: { name: 'words' }, code, settings: { a: 1 } });
    expect(result).toEqual({ topologyId: 'words-1-1', notes: ['a note'] });
    expect(submitted[0]).toMatchObject({ description: { name: 'words' }, settings: { a: 1 } });
    expect(Buffer.compare(Buffer.from(submitted[0]?.code ?? ''), code)).toBe(0);
    await client.drain('words');
    expect(named).toEqual(['drain words']);
    expect(await client.status()).toMatchObject({ nimbusId: 'n1' });
    expect(await client.ping()).toEqual({ nimbusId: 'n1', isLeader: true, pid: process.pid });
    client.close();
  });

  it('passes errors with their codes and details', async () => {
    const client = await connectControl(path);
    await expect(client.kill('words')).rejects.toMatchObject({
      code: 'TOPOLOGY_NOT_ALIVE',
      message: 'no words',
      details: { where: 'words' },
    });
    client.close();
  });

  it.each([
    ['submit', null],
    ['submit', { code: 1, settings: {} }],
    ['submit', { code: '', settings: [] }],
    ['submit', { code: '', sourceMap: 3, settings: {} }],
    ['drain', 5],
    ['format-the-disk', null],
  ])('refuses %s with %j', async (method, body) => {
    const channel = await connectChannel(path);
    await expect(channel.request(method, body)).rejects.toMatchObject({ code: 'USAGE' });
    channel.close();
    expect(submitted).toEqual([]);
  });

  it('tells its client when the daemon is gone', async () => {
    let tellClosed: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (tellClosed = resolve));
    const client = await connectControl(path, { onClose: tellClosed });
    await server.close();
    await closed;
    expect(client.isClosed).toBe(true);
    await expect(client.status()).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    await expect(connectControl(path)).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
  });
});
