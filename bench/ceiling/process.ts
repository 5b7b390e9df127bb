/**
 * A process of a ceiling: either holds one or two threads with a host each, or is itself one of two hosts that meet at a
 * Unix socket. The harness starts it, samples it, drains it and asks for its counts over the channel of `fork`.
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { Worker as Thread } from 'node:worker_threads';
import { Host } from './host.js';
import {
  allocateHostMemory,
  DRAIN,
  openHostMemory,
  RUN,
  STOP,
  type CeilingStart,
  type FromCeiling,
  type HostMemory,
  type ToCeiling,
} from './protocol.js';
import { allocateRing } from './ring.js';
import { SocketLink } from './socket-link.js';
import type { ThreadStart } from './thread.js';

const RING_BYTES = 1 << 22;

interface Running {
  readonly memories: readonly HostMemory[];
  /** Counts of each host, once all have stopped. */
  readonly counts: Promise<readonly ReadonlyMap<string, number>[]>;
}

function tell(message: FromCeiling): void {
  process.send?.(message);
}

function startThreads(start: CeilingStart, count: number): Running {
  const rings = [allocateRing(RING_BYTES), allocateRing(RING_BYTES)] as const;
  const hosts = Array.from({ length: count }, (_, index) => {
    const memory = allocateHostMemory();
    const threadStart: ThreadStart = {
      index,
      acking: start.acking,
      rate: start.ratePerHost,
      memory,
      rings: count === 1 ? null : { out: rings[index === 0 ? 0 : 1], into: rings[index === 0 ? 1 : 0] },
    };
    const thread = new Thread(new URL('./thread.js', import.meta.url), { workerData: threadStart });
    const counts = once(thread, 'message').then(([map]) => map as ReadonlyMap<string, number>);
    return { memory: openHostMemory(memory), counts };
  });
  return {
    memories: hosts.map(({ memory }) => memory),
    counts: Promise.all(hosts.map(({ counts }) => counts)),
  };
}

async function meet(socketPath: string, index: 0 | 1): Promise<Socket> {
  if (index === 1) {
    const socket = connect(socketPath);
    await once(socket, 'connect');
    return socket;
  }
  const server = createServer();
  server.listen(socketPath, () => tell({ kind: 'listening' }));
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  return socket;
}

async function startHost(start: CeilingStart, socketPath: string, index: 0 | 1): Promise<Running> {
  const socket = await meet(socketPath, index);
  const link = new SocketLink(socket);
  const memory = openHostMemory(allocateHostMemory());
  const host = new Host({
    acking: start.acking,
    index,
    link,
    rate: start.ratePerHost,
    totals: memory.totals,
    histogram: memory.histogram,
    nowMs: () => performance.now(),
  });
  const run = async (): Promise<readonly ReadonlyMap<string, number>[]> => {
    for (;;) {
      const phase = memory.control[0];
      if (phase === STOP) break;
      if (host.step(phase === RUN) > 0) await immediate();
      else await link.sleep(host.idleMs());
    }
    socket.destroy();
    return [host.counts];
  };
  return { memories: [memory], counts: run() };
}

async function main(): Promise<void> {
  const [start] = (await once(process, 'message')) as [ToCeiling];
  if (start.kind !== 'start') throw new Error(`A ceiling expects "start" first; it got "${start.kind}".`);
  const running =
    start.place.kind === 'threads'
      ? startThreads(start, start.place.count)
      : await startHost(start, start.place.socketPath, start.place.index);
  const setPhase = (phase: number): void => {
    for (const { control } of running.memories) {
      Atomics.store(control, 0, phase);
      Atomics.notify(control, 0);
    }
  };
  process.on('message', (message: ToCeiling) => {
    if (message.kind === 'drain') setPhase(DRAIN);
    if (message.kind === 'stop') setPhase(STOP);
    if (message.kind === 'sample') {
      const hosts = running.memories.map(({ totals, histogram }) => ({
        totals: Float64Array.from(totals),
        histogram: Int32Array.from(histogram),
      }));
      tell({ kind: 'sample', atMs: Date.now(), hosts });
    }
  });
  tell({ kind: 'running' });
  tell({ kind: 'counts', hosts: await running.counts });
  process.disconnect();
}

await main();
