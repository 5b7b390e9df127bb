import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Clock,
  IsobarError,
  type Logger,
  silentLogger,
  systemClock,
  VirtualClock,
} from '../../base/index.js';
import { decodeControlFrame, encodeControlFrame } from '../control-frame.js';
import { type PeerAddress, peerKey, peerSocketPath } from './address.js';
import {
  PACKET_CONFIRM,
  PACKET_FRAME,
  PACKET_HANDSHAKE,
  type Packet,
  PacketParser,
  packetHeader,
  packetOf,
  rawPacketHeader,
} from './envelope.js';
import { type Challenge, decodeHandshake, type Hello, PROTOCOL_VERSION, prove } from './handshake.js';
import { PeerConnections } from './peer-connections.js';

const SECRET = 'ab'.repeat(32);

interface Node {
  readonly connections: PeerConnections;
  /** What happened, in order: 'up a 1', 'lost a 1', and frames as '< a 5'. */
  readonly events: string[];
  readonly logs: string[];
}

let directory: string;
let open: PeerConnections[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-peers-'));
  open = [];
});

afterEach(async () => {
  await Promise.all(open.map((each) => each.close()));
  rmSync(directory, { recursive: true, force: true });
});

function addressOf(key: string): PeerAddress {
  return { kind: 'unix', path: join(directory, `${key}.sock`) };
}

interface Options {
  generation?: number;
  secret?: string;
  topologyId?: string;
  reconnectTimeoutMs?: number;
  clock?: Clock;
  listen?: PeerAddress;
  onFrame?: (frame: Buffer) => void;
}

async function node(self: string, options: Options = {}): Promise<Node> {
  const events: string[] = [];
  const logs: string[] = [];
  const log = (event: string, fields = {}): void => {
    logs.push(`${event} ${JSON.stringify(fields)}`);
  };
  const logger: Logger = { ...silentLogger, debug: log, info: log, warn: log, error: log };
  const connections = new PeerConnections({
    topologyId: options.topologyId ?? 't',
    self,
    generation: options.generation ?? 1,
    secret: options.secret ?? SECRET,
    listen: options.listen ?? addressOf(self),
    maxFrameBytes: 1024 * 1024,
    reconnectTimeoutMs: options.reconnectTimeoutMs ?? 20_000,
    clock: options.clock ?? systemClock,
    logger,
    onFrame: (peer, frame) => {
      options.onFrame?.(frame);
      events.push(`< ${peer} ${String(decodeControlFrame(frame))}`);
    },
    onUp: (peer, generation) => events.push(`up ${peer} ${generation}`),
    onLost: (peer, generation) => events.push(`lost ${peer} ${generation}`),
  });
  open.push(connections);
  await connections.listen();
  return { connections, events, logs };
}

