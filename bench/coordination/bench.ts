/**
 * `bench coordination`: how many nodes of the coordinator are written while a topology runs, and how many bytes, by executors and supervisors. Coordinator,
 * Nimbus and supervisors run in this process, as in a daemon; workers are real. The coordinator itself is asked for the number: ZooKeeper by the
 * transactions that it has seen, so that nothing that a client does is missed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type * as Api from '../../build/api/index.js';
import type * as Base from '../../build/base/index.js';
import type * as Coordination from '../../build/coordination/index.js';
import type * as ZooKeeper from '../../build/coordination/zookeeper/zookeeper-servers.conformance.js';
import type * as DaemonModule from '../../build/engines/daemons/daemon.js';
import type * as NimbusDaemon from '../../build/engines/daemons/nimbus-daemon.js';
import type * as SupervisorDaemon from '../../build/engines/daemons/supervisor-daemon.js';
import type * as Dev from '../../build/engines/dev/dev-directory.js';
import { CLI, loadBuilt } from '../load-built.js';
import type { BenchOptions } from '../options.js';
import { type Report, summarize } from '../report.js';

const APP = fileURLToPath(new URL('../../../bench/coordination/app.ts', import.meta.url));
/** Executors, and tasks of each. */
const SIZES = [
  [10, 1],
  [100, 1],
  [1000, 1],
  [1000, 10],
] as const;
const QUICK_SIZES = [SIZES[0], SIZES[2]];
const SUPERVISORS = [1, 3];
const START_MS = 120_000;
const POLL_MS = 100;
/** Heartbeats that say nothing new come every third period, so a shorter window would count by chance. */
const SHORTEST_WINDOW_MS = 6000;

interface CountingCoordinator {
  readonly address: string;
  /** Differences are numbers of writes. */
  count(): Promise<number>;
  /** Differences are bytes of the values written; null: it does not say. */
  bytes(): number | null;
  close(): Promise<void>;
}

type OpenCoordinator = (directory: string) => Promise<CountingCoordinator>;

export async function benchCoordination(options: BenchOptions, report: Report): Promise<void> {
  const adapters: [string, OpenCoordinator][] = [['embedded', openEmbedded]];
  const { zooKeeperMissing } = await loadBuilt<typeof ZooKeeper>(
    'coordination/zookeeper/zookeeper-servers.conformance.js',
  );
  const missing = await zooKeeperMissing();
  if (missing === undefined) adapters.push(['zookeeper', openZooKeeper]);
  else console.error(missing);
  for (const [adapter, open] of adapters) {
    for (const supervisors of SUPERVISORS) {
      for (const [executors, tasks] of options.quick ? QUICK_SIZES : SIZES) {
        const of = tasks === 1 ? '' : `/${executors * tasks}-tasks`;
        const name = `${adapter}/${supervisors}-supervisors/${executors}-executors${of}`;
        if (!name.includes(options.only)) continue;
        const { writes, bytes } = await measure(open, supervisors, { executors, tasks }, options);
        const about = { bench: 'coordination', case: name } as const;
        report(summarize({ ...about, metric: 'writes-per-second', unit: '/s' }, writes));
        if (bytes.length > 0)
          report(summarize({ ...about, metric: 'written-bytes-per-second', unit: 'B/s' }, bytes));
      }
    }
  }
}

