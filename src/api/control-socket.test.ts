import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChannelServer, connectChannel, IsobarError, silentLogger } from '../base/index.js';
import { blobHash, type LifeResult } from '../nimbus/index.js';
import { connectControl, serveControl } from './control-socket.js';
import { FakeNimbus } from './testing/fake-nimbus.js';

let root: string;
let path: string;
let server: ChannelServer;
let nimbus: FakeNimbus;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'isobar-control-'));
  path = join(root, 'control.sock');
  nimbus = new FakeNimbus();
  server = await serveControl(path, nimbus, silentLogger);
});

afterEach(async () => {
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

const LIFE: LifeResult = { topologyId: 'words-1-1', status: 'KILLED', isChanged: true, waitMs: 7000 };

describe('the control socket', () => {
  it('carries requests and answers, a large bundle included', async () => {
    const client = await connectControl(path);
    const code = Buffer.alloc(20_000_000, 'x');
    nimbus.answers.submit = { topologyId: 'words-1-1', notes: ['a note'] };
    const sent = {
      description: { name: 'words' },
      code,
      settings: { a: 1 },
      requestId: 'r',
      codeHash: blobHash(code),
    };
    expect(await client.ask('submit', sent)).toEqual({ topologyId: 'words-1-1', notes: ['a note'] });
    const [[, submitted]] = nimbus.asked as [[string, { code: Uint8Array }]];
    expect(submitted).toMatchObject({ description: { name: 'words' }, settings: { a: 1 }, requestId: 'r' });
    expect(submitted).not.toHaveProperty('codeHash');
    expect(Buffer.compare(Buffer.from(submitted.code), code)).toBe(0);
    client.close();
  });

  it('takes each request to Nimbus with what it says', async () => {
    const client = await connectControl(path);
    const request = {
      workers: 3,
      executors: { count: 2 },
      resources: {},
      waitMs: null,
      fromScratch: false,
      preview: true,
    };
    nimbus.answers.kill = LIFE;
    await client.ask('drain', 'words');
    await client.ask('stop', 'words');
    await client.ask('activate', 'words');
    await client.ask('deactivate', 'words');
    expect(await client.ask('kill', { name: 'words', waitMs: 7000 })).toEqual(LIFE);
    await client.ask('rebalance', { name: 'words', request });
    await client.ask('list', null);
    await client.ask('describe', 'words');
    await client.ask('config', null);
    await client.ask('status', null);
    expect(nimbus.asked).toEqual([
      ['drain', 'words'],
      ['stop', 'words'],
      ['activate', 'words'],
      ['deactivate', 'words'],
      ['kill', 'words', 7000],
      ['rebalance', 'words', request],
      ['list'],
      ['describe', 'words'],
      ['config', null],
      ['status'],
    ]);
    const ping = await client.ask('ping', null);
    expect(ping).toEqual({ nimbusId: 'n1', isLeader: true, pid: process.pid, contract: 4 });
    client.close();
  });

  it('passes errors with their codes and details', async () => {
    nimbus.failure = new IsobarError('TOPOLOGY_NOT_ALIVE', 'no words', { where: 'words' });
    const client = await connectControl(path);
    await expect(client.ask('kill', { name: 'words', waitMs: null })).rejects.toMatchObject({
      code: 'TOPOLOGY_NOT_ALIVE',
      message: 'no words',
      details: { where: 'words' },
    });
    client.close();
  });

  it('refuses a bundle that is not what was sent', async () => {
    const client = await connectControl(path);
    const sent = {
      description: {},
      code: 'export default 1',
      settings: {},
      codeHash: blobHash(Buffer.from('x')),
    };
    await expect(client.ask('submit', sent)).rejects.toMatchObject({ code: 'BUNDLE_DAMAGED' });
    expect(nimbus.asked).toEqual([]);
    client.close();
  });

  it.each([
    ['submit', null],
    ['submit', { description: {}, code: 1, settings: {} }],
    ['submit', { description: {}, code: '', settings: [] }],
    ['submit', { description: {}, code: '', sourceMap: 3, settings: {} }],
    ['drain', 5],
    ['kill', 'words'],
    ['kill', { name: 'words', waitMs: -1 }],
    ['kill', { name: 'words', waitMs: 1e15 }],
    ['rebalance', { name: 'words', request: { executors: { count: 'two' } } }],
    ['describe', null],
    ['format-the-disk', null],
    ['__proto__', null],
  ])('refuses %s with %j', async (method, body) => {
    const channel = await connectChannel(path);
    await expect(channel.request(method, body)).rejects.toMatchObject({ code: 'USAGE' });
    channel.close();
    expect(nimbus.asked).toEqual([]);
  });

  it('tells its client when the daemon is gone', async () => {
    let tellClosed: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (tellClosed = resolve));
    const client = await connectControl(path, { onClose: tellClosed });
    await server.close();
    await closed;
    expect(client.isClosed).toBe(true);
    await expect(client.ask('status', null)).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
    await expect(connectControl(path)).rejects.toMatchObject({ code: 'CONNECTION_LOST' });
  });
});