function peersOf(...keys: string[]): ReadonlyMap<string, PeerAddress> {
  return new Map(keys.map((key) => [key, addressOf(key)]));
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('the condition was not reached');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** A connected pair. */
async function pair(a: Options = {}, b: Options = {}): Promise<[Node, Node]> {
  const nodes: [Node, Node] = [await node('a', a), await node('b', b)];
  for (const each of nodes) each.connections.setPeers(peersOf('a', 'b'));
  await until(() => nodes.every((each) => each.events.length > 0));
  return nodes;
}

function received(of: Node): string[] {
  return of.events.filter((event) => event.startsWith('<'));
}

function numbers(from: string, count: number, start = 0): string[] {
  return Array.from({ length: count }, (_, i) => `< ${from} ${start + i}`);
}

describe('peer connections', () => {
  it('connect each pair once and carry frames both ways in order', async () => {
    const nodes = [await node('a'), await node('b'), await node('c')];
    for (const each of nodes) each.connections.setPeers(peersOf('a', 'b', 'c'));
    await until(() => nodes.every((each) => each.events.length === 2));
    for (let i = 0; i < 300; i++) {
      nodes[0]!.connections.send('c', encodeControlFrame(i));
      nodes[2]!.connections.send('a', encodeControlFrame(i));
    }
    await until(() => received(nodes[0]!).length === 300 && received(nodes[2]!).length === 300);
    expect(received(nodes[0]!)).toEqual(numbers('c', 300));
    expect(received(nodes[2]!)).toEqual(numbers('a', 300));
    expect(nodes[1]!.events.filter((event) => event.startsWith('up')).sort()).toEqual(['up a 1', 'up c 1']);
    await until(() =>
      nodes.every((each) => each.connections.stats().every((peer) => peer.bufferedBytes === 0)),
    );
  });

  it('work over TCP too', async () => {
    const port = await new Promise<number>((resolve) => {
      const probe = net.createServer().listen(0, '127.0.0.1', () => {
        const { port: free } = probe.address() as net.AddressInfo;
        probe.close(() => resolve(free));
      });
    });
    const b: PeerAddress = { kind: 'tcp', host: '127.0.0.1', port };
    const nodes: [Node, Node] = [await node('a'), await node('b', { listen: b })];
    nodes[0].connections.setPeers(new Map([['b', b]]));
    nodes[1].connections.setPeers(peersOf('a'));
    await until(() => nodes.every((each) => each.events.length > 0));
    nodes[0].connections.send('b', encodeControlFrame('x'.repeat(900_000)));
    nodes[0].connections.send('b', encodeControlFrame(1));
    await until(() => received(nodes[1]).length === 2);
  });

  it('bring every frame over exactly once and in order under cuts at seeded random moments', async () => {
    for (const seed of [1, 2, 3]) {
      let state = seed * 7919;
      const chance = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return (state >>> 8) % below;
      };
      const count = 3000;
      let left = 25;
      // Cuts from within the receipt of a frame, too.
      const cutSometimes = (cut: () => void): void => {
        if (left > 0 && chance(60) === 0) {
          left--;
          cut();
        }
      };
      const nodes: [Node, Node] = await pair(
        { onFrame: () => cutSometimes(() => nodes[0].connections.cut('b')) },
        { onFrame: () => cutSometimes(() => nodes[1].connections.cut('a')) },
      );
      for (let i = 0; i < count; i++) {
        const padding = chance(40) === 0 ? 'x'.repeat(chance(100_000)) : '';
        nodes[0].connections.send('b', encodeControlFrame(i));
        if (padding !== '') nodes[0].connections.send('b', encodeControlFrame(`big ${i} ${padding}`));
        nodes[1].connections.send('a', encodeControlFrame(i));
        if (chance(150) === 0) nodes[chance(2)]!.connections.cut(chance(2) === 0 ? 'a' : 'b');
        if (chance(20) === 0) await new Promise(setImmediate);
      }
      const small = (of: Node): string[] => received(of).filter((event) => !event.includes('big'));
      await until(() => small(nodes[0]).length >= count && small(nodes[1]).length >= count);
      expect(small(nodes[0])).toEqual(numbers('b', count));
      expect(small(nodes[1])).toEqual(numbers('a', count));
      for (const each of nodes) {
        expect(each.events.filter((event) => !event.startsWith('<'))).toHaveLength(1);
        expect(each.connections.stats()[0]!.reconnects).toBeGreaterThan(0);
      }
      for (const each of nodes) await each.connections.close();
    }
  });

  it('resume a session cut at the very last frame', async () => {
    const [a, b] = await pair();
    a.connections.send('b', encodeControlFrame(0));
    a.connections.cut('b');
    await until(() => received(b).length === 1);
    await until(() => a.connections.stats()[0]!.bufferedBytes === 0);
    expect(a.events).toEqual(['up b 1']);
    expect(b.events).toEqual(['up a 1', '< a 0']);
  });

  it('resume after a cut at every byte of what travels', async () => {
    // A proxy in front of b that lets `budget` bytes through in each direction, then cuts, with ever larger budgets.
    let budget = 0;
    let cuts = 0;
    const target = addressOf('b');
    const proxy = net.createServer((inside) => {
      const outside = net.connect(target.kind === 'unix' ? { path: target.path } : target);
      const allowed = budget;
      budget++;
      const limited = (from: net.Socket, to: net.Socket): void => {
        let passed = 0;
        from.on('data', (chunk: Buffer) => {
          const rest = cuts > 2500 ? chunk.length : allowed - passed;
          to.write(chunk.subarray(0, rest));
          passed += chunk.length;
          if (chunk.length <= rest) return;
          cuts++;
          // What was written still leaves.
          to.end();
          from.destroy();
        });
        from.on('close', () => to.end());
        from.on('error', () => {});
      };
      limited(inside, outside);
      limited(outside, inside);
    });
    const path = join(directory, 'proxy.sock');
    await new Promise<void>((resolve) => proxy.listen(path, resolve));
    // Fast: time-outs do not matter here, only the order of bytes and cuts.
    const impatient: Clock = {
      ...systemClock,
      after: (ms, run) => systemClock.after(ms < 1000 ? 1 : ms, run),
    };
    const a = await node('a', { clock: impatient });
    const b = await node('b', { clock: impatient });
    a.connections.setPeers(new Map([['b', { kind: 'unix', path }]]));
    b.connections.setPeers(peersOf('a'));
    await until(() => a.events.length > 0 && b.events.length > 0);
    for (let i = 0; i < 40; i++) {
      a.connections.send('b', encodeControlFrame(i));
      b.connections.send('a', encodeControlFrame(i));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await until(() => received(a).length >= 40 && received(b).length >= 40);
    expect(received(a)).toEqual(numbers('b', 40));
    expect(received(b)).toEqual(numbers('a', 40));
    expect(a.events.concat(b.events).filter((event) => event.startsWith('lost'))).toEqual([]);
    await a.connections.close();
    await b.connections.close();
    await new Promise((resolve) => proxy.close(resolve));
  });

  it.each(['flips bits', 'repeats pieces', 'swaps pieces', 'leaves bytes out', 'puts bytes in'] as const)(
    'bring every frame over exactly once and unchanged over a wire that %s',
    async (harm) => {
      let state = 20_268;
      const chance = (below: number): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return (state >>> 8) % below;
      };
      // The first pieces of a connection pass: three in a row that bring nothing over would end the session.
      let harms = 0;
      const maxHarms = 60;
      const damaged = (chunk: Buffer): readonly Buffer[] => {
        harms++;
        const at = chance(chunk.length);
        switch (harm) {
          case 'flips bits':
            chunk[at]! ^= 1 << chance(8);
            return [chunk];
          case 'repeats pieces':
            return [chunk, chunk.subarray(at)];
          case 'swaps pieces':
            return [chunk.subarray(at), chunk.subarray(0, at)];
          case 'leaves bytes out':
            return [chunk.subarray(0, at), chunk.subarray(at + 1)];
          case 'puts bytes in':
            return [chunk.subarray(0, at), Buffer.from([chance(256)]), chunk.subarray(at)];
        }
      };
      const target = addressOf('b');
      const proxy = net.createServer((inside) => {
        const outside = net.connect(target.kind === 'unix' ? { path: target.path } : target);
        const pass = (from: net.Socket, to: net.Socket): void => {
          let untilHarm = 5 + chance(20);
          from.on('data', (chunk: Buffer) => {
            untilHarm--;
            const pieces = untilHarm < 0 && harms < maxHarms ? damaged(chunk) : [chunk];
            if (untilHarm < 0) untilHarm = 5 + chance(20);
            for (const piece of pieces) to.write(piece);
          });
          from.on('close', () => to.destroy());
          from.on('error', () => {});
        };
        pass(inside, outside);
        pass(outside, inside);
      });
      const path = join(directory, 'proxy.sock');
      await new Promise<void>((resolve) => proxy.listen(path, resolve));
      const [a, b] = [await node('a'), await node('b')];
      a.connections.setPeers(new Map([['b', { kind: 'unix', path }]]));
      b.connections.setPeers(peersOf('a'));
      await until(() => a.events.length > 0 && b.events.length > 0);
      let count = 0;
      const send = (): void => {
        // What is in a frame must come over unchanged too.
        const text = `${count} ${'x'.repeat(chance(400))}`;
        a.connections.send('b', encodeControlFrame(text));
        b.connections.send('a', encodeControlFrame(text));
        sent.push(text);
        count++;
      };
      const sent: string[] = [];
      while (harms < maxHarms) {
        for (let i = 0; i < 5; i++) send();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      // Bytes that were left out show when more follow.
      for (let i = 0; i < 100; i++) send();
      await until(() => received(a).length >= count && received(b).length >= count);
      expect(received(a)).toEqual(sent.map((text) => `< b ${text}`));
      expect(received(b)).toEqual(sent.map((text) => `< a ${text}`));
      expect(a.events.concat(b.events).filter((event) => event.startsWith('lost'))).toEqual([]);
      const problems = [...a.logs, ...b.logs].filter((line) => line.includes('PEER_PROTOCOL_ERROR'));
      if (harm !== 'repeats pieces') expect(problems.length).toBeGreaterThan(0);
      await Promise.all([a.connections.close(), b.connections.close()]);
      await new Promise((resolve) => proxy.close(resolve));
    },
  );

  it('tell of a lost peer before its new generation is up, and deliver nothing of the old one after', async () => {
    const [a, b] = await pair();
    b.connections.send('a', encodeControlFrame('old'));
    await until(() => received(a).length === 1);
    // What b had under way is gone with it.
    a.connections.cut('b');
    b.connections.send('a', encodeControlFrame('never'));
    b.connections.setPeers(new Map());
    const next = await node('b', { generation: 2 });
    next.connections.setPeers(peersOf('a', 'b'));
    await until(() => a.events.includes('up b 2'));
    next.connections.send('a', encodeControlFrame('new'));
    await until(() => received(a).length === 2);
    expect(a.events).toEqual(['up b 1', '< b old', 'lost b 1', 'up b 2', '< b new']);
  });

  it('refuse an older generation, whichever side dials', async () => {
    const [a, b] = await pair({ generation: 5 }, { generation: 5 });
    await a.connections.close();
    const old = await node('a', { generation: 4 });
    old.connections.setPeers(peersOf('b'));
    await until(() => b.logs.some((line) => line.includes('generation 4 is older than 5')));
    await until(() => old.logs.some((line) => line.includes('PEER_REFUSED')));
    await old.connections.close();
    await b.connections.close();

    const [c, d] = await pair({ generation: 5 }, { generation: 5 });
    await d.connections.close();
    const oldB = await node('b', { generation: 4 });
    oldB.connections.setPeers(peersOf('a'));
    await until(() => c.logs.some((line) => line.includes('generation 4 is older than 5')));
    expect(oldB.events).toEqual([]);
  });

  it('converge when both sides are replaced at once', async () => {
    const [a, b] = await pair();
    const next = [await node('a', { generation: 2 }), await node('b', { generation: 2 })];
    await Promise.all([a.connections.close(), b.connections.close()]);
    // Closing the old listeners has removed the socket files that the new ones had replaced.
    for (const each of next) await each.connections.close();
    const again = [await node('a', { generation: 3 }), await node('b', { generation: 3 })];
    for (const each of again) each.connections.setPeers(peersOf('a', 'b'));
    await until(() => again.every((each) => each.events.length === 1));
    again[1]!.connections.send('a', encodeControlFrame(1));
    await until(() => received(again[0]!).length === 1);
  });

  it('give a peer up when the reconnect bound has passed, and begin anew if it comes back', async () => {
    const clock = new VirtualClock();
    const a = await node('a', { clock, reconnectTimeoutMs: 1000 });
    const b = await node('b');
    a.connections.setPeers(peersOf('b'));
    b.connections.setPeers(peersOf('a'));
    await until(() => a.events.length > 0 && b.events.length > 0);
    a.connections.cut('b');
    a.connections.send('b', encodeControlFrame('lost'));
    rmSync((addressOf('b') as { path: string }).path);
    clock.advance(999);
    expect(a.events).toEqual(['up b 1']);
    clock.advance(1);
    expect(a.events).toEqual(['up b 1', 'lost b 1']);
    expect(a.connections.stats()[0]!.bufferedBytes).toBe(0);
    a.connections.send('b', encodeControlFrame('dropped'));
    // b comes back under the same generation: it had not given the session up, and learns that it is over.
    await b.connections.close();
    const back = await node('b');
    back.connections.setPeers(peersOf('a'));
    await until(() => {
      clock.advance(500);
      return a.events.length === 3;
    });
    a.connections.send('b', encodeControlFrame('again'));
    await until(() => received(back).length > 0);
    expect(a.events).toEqual(['up b 1', 'lost b 1', 'up b 1']);
    expect(back.events).toEqual(['up a 1', '< a again']);
    const closing = a.connections.close();
    await until(() => {
      clock.advance(100);
      return !existsSync((addressOf('a') as { path: string }).path);
    });
    await closing;
  });

  it('both begin anew when only one of them has given the session up', async () => {
    const [a, b] = await pair();
    b.connections.setPeers(new Map());
    a.connections.send('b', encodeControlFrame('void'));
    b.connections.setPeers(peersOf('a'));
    await until(() => a.events.length === 3 && b.events.length === 2);
    a.connections.send('b', encodeControlFrame('valid'));
    await until(() => received(b).length > 0);
    expect(a.events).toEqual(['up b 1', 'lost b 1', 'up b 1']);
    expect(b.events).toEqual(['up a 1', 'up a 1', '< a valid']);
  });

  it('refuse a wrong secret on both sides, and another topology', async () => {
    const a = await node('a', { secret: 'cd'.repeat(32) });
    const b = await node('b');
    a.connections.setPeers(peersOf('b'));
    b.connections.setPeers(peersOf('a', 'c'));
    await until(() => a.logs.some((line) => line.includes('does not know the secret')));
    const c = await node('a2', { topologyId: 'other' });
    c.connections.setPeers(peersOf('b'));
    await until(() => b.logs.some((line) => line.includes('topology \\"other\\" instead of \\"t\\"')));
    expect([...a.events, ...b.events, ...c.events]).toEqual([]);
  });

  it('refuse a dialer that cannot prove the secret', async () => {
    const b = await node('b');
    b.connections.setPeers(peersOf('a'));
    const socket = net.connect((addressOf('b') as { path: string }).path);
    const send = (message: object): void => {
      const body = Buffer.from(JSON.stringify(message));
      socket.write(Buffer.concat([packetHeader(1, body, 0, 0), body, Buffer.alloc(-body.length & 3)]));
    };
    send({
      kind: 'hello',
      version: PROTOCOL_VERSION,
      topologyId: 't',
      from: 'a',
      to: 'b',
      generation: 9,
      nonce: '',
      session: '',
    });
    await new Promise((resolve) => socket.once('data', resolve));
    send({ kind: 'proof', received: 0, proof: '00'.repeat(32) });
    await new Promise((resolve) => socket.once('close', resolve));
    expect(b.logs.join()).toContain('does not know the secret');
    // Its generation was a claim only.
    const a = await node('a');
    a.connections.setPeers(peersOf('b'));
    await until(() => b.events.length > 0);
  });

  it.each([
    ['rubbish', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['frames before a handshake', packetHeader(PACKET_FRAME, Buffer.alloc(0), 1, 0)],
    ['a huge claim', rawPacketHeader(PACKET_FRAME, 0xffff_fff0, 0, 1, 0)],
    [
      'a handshake that is no JSON',
      Buffer.concat([packetHeader(1, Buffer.from('nope'), 0, 0), Buffer.from('nope')]),
    ],
  ])('disconnect who sends %s, with a logged reason, and go on', async (_, bytes) => {
    const [a, b] = await pair();
    const socket = net.connect((addressOf('b') as { path: string }).path);
    socket.on('error', () => {});
    socket.write(bytes);
    await new Promise((resolve) => socket.once('close', resolve));
    expect(b.logs.join()).toMatch(/peer\.rejected .*PEER_PROTOCOL_ERROR/);
    a.connections.send('b', encodeControlFrame(1));
    await until(() => received(b).length === 1);
  });

  it('cut off who says nothing', async () => {
    const b = await node('b', { reconnectTimeoutMs: 30 });
    const socket = net.connect((addressOf('b') as { path: string }).path);
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('close', resolve));
    expect(b.logs.join()).toContain('no handshake within 30 ms');
  });

  it('give up a peer that breaks the protocol again and again, and never count its frames as received', async () => {
    const [a, b] = await pair();
    // A frame that is none: its peer resends it after each disconnect.
    const bad = encodeControlFrame(1);
    bad.writeInt32LE(99, 0);
    a.connections.send('b', bad);
    await until(() => b.events.includes('lost a 1'));
    expect(b.logs.join()).toContain('a known kind of frame');
    expect(received(b)).toEqual([]);
    await until(() => b.events.filter((event) => event === 'up a 1').length === 2);
    a.connections.send('b', encodeControlFrame(2));
    await until(() => received(b).length === 1 || a.events.length < 3);
  });

  it('refuse to send a frame that the other side would not take', async () => {
    const [a] = await pair();
    expect(() => a.connections.send('b', Buffer.alloc(6 * 1024 * 1024))).toThrow(
      expect.objectContaining({ code: 'ROW_TOO_LARGE' }),
    );
  });

  it('deliver what was sent before closing, and tell the other side that it is over', async () => {
    const [a, b] = await pair();
    for (let i = 0; i < 200; i++) a.connections.send('b', encodeControlFrame(i));
    await a.connections.close();
    await until(() => b.events.includes('lost a 1'));
    expect(b.events).toEqual(['up a 1', ...numbers('a', 200), 'lost a 1']);
    expect(existsSync((addressOf('a') as { path: string }).path)).toBe(false);
    await a.connections.close();
  });

  it('are silent about a peer that is no longer wanted', async () => {
    const [a, b] = await pair();
    a.connections.setPeers(new Map());
    b.connections.setPeers(new Map());
    a.connections.send('b', encodeControlFrame(1));
    expect(a.connections.stats()).toEqual([]);
    expect([a.events, b.events]).toEqual([['up b 1'], ['up a 1']]);
  });

  it('end the session with a peer whose frame makes no sense to its receiver, and begin a new one', async () => {
    const refuse = (frame: Buffer): void => {
      if (decodeControlFrame(frame) === 'nonsense') {
        throw new IsobarError('PEER_PROTOCOL_ERROR', 'what is this?');
      }
    };
    for (const receiver of [0, 1] as const) {
      const nodes = await pair(
        ...([0, 1].map((i) => (i === receiver ? { onFrame: refuse } : {})) as [Options, Options]),
      );
      const [from, to] = [nodes[1 - receiver]!, nodes[receiver]];
      const [own, other] = receiver === 0 ? ['a', 'b'] : ['b', 'a'];
      from.connections.send(own, encodeControlFrame(1));
      from.connections.send(own, encodeControlFrame('nonsense'));
      from.connections.send(own, encodeControlFrame(2));
      await until(() =>
        nodes.every(({ events }) => events.filter((event) => event.startsWith('up')).length === 2),
      );
      from.connections.send(own, encodeControlFrame(3));
      await until(() => received(to).includes(`< ${other} 3`));
      expect(to.events).toEqual([
        `up ${other} 1`,
        `< ${other} 1`,
        `lost ${other} 1`,
        `up ${other} 1`,
        `< ${other} 3`,
      ]);
      expect(from.events).toEqual([`up ${own} 1`, `lost ${own} 1`, `up ${own} 1`]);
      expect(to.logs.some((line) => line.includes('what is this?'))).toBe(true);
      for (const { connections } of nodes) await connections.close();
    }
  });

  it('pass on what the receiver of a frame throws instead of blaming the peer', async () => {
    let thrown = 0;
    const listener = (): void => {
      thrown++;
    };
    const before = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', listener);
    try {
      const [a] = await pair(
        {},
        {
          onFrame: () => {
            throw new Error('mine');
          },
        },
      );
      a.connections.send('b', encodeControlFrame(1));
      await until(() => thrown === 1);
    } finally {
      process.removeListener('uncaughtException', listener);
      for (const each of before) process.on('uncaughtException', each);
    }
  });
});

/** Who knows the secret and takes a worker's place, but keeps to nothing else. */
class Impostor {
  readonly packets: Packet[] = [];
  isClosed = false;
  readonly #socket: net.Socket;
  readonly #self: string;
  readonly #to: string;
  #sequence = 0;

  constructor(self: string, to: string) {
    this.#self = self;
    this.#to = to;
    this.#socket = net.connect((addressOf(to) as { path: string }).path);
    const parser = new PacketParser(1 << 24);
    this.#socket.on('data', (chunk: Buffer) =>
      parser.push(chunk, (packet) => {
        this.packets.push(packet);
        return true;
      }),
    );
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => {
      this.isClosed = true;
    });
  }

  async shakeHands(received = 0): Promise<void> {
    const hello: Hello = {
      kind: 'hello',
      version: PROTOCOL_VERSION,
      topologyId: 't',
      from: this.#self,
      to: this.#to,
      generation: 1,
      nonce: '00',
      session: '',
    };
    this.#say(hello);
    await until(() => this.packets.length === 1);
    const challenge = decodeHandshake(this.packets[0]!.body) as Challenge;
    const proof = prove(Buffer.from(SECRET, 'hex'), 'dialer', hello, challenge);
    this.#say({ kind: 'proof', received, proof });
    await until(() => this.packets.length > 1 || this.isClosed);
  }

  frame(body: Buffer, sequence = ++this.#sequence, confirmed = 0): boolean {
    return this.write(packetOf(PACKET_FRAME, body, sequence, confirmed));
  }

  write(bytes: Buffer): boolean {
    return this.#socket.write(bytes);
  }

  /** Reads nothing from now on. */
  goDeaf(): void {
    this.#socket.pause();
  }

  end(): void {
    this.#socket.destroy();
  }

  #say(message: object): void {
    const body = Buffer.from(JSON.stringify(message));
    this.write(packetOf(PACKET_HANDSHAKE, body, 0, 0));
  }
}