async function measure(
  open: OpenCoordinator,
  supervisors: number,
  { executors, tasks }: { readonly executors: number; readonly tasks: number },
  options: BenchOptions,
): Promise<{ readonly writes: number[]; readonly bytes: number[] }> {
  const directory = mkdtempSync(join(tmpdir(), 'isobar-coordination-'));
  // Of the workers too, which start with the environment of their supervisor.
  process.env['BENCH_EXECUTORS'] = String(executors);
  process.env['BENCH_TASKS'] = String(tasks);
  const coordinator = await open(directory);
  const closing: (() => Promise<void>)[] = [() => coordinator.close()];
  try {
    closing.push(await startDaemons(directory, coordinator.address, supervisors));
    await submit(directory, supervisors);
    await untilRunning(directory);
    await pause(options.window.warmUpMs);
    const windowMs = Math.max(SHORTEST_WINDOW_MS, options.window.windowMs);
    const [writes, bytes] = [[] as number[], [] as number[]];
    for (let window = 0; window < options.windows; window++) {
      const [before, bytesBefore] = [await coordinator.count(), coordinator.bytes()];
      const startMs = performance.now();
      await pause(windowMs);
      const after = await coordinator.count();
      const seconds = (performance.now() - startMs) / 1000;
      writes.push((after - before) / seconds);
      const bytesAfter = coordinator.bytes();
      if (bytesAfter !== null && bytesBefore !== null) bytes.push((bytesAfter - bytesBefore) / seconds);
    }
    return { writes, bytes };
  } finally {
    for (const close of closing.reverse()) await close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function startDaemons(
  directory: string,
  coordinatorAddress: string,
  supervisors: number,
): Promise<() => Promise<void>> {
  const { compileSettings, silentLogger, systemClock } = await loadBuilt<typeof Base>('base/index.js');
  const { devDirectory, supervisorSocket } = await loadBuilt<typeof Dev>('engines/dev/dev-directory.js');
  const { startNimbusDaemon } = await loadBuilt<typeof NimbusDaemon>('engines/daemons/nimbus-daemon.js');
  const { startSupervisorDaemon } = await loadBuilt<typeof SupervisorDaemon>(
    'engines/daemons/supervisor-daemon.js',
  );
  const places = devDirectory(directory);
  const common = {
    settings: compileSettings({}),
    clock: systemClock,
    logger: silentLogger,
    signal: new AbortController().signal,
    coordinatorAddress,
    blobDirectory: places.blobDirectory,
  };
  const daemons: DaemonModule.Daemon[] = [
    await startNimbusDaemon({
      ...common,
      controlSocket: places.controlSocket,
      supervisorSocket: (id) => supervisorSocket(places, id),
    }),
  ];
  for (let index = 0; index < supervisors; index++) {
    const id = `s${index + 1}`;
    daemons.push(
      await startSupervisorDaemon({
        ...common,
        id,
        host: id,
        rack: 'r',
        cores: 1,
        memoryBytes: 2 ** 30,
        directory: join(places.supervisors, id),
        socketPath: supervisorSocket(places, id),
        peerSocketDirectory: places.socketDirectory,
        deadLetterDirectory: places.deadLetterDirectory,
        keeper: null,
      }),
    );
  }
  return async () => {
    for (const daemon of daemons.reverse()) await daemon.close({ stopWorkers: true });
  };
}

/** One worker on each supervisor. */
async function submit(directory: string, workers: number): Promise<void> {
  const words = ['submit', APP, '--no-check', '--directory', directory, '--workers', String(workers)];
  const child = spawn(process.execPath, [CLI, ...words], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`isobar submit ended with ${String(code)}.`);
}

async function untilRunning(directory: string): Promise<void> {
  const { clusterClient } = await loadBuilt<typeof Api>('api/index.js');
  const client = clusterClient(directory);
  try {
    const endMs = performance.now() + START_MS;
    for (;;) {
      const { topologies } = await client.ask('status', null);
      if (topologies[0]?.isReady === true && topologies[0].totals.acked > 0) return;
      if (performance.now() > endMs) throw new Error('The topology does not run.');
      await pause(POLL_MS);
    }
  } finally {
    client.close();
  }
}

async function openEmbedded(directory: string): Promise<CountingCoordinator> {
  const { compileSettings, silentLogger, systemClock } = await loadBuilt<typeof Base>('base/index.js');
  const { openEmbeddedCoordinator } = await loadBuilt<typeof Coordination>('coordination/index.js');
  const socketPath = join(directory, 'coordinator', 'c.sock');
  const coordinator = await openEmbeddedCoordinator({
    directory: join(directory, 'coordinator', 'state'),
    socketPath,
    clock: systemClock,
    logger: silentLogger,
    sessionTimeoutMs: compileSettings({})['coordinator.session-timeout'],
  });
  return {
    address: socketPath,
    count: () => Promise.resolve(coordinator.changeCount),
    bytes: () => coordinator.changedBytes,
    close: () => coordinator.close(),
  };
}

async function openZooKeeper(directory: string): Promise<CountingCoordinator> {
  const { startZooKeeper } = await loadBuilt<typeof ZooKeeper>(
    'coordination/zookeeper/zookeeper-servers.conformance.js',
  );
  const root = join(directory, 'zookeeper');
  mkdirSync(root);
  const server = await startZooKeeper(root);
  return {
    address: `zookeeper://127.0.0.1:${server.port}/isobar`,
    count: () => server.changes(),
    bytes: () => null,
    close: () => server.stop(),
  };
}
