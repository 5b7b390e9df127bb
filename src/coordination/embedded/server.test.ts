import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serialize } from 'node:v8';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Channel, connectChannel, silentLogger } from '../../base/index.js';
import { supervisor, topology, worker } from '../coordination.conformance.js';
import { connectEmbeddedCoordination, EmbeddedNodeStore } from './client.js';
import {
  createEmbeddedHarness,
  type EmbeddedHarness,
  SESSION_TIMEOUT_MS,
} from './embedded-harness.conformance.js';
import { MAX_WATCHES } from './protocol.js';

describe('the embedded coordinator', () => {
  let harness: EmbeddedHarness;
  const sockets: net.Socket[] = [];

  beforeEach(async () => {
    harness = await createEmbeddedHarness();
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await harness.close();
  });

  async function rawSocket(): Promise<net.Socket> {
    const socket = net.connect(harness.socketPath);
    socket.on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  }

  function message(value: unknown): Buffer {
    const payload = serialize(value);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(payload.length);
    return Buffer.concat([head, payload]);
  }

  it('ends the session of a killed process at once', async () => {
    const killed = await harness.connect();
    const { coordination: other } = await harness.connect();
    await killed.coordination.tryLead('n1');
    await killed.coordination.announceSupervisor(supervisor('s1'));
    await killed.coordination.publishWorkerLiveness(worker('w1', 1));
    const told = vi.fn();
    other.watchLeader(told);
    killed.kill();
    await harness.pass(300);
    expect(told).toHaveBeenCalled();
    expect(await other.tryLead('n2')).toBe(true);
    expect(await other.listSupervisors()).toEqual([]);
    expect(await other.listWorkerLiveness()).toEqual([]);
  });

  it('ends the sessions of processes that went while it was away', async () => {
    const killed = await harness.connect();
    const { coordination: other } = await harness.connect();
    await killed.coordination.tryLead('n1');
    await harness.stopCoordinator();
    killed.kill();
    await harness.startCoordinator();
    await vi.waitFor(async () => {
      await harness.pass(50);
      expect(await other.tryLead('n2')).toBe(true);
    });
  });

  it('ends the session of a client that is connected but silent, and its connection', async () => {
    const channel = await connectChannel(harness.socketPath, {});
    await channel.request('open', {
      session: null,
      timeoutMs: SESSION_TIMEOUT_MS,
      process: { pid: 1, startTime: '' },
      watches: [],
    });
    await channel.request('create', { path: '/leader', data: Buffer.from('{}'), kind: 'ephemeral' });
    await harness.pass(SESSION_TIMEOUT_MS * 0.8);
    expect(harness.server.nodeCount).toBe(1);
    await harness.pass(SESSION_TIMEOUT_MS * 0.5);
    expect(harness.server.nodeCount).toBe(0);
    await vi.waitFor(() => expect(channel.isClosed).toBe(true));
  });

  it('keeps a session over one great leap of the clock that its client takes as well', async () => {
    const { coordination } = await harness.connect();
    await coordination.tryLead('n1');
    harness.clock.advance(SESSION_TIMEOUT_MS * 100);
    await harness.pass(100);
    await vi.waitFor(async () => expect(await coordination.tryLead('n1')).toBe(true));
    const { coordination: other } = await harness.connect();
    expect(await other.tryLead('n2')).toBe(false);
  });

  it('gives a session no longer time-out than its own', async () => {
    const channel = await connectChannel(harness.socketPath, {});
    const answer = await channel.request('open', {
      session: null,
      timeoutMs: SESSION_TIMEOUT_MS * 10,
      process: { pid: 1, startTime: '' },
      watches: [],
    });
    expect(answer).toMatchObject({ timeoutMs: SESSION_TIMEOUT_MS });
    channel.close();
  });

  it('is not ended by anything that a client sends', async () => {
    const { coordination } = await harness.connect();
    await coordination.createTopology(topology('t'));
    const rubbish: readonly Buffer[] = [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.from([0, 0, 0, 4, 1, 2, 3, 4]),
      Buffer.from([0, 0, 0, 0]),
      Buffer.from([255, 255, 255, 255, 0]),
      ...[null, 7, 'text', [], {}, { kind: 'request' }, { kind: 'failure', id: 1 }, { kind: 'x' }].map(
        message,
      ),
      ...[
        ['watch', null],
        ['watch', { path: '/a' }],
        ['watch', 'not a path'],
        ['watch', `/${'a/'.repeat(5000)}`],
        ['unwatch', 9],
        ['nothing', null],
      ].map(([name, body]) => message({ kind: 'event', name, body })),
      ...['open', 'read', '__proto__', 'constructor', 'toString', ''].map((method) =>
        message({ kind: 'request', id: 1, method, body: null }),
      ),
      message({ kind: 'answer', id: 12, body: null }),
      message({ kind: 'failure', id: 12, error: {} }),
    ];
    for (const bytes of rubbish) {
      const socket = await rawSocket();
      socket.end(bytes);
      socket.resume();
      await once(socket, 'close');
      for (const byte of bytes.subarray(0, 40)) {
        const slow = await rawSocket();
        slow.end(Buffer.from([byte]));
        slow.resume();
        await once(slow, 'close');
        break;
      }
    }
    expect(await coordination.listTopologies()).toHaveLength(1);
    expect(harness.server.sessionCount).toBe(1);
  });

  it('answers a request of a wrong shape with PEER_PROTOCOL_ERROR and goes on', async () => {
    const socket = await rawSocket();
    const channel = new Channel(socket, {});
    await expect(channel.request('read', { path: '/a' })).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    const open = { session: null, timeoutMs: 1000, process: { pid: 1, startTime: '' }, watches: [] };
    for (const wrong of [
      null,
      { ...open, timeoutMs: -1 },
      { ...open, timeoutMs: Number.NaN },
      { ...open, process: { pid: 0, startTime: '' } },
      { ...open, watches: ['no slash'] },
    ]) {
      await expect(channel.request('open', wrong)).rejects.toMatchObject({ code: 'PEER_PROTOCOL_ERROR' });
    }
    await channel.request('open', open);
    await expect(channel.request('open', open)).rejects.toMatchObject({ code: 'PEER_PROTOCOL_ERROR' });
    const node = { path: '/a', data: Buffer.from('x'), kind: 'durable' };
    for (const [method, wrong] of [
      ['create', { ...node, path: '/' }],
      ['create', { ...node, path: '/a//b' }],
      ['create', { ...node, path: '/a/' }],
      ['create', { ...node, path: '/ü' }],
      ['create', { ...node, path: '/a b' }],
      ['create', { ...node, data: 'text' }],
      ['create', { ...node, kind: 'eternal' }],
      ['write', { ...node, version: 0.5 }],
      ['write', { ...node, version: -2 }],
      ['remove', { path: '/a' }],
      ['children', []],
      ['erase', null],
    ] as const) {
      await expect(channel.request(method, wrong)).rejects.toMatchObject({ code: 'PEER_PROTOCOL_ERROR' });
    }
    await expect(channel.request('create', { ...node, data: Buffer.alloc(1_000_001) })).rejects.toMatchObject(
      {
        code: 'NODE_TOO_LARGE',
      },
    );
    await channel.request('create', node);
    await expect(channel.request('write', { ...node, version: 3 })).rejects.toMatchObject({
      code: 'VERSION_CONFLICT',
      details: { expected: 'version 3', found: 'version 0', where: '/a' },
    });
    expect(await channel.request('write', { ...node, version: 0 })).toBe(1);
    expect(await channel.request('children', { path: '/' + 'x' })).toEqual([]);
  });

  it('reports values of another shape, which hide no others', async () => {
    const { coordination } = await harness.connect();
    const store = new EmbeddedNodeStore({
      socketPath: harness.socketPath,
      process: { pid: 1_000_001, startTime: '1' },
      clock: harness.clock,
      logger: silentLogger,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
    });
    await store.connect();
    await coordination.createTopology(topology('good'));
    await coordination.announceSupervisor(supervisor('good'));
    await coordination.publishWorkerLiveness(worker('good', 1));
    const rubbish = [
      null,
      5,
      'text',
      [],
      {},
      [null],
      { id: 5 },
      { ...topology('x'), phase: null },
      { ...worker('x', 1), tasks: null },
      { ...worker('x', 1), tasks: [null] },
      { ...worker('x', 1), threads: [{ executors: 5 }] },
      { ...supervisor('x'), ports: ['a'] },
    ];
    const parents = ['topologies', 'assignments', 'supervisors', 'heartbeats', 'workers', 'positions/good'];
    for (const parent of parents) {
      for (const [index, value] of rubbish.entries()) {
        await store.create(`/${parent}/bad${index}`, Buffer.from(JSON.stringify(value)), 'durable');
      }
    }
    expect((await coordination.listTopologies()).map(({ value }) => value.id)).toEqual(['good']);
    expect(await coordination.listAssignments()).toEqual([]);
    expect(await coordination.listSupervisors()).toEqual([supervisor('good')]);
    expect(await coordination.listHeartbeats()).toEqual([]);
    expect(await coordination.listWorkerLiveness()).toEqual([worker('good', 1)]);
    expect(await coordination.readPositions('good')).toEqual([]);
    await expect(coordination.readTopology('bad0')).rejects.toMatchObject({ code: 'STATE_DAMAGED' });
    await store.close();
  });

  it('cuts off a connection with too many watches', async () => {
    const channel = await connectChannel(harness.socketPath, {});
    for (let index = 0; index <= MAX_WATCHES; index++) channel.event('watch', `/node${index}`);
    await vi.waitFor(() => expect(channel.isClosed).toBe(true), 10_000);
    const { coordination } = await harness.connect();
    expect(await coordination.listTopologies()).toEqual([]);
  });

  it('serves 1,000 sessions over its own restart', async () => {
    const stores: EmbeddedNodeStore[] = [];
    for (let index = 0; index < 1000; index++) {
      const store = new EmbeddedNodeStore({
        socketPath: harness.socketPath,
        // Only one in two is known to live.
        process: index % 2 === 0 ? { pid: 5, startTime: '' } : { pid: 1_000_001, startTime: '1' },
        clock: harness.clock,
        logger: silentLogger,
        sessionTimeoutMs: SESSION_TIMEOUT_MS,
      });
      stores.push(store);
    }
    const { coordination, process: living } = await harness.connect();
    expect(living.pid).toBe(1_000_001);
    // As many at a time as the kernel lets wait for a listener (511).
    for (let start = 0; start < stores.length; start += 250) {
      await Promise.all(stores.slice(start, start + 250).map((store) => store.connect()));
    }
    const told = vi.fn();
    for (const store of stores) store.watch('/topologies', told);
    await Promise.all(
      stores.map((store, index) =>
        store.create(`/workers/w${index}`, Buffer.from(JSON.stringify(worker(`w${index}`, 1))), 'ephemeral'),
      ),
    );
    expect(harness.server.sessionCount).toBe(1001);
    await coordination.createTopology(topology('t'));
    await vi.waitFor(() => expect(told).toHaveBeenCalledTimes(1000));
    await harness.stopCoordinator();
    await harness.startCoordinator();
    // Those whose process the kernel does not know may have ended before they came back, and announce nothing here.
    await vi.waitFor(async () => {
      await harness.pass(100);
      expect((await coordination.listWorkerLiveness()).length).toBeGreaterThanOrEqual(500);
      expect(harness.server.sessionCount).toBe(1001);
    }, 20_000);
    await harness.pass(SESSION_TIMEOUT_MS);
    expect((await coordination.listWorkerLiveness()).length).toBeGreaterThanOrEqual(500);
    for (const store of stores) await store.close();
    expect(harness.server.sessionCount).toBe(1);
  });

  it('cannot be connected to when nobody serves, and says so', async () => {
    const options = {
      process: { pid: 1, startTime: '' },
      clock: harness.clock,
      logger: silentLogger,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
    };
    await expect(
      connectEmbeddedCoordination({ ...options, socketPath: `${harness.socketPath}-nobody` }),
    ).rejects.toMatchObject({ code: 'COORDINATOR_UNAVAILABLE' });
    await expect(
      connectEmbeddedCoordination({ ...options, socketPath: `/${'x'.repeat(120)}` }),
    ).rejects.toMatchObject({ code: 'SOCKET_PATH_TOO_LONG' });
  });

  it('is given up by a client when it is silent, though its socket is open', async () => {
    const root = await mkdtemp(join(tmpdir(), 'isobar-silent-'));
    let isSilent = false;
    // Passes everything on until it falls silent, as a stopped process would.
    const proxy = net.createServer((near) => {
      const far = net.connect(harness.socketPath);
      near.on('data', (bytes) => isSilent || far.write(bytes));
      far.on('data', (bytes) => near.write(bytes));
      near.on('error', () => {}).on('close', () => far.destroy());
      far.on('error', () => {}).on('close', () => near.destroy());
    });
    proxy.listen(join(root, 's'));
    await once(proxy, 'listening');
    const coordination = await connectEmbeddedCoordination({
      socketPath: join(root, 's'),
      process: { pid: 1, startTime: '' },
      clock: harness.clock,
      logger: silentLogger,
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
    });
    isSilent = true;
    const underWay = expect(coordination.listTopologies()).rejects.toMatchObject({
      code: 'COORDINATOR_UNAVAILABLE',
    });
    await harness.pass(SESSION_TIMEOUT_MS);
    await underWay;
    isSilent = false;
    await vi.waitFor(async () => {
      await harness.pass(SESSION_TIMEOUT_MS / 10);
      expect(await coordination.listTopologies()).toEqual([]);
    }, 10_000);
    await coordination.close();
    proxy.close();
    await rm(root, { recursive: true, force: true });
  });
});