describe('a peer that knows the secret, and keeps to nothing else,', () => {
  async function victim(options: Options = {}): Promise<Node> {
    const b = await node('b', options);
    b.connections.setPeers(peersOf('a', 'b'));
    return b;
  }

  /** Whatever was done to it before: the worker whose place was taken gets it back, and frames flow. */
  async function expectUsable(b: Node): Promise<void> {
    const a = await node('a');
    a.connections.setPeers(peersOf('a', 'b'));
    await until(() => a.events.includes('up b 1'));
    a.connections.send('b', encodeControlFrame('real'));
    await until(() => received(b).includes('< a real'));
    b.connections.send('a', encodeControlFrame('back'));
    await until(() => received(a).includes('< b back'));
  }

  it('begins no session in which it has received something before', async () => {
    const b = await victim();
    const impostor = new Impostor('a', 'b');
    await impostor.shakeHands(7);
    await until(() => impostor.isClosed);
    expect(b.logs.join()).toMatch(/PEER_PROTOCOL_ERROR.*0 frames received in a new session, found 7/u);
    expect(b.events).toEqual([]);
    await expectUsable(b);
  });

  it.each<[string, (impostor: Impostor) => void, RegExp | null]>([
    [
      'leaves a frame out',
      (impostor) => impostor.frame(encodeControlFrame(2), 2),
      /expected frame 1, found frame 2/,
    ],
    [
      'confirms what was never sent',
      (impostor) => impostor.frame(encodeControlFrame(1), 1, 99),
      /expected a confirmation up to 0, found one of 99/,
    ],
    [
      'says hello again',
      (impostor) => impostor.write(packetOf(PACKET_HANDSHAKE, Buffer.alloc(0), 0, 0)),
      /expected frames after the handshake/,
    ],
    [
      'gives a confirmation a body',
      (impostor) => impostor.write(rawPacketHeader(PACKET_CONFIRM, 4, 0, 0, 0)),
      /expected at most 0 bytes/,
    ],
    [
      'sends a frame whose rows are more than its bytes',
      (impostor) => {
        const frame = encodeControlFrame(1);
        frame.writeInt32LE(1, 0);
        frame.writeInt32LE(0x7fff_ffff, 20);
        impostor.frame(frame);
      },
      /a frame is not valid/,
    ],
    [
      'sends half a frame and is silent',
      (impostor) => impostor.write(rawPacketHeader(PACKET_FRAME, 1 << 20, 1, 1, 0)),
      null,
    ],
    ['is silent', () => undefined, null],
  ])(
    '%s: it is cut off with a reason or harmless, and the real one gets its place back',
    async (_, act, reason) => {
      const b = await victim();
      const impostor = new Impostor('a', 'b');
      await impostor.shakeHands();
      await until(() => b.events.includes('up a 1'));
      act(impostor);
      if (reason !== null) {
        await until(() => impostor.isClosed);
        expect(b.logs.join('\n')).toMatch(reason);
        expect(b.logs.join('\n')).toContain('PEER_PROTOCOL_ERROR');
      }
      await expectUsable(b);
      await until(() => impostor.isClosed);
      expect(b.events.slice(0, 3)).toEqual(['up a 1', 'lost a 1', 'up a 1']);
    },
  );

  it('is given up when it sends and sends and reads nothing, so that no answers pile up for it', async () => {
    const b = await victim({
      onFrame: () => b.connections.send('a', encodeControlFrame(Buffer.alloc(1000))),
    });
    const impostor = new Impostor('a', 'b');
    await impostor.shakeHands();
    impostor.goDeaf();
    const frame = encodeControlFrame('x'.repeat(100_000));
    let sent = 0;
    let mostBytes = 0;
    while (!b.events.includes('lost a 1')) {
      if (sent < 1000) sent++;
      if (sent < 1000) impostor.frame(frame);
      await new Promise((resolve) => setImmediate(resolve));
      mostBytes = Math.max(mostBytes, b.connections.stats()[0]?.bufferedBytes ?? 0);
    }
    expect(sent).toBeLessThan(1000);
    expect(mostBytes).toBeLessThan(1_000_000);
    expect(b.logs.join('\n')).toMatch(/peer\.lost .*PEER_PROTOCOL_ERROR.*a peer that reads what it is sent/u);
    impostor.end();
    await expectUsable(b);
  });

  it('keeps the place of nobody by opening a thousand connections', async () => {
    const b = await victim({ reconnectTimeoutMs: 300 });
    const strangers = Array.from({ length: 1000 }, () => new Impostor('a', 'b'));
    await expectUsable(b);
    await until(() => strangers.every(({ isClosed }) => isClosed));
    expect(b.events).toEqual(['up a 1', '< a real']);
  });
});

describe('a peer socket path', () => {
  it('is short, differs by topology and slot, and is refused when it would be cut', () => {
    const long = 'topology-'.repeat(30);
    const path = peerSocketPath('/run/isobar', long, { supervisor: 's', port: 6700 });
    expect(path.length).toBeLessThan(50);
    expect(
      new Set([
        path,
        peerSocketPath('/run/isobar', `${long}2`, { supervisor: 's', port: 6700 }),
        peerSocketPath('/run/isobar', long, { supervisor: 's', port: 6701 }),
        peerSocketPath('/run/isobar', long, { supervisor: 's2', port: 6700 }),
      ]).size,
    ).toBe(4);
    const slot = { supervisor: 's', port: 1 };
    expect(() => peerSocketPath(`/${'d'.repeat(100)}`, 't', slot)).toThrow(
      expect.objectContaining({ code: 'SOCKET_PATH_TOO_LONG' }),
    );
  });

  it('belongs to the slot whose key names it', () => {
    expect(peerKey({ supervisor: 's1', port: 6700 })).toBe('s1:6700');
  });

  it('is checked before listening', async () => {
    const listen: PeerAddress = { kind: 'unix', path: join(directory, 'x'.repeat(110)) };
    await expect(node('a', { listen })).rejects.toThrow(
      expect.objectContaining({ code: 'SOCKET_PATH_TOO_LONG' }),
    );
  });
});
