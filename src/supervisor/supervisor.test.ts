import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  compileSettings,
  connectChannel,
  IsobarError,
  silentLogger,
  systemClock,
  isSameProcessAlive,
  processIdentity,
  type ProcessIdentity,
} from '../base/index.js';
import {
  connectCoordination,
  openEmbeddedCoordinator,
  type Coordination,
  type EmbeddedCoordinator,
  type SlotReport,
  type WorkerHeartbeat,
  type WorkerLaunch,
} from '../coordination/index.js';
import { startSupervisor, type Supervisor } from './supervisor.js';

const WORKER_ENTRY = fileURLToPath(new URL('./fake-worker.mjs', import.meta.url));
const SETTINGS = compileSettings({
  'supervisor.slots': 2,
  'supervisor.heartbeat-interval': 50,
  'supervisor.worker-stop-timeout': 300,
  'topology.worker-timeout': 2000,
  'topology.worker-launch-timeout': 10_000,
  'supervisor.worker-start-timeout': 300,
  'worker.restart-backoff': 20,
  'worker.restart-backoff-max': 200,
});
const PORT = 6700;

let root: string;
let coordinator: EmbeddedCoordinator;
let coordination: Coordination;
let supervisor: Supervisor | undefined;
const blobs = new Map<string, Uint8Array>();

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'isobar-supervisor-'));
  coordinator = await openEmbeddedCoordinator({
    directory: join(root, 'coordinator'),
    socketPath: join(root, 'c.sock'),
    clock: systemClock,
    logger: silentLogger,
    sessionTimeoutMs: 10_000,
  });
  coordination = await connect();
  blobs.clear();
});

afterEach(async () => {
  await supervisor?.close({ stopWorkers: true });
  supervisor = undefined;
  await coordination.close();
  await coordinator.close();
  rmSync(root, { recursive: true, force: true });
});

function connect(): Promise<Coordination> {
  return connectCoordination({
    address: join(root, 'c.sock'),
    process: own(process.pid),
    clock: systemClock,
    logger: silentLogger,
    settings: { 'coordinator.session-timeout': 10_000 },
  });
}

function own(pid: number): ProcessIdentity {
  const identity = processIdentity(pid);
  if (identity === undefined) throw new Error(`process ${pid} is gone`);
  return identity;
}

function put(text: string | Uint8Array): string {
  const bytes = Buffer.from(text);
  const hash = createHash('sha256').update(bytes).digest('hex');
  blobs.set(hash, bytes);
  return hash;
}

async function start(): Promise<Supervisor> {
  supervisor = await startSupervisor({
    id: 's1',
    host: 'localhost',
    rack: 'r1',
    cores: 2,
    memoryBytes: 1e9,
    owner: 'me',
    directory: join(root, 'supervisor'),
    socketPath: join(root, 's.sock'),
    coordination,
    coordinatorAddress: join(root, 'c.sock'),
    workerEntry: WORKER_ENTRY,
    settings: SETTINGS,
    clock: systemClock,
    logger: silentLogger,
    keeper: null,
    socketDirectory: join(root, 'peers'),
    deadLetterDirectory: join(root, 'dead'),
    blobs: {
      read: (hash) => {
        const bytes = blobs.get(hash);
        return bytes === undefined
          ? Promise.reject(new IsobarError('TOPOLOGY_CODE_LOST', `no ${hash}`))
          : Promise.resolve(bytes);
      },
      readSourceMap: () => Promise.resolve(Buffer.from('{"version":3}')),
      putState: (_topologyId, path) => {
        const bytes = readFileSync(path);
        return Promise.resolve({ hash: put(bytes), bytes: bytes.length });
      },
      fetchState: (_topologyId, hash, path) => {
        writeFileSync(path, blobs.get(hash)!);
        return Promise.resolve();
      },
    },
  });
  return supervisor;
}

async function submit(id: string, mode: string): Promise<void> {
  await coordination.createTopology({
    id,
    name: id,
    submittedMs: 0,
    codeHash: put(mode),
    descriptionHash: put(`{"name":"${id}"}`),
    settings: {},
    secret: '00',
    phase: { kind: 'active' },
  });
}

async function assign(topologyId: string, ports: readonly number[]): Promise<void> {
  const version = ((await coordination.readAssignment(topologyId))?.version ?? 0) + 1;
  await coordination.writeAssignment({
    topologyId,
    version,
    tasks: [],
    slots: ports.map((port) => ({
      supervisor: 's1',
      host: 'localhost',
      port,
      executors: [[1, 1]],
      startedMs: version,
    })),
  });
}

async function until<T>(
  what: string,
  look: () => T | undefined | null | false | Promise<T | undefined | null | false>,
): Promise<T> {
  const endMs = performance.now() + 15_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (performance.now() > endMs) {
      throw new Error(`waited in vain for ${what}; slots: ${JSON.stringify(supervisor?.slots())}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function slot(port = PORT): SlotReport {
  const report = supervisor?.slots().find((one) => one.port === port);
  if (report === undefined) throw new Error(`no slot ${port}`);
  return report;
}

function running(port = PORT): Promise<SlotReport> {
  return until(`a running worker on ${port}`, () => slot(port).state === 'running' && slot(port));
}

function pidOf(report: SlotReport): number {
  if (report.pid === null) throw new Error('the slot has no process');
  return report.pid;
}

function events(topologyId: string, port = PORT): string {
  return readFileSync(join(root, 'supervisor', 'workers', `${topologyId}-${port}`, 'events.log'), 'utf8');
}

const GONE_MEANWHILE = 'worker-started: started,worker-died: ended while its supervisor was away';

describe('a supervisor', () => {
  it('starts what is assigned and publishes one heartbeat for all its workers', async () => {
    await submit('words', 'good');
    await assign('words', [PORT, PORT + 1]);
    await start();
    await running(PORT);
    await running(PORT + 1);
    const folded = await until('the published heartbeat', async () => {
      const [heartbeat] = await coordination.listHeartbeats();
      return heartbeat?.slots.every(({ heartbeat: one }) => one?.ready === true) === true && heartbeat;
    });
    expect(folded.slots.map(({ port, state }) => [port, state])).toEqual([
      [PORT, 'running'],
      [PORT + 1, 'running'],
    ]);
    expect((await coordination.listSupervisors()).map(({ id, ports }) => [id, ports])).toEqual([
      ['s1', [PORT, PORT + 1]],
    ]);
  });

  it('lends its workers generations and positions', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    await start();
    const line = await until('positions', () =>
      /position (\d+) (\d+)/.exec(slot().state === 'running' ? events('words') : ''),
    );
    expect(Number(line[2])).toBeGreaterThan(Number(line[1]));
    expect(await coordination.readPositions('words')).toMatchObject([
      { task: PORT, generation: Number(line[1]) },
    ]);
  });

  it('tells a worker of a newer assignment and of a phase without restarting it', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    await start();
    const { pid } = await running();
    await assign('words', [PORT, PORT + 1]);
    await until('the newer version', () => slot().heartbeat?.assignmentVersion === 2);
    const topology = await coordination.readTopology('words');
    if (topology === undefined) throw new Error('no record');
    await coordination.updateTopology(
      { ...topology.value, phase: { kind: 'draining', sinceMs: 1 } },
      topology.version,
    );
    await until('the phase', () => events('words').includes('phase "draining"'));
    expect(slot().pid).toBe(pid);
  });

  it('takes no rubbish from a worker, and goes on', async () => {
    await submit('words', 'good');
    await assign('words', [PORT, PORT + 1]);
    await start();
    const other = await running(PORT + 1);
    for (const [name, body] of [
      ['heartbeat', null],
      ['heartbeat', { workerId: 'w', tasks: 5 }],
      ['unknown', null],
      ['unusable', { code: 5 }],
    ] as const) {
      const { workerId, heartbeat } = await running();
      // The worker itself would connect again, and be preferred.
      const pid = pidOf(slot());
      process.kill(pid, 'SIGSTOP');
      const channel = await connectChannel(join(root, 's.sock'));
      await channel.request('hello', {
        workerId,
        topologyId: 'words',
        port: PORT,
        generation: heartbeat?.generation,
        process: own(pid),
      });
      for (const positions of [null, 5, [null], [{ task: '1' }]]) {
        await expect(channel.request('store-positions', positions)).rejects.toMatchObject({
          code: 'PEER_PROTOCOL_ERROR',
        });
      }
      channel.event(name, body);
      if (name === 'heartbeat') await until('the end of the connection', () => channel.isClosed);
      channel.end();
      process.kill(pid, 'SIGCONT');
    }
    await until('the problem', () => slot().lastProblem !== null);
    expect(slot().lastProblem).toMatchObject({ code: 'INTERNAL', details: {} });
    expect(slot(PORT + 1).pid).toBe(other.pid);
  });

  it('replaces a killed worker, with a higher generation', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    await start();
    const before = await running();
    const generation = before.heartbeat?.generation ?? 0;
    process.kill(pidOf(before), 'SIGKILL');
    const after = await until(
      'another worker',
      () => slot().state === 'running' && slot().pid !== before.pid && slot(),
    );
    await until('its heartbeat', () => (slot().heartbeat?.generation ?? 0) > generation);
    expect(after.restarts).toBe(1);
    expect(after.lastProblem).toMatchObject({ code: 'WORKER_LOST' });
  });

  it('backs off from a worker that crashes at once, and says what it last wrote', async () => {
    await submit('words', 'crash');
    await assign('words', [PORT]);
    await start();
    const report = await until('three crashes', () => slot().restarts >= 3 && slot());
    expect(report.lastProblem?.code).toBe('WORKER_START_FAILED');
    expect(report.lastProblem?.message).toMatch(/exit code 3.*\n.*first line\nthe reason of the crash/s);
    expect(report.lastProblemMs).toBeGreaterThan(0);
    const events = await until('three events', async () => {
      const told = (await coordination.readHeartbeat('s1'))?.events ?? [];
      return told.length >= 3 && told;
    });
    expect(events[0]).toMatchObject({
      ...{ kind: 'worker-died', topologyId: 'words', port: PORT, code: 'WORKER_START_FAILED', count: 1 },
      ...{ reason: 'ended with exit code 3', detail: 'the reason of the crash' },
    });
    const outputs = readdirSync(join(root, 'supervisor', 'workers', `words-${PORT}`)).filter((name) =>
      name.startsWith('output.log'),
    );
    expect(outputs.length).toBeLessThanOrEqual(4);
    await assign('words', []);
    await until('an empty slot', () => slot().state === 'empty');
  });

  it('kills a worker that does not stop, and frees the slot only then', async () => {
    await submit('words', 'deaf');
    await submit('other', 'good');
    await assign('words', [PORT]);
    await start();
    const deaf = own(pidOf(await running()));
    await assign('words', []);
    await assign('other', [PORT]);
    await until('the other topology', () => {
      if (slot().topologyId === 'other' && isSameProcessAlive(deaf))
        throw new Error('two workers in one slot');
      return slot().topologyId === 'other' && slot().state === 'running';
    });
    expect(isSameProcessAlive(deaf)).toBe(false);
  });

  it('says the last report of a worker that was stopped until it is acknowledged, even after its own restart', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    await start();
    const { workerId } = await running();
    const lastReports = async (): Promise<readonly WorkerHeartbeat[]> =>
      (await coordination.readHeartbeat('s1'))?.lastReports ?? [];
    await assign('words', []);
    await until('its last report', async () => {
      const [report] = await lastReports();
      return report?.workerId === workerId && report.sequence > 1000;
    });
    await until('an empty slot', () => slot().state === 'empty' && slot().heartbeat === null);
    await supervisor?.close();
    await start();
    await until('the same again', async () => (await lastReports())[0]?.workerId === workerId);
    await coordination.acknowledgeReports('s1', ['another', workerId ?? '']);
    await until('nothing more of it', async () => (await lastReports()).length === 0);
    await supervisor?.close();
    await start();
    await until('a heartbeat', async () => ((await coordination.readHeartbeat('s1'))?.sequence ?? 0) >= 1);
    expect(await lastReports()).toEqual([]);
  });

  it('finds the last report of a worker that ended while no supervisor was there', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    await start();
    const report = await running();
    await until('a heartbeat', () => slot().heartbeat !== null);
    const heartbeat = { ...slot().heartbeat, sequence: 77 };
    await supervisor?.close();
    process.kill(pidOf(report), 'SIGKILL');
    await until('its end', () => processIdentity(pidOf(report)) === undefined);
    const directory = join(root, 'supervisor', 'workers', `words-${PORT}`);
    writeFileSync(join(directory, 'last-report.json'), JSON.stringify(heartbeat));
    await start();
    await until('what happened, until Nimbus keeps it', async () => {
      const told = (await coordination.readHeartbeat('s1'))?.events ?? [];
      return told.map(({ kind, reason }) => `${kind}: ${reason}`).join() === GONE_MEANWHILE;
    });
    await until('the report', async () =>
      (await coordination.readHeartbeat('s1'))?.lastReports.some(
        ({ workerId, sequence }) => workerId === report.workerId && sequence === 77,
      ),
    );
    expect(readdirSync(directory)).not.toContain('last-report.json');
  });

  it('adopts running workers after its own restart', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    const { pid } = await (await start(), running());
    await supervisor?.close();
    await start();
    const after = await running();
    expect(after.pid).toBe(pid);
    expect(after.restarts).toBe(0);
  });

  it('finds a worker whose record was lost or damaged by its launch file', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    const { pid } = await (await start(), running());
    await supervisor?.close();
    writeFileSync(join(root, 'supervisor', 'slots', `${PORT}.json`), '{"format":1,"worker');
    await start();
    expect((await running()).pid).toBe(pid);
  });

  it('adopts the other workers when the record of one cannot be read at all', async () => {
    await submit('words', 'good');
    await assign('words', [PORT, PORT + 1]);
    await (await start(), running());
    const other = (): SlotReport | undefined => supervisor?.slots()[1];
    const pid = await until('the second worker', () => other()?.state === 'running' && other()?.pid);
    await supervisor?.close();
    const record = join(root, 'supervisor', 'slots', `${PORT}.json`);
    rmSync(record);
    mkdirSync(join(record, 'a directory'), { recursive: true });
    await start();
    await until('the second worker again', () => other()?.state === 'running');
    expect(other()).toMatchObject({ pid, restarts: 0 });
    rmSync(record, { recursive: true });
    await running();
  });

  it('starts another worker where the old one died while nobody watched', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    const before = await (await start(), running());
    await supervisor?.close();
    const identity = own(pidOf(before));
    process.kill(identity.pid, 'SIGKILL');
    await until('its end', () => !isSameProcessAlive(identity));
    await start();
    expect((await running()).pid).not.toBe(before.pid);
  });

  it('stops a worker whose topology left while nobody watched', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    const identity = own(pidOf(await (await start(), running())));
    await supervisor?.close();
    await assign('words', []);
    await start();
    await until('an empty slot', () => slot().state === 'empty');
    expect(isSameProcessAlive(identity)).toBe(false);
  });

  it('refuses a process of an older generation, which then ends itself', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    await start();
    await running();
    const [name] = readdirSync(join(root, 'supervisor', 'workers', `words-${PORT}`)).filter((one) =>
      one.startsWith('launch-'),
    );
    const launch = JSON.parse(
      readFileSync(join(root, 'supervisor', 'workers', `words-${PORT}`, name ?? ''), 'utf8'),
    ) as WorkerLaunch;
    const path = join(root, 'stale.json');
    writeFileSync(path, JSON.stringify({ ...launch, workerId: 'stale', generation: 0, directory: root }));
    const stale = spawn(process.execPath, [WORKER_ENTRY, path], { stdio: 'ignore' });
    const code = await new Promise((resolve) => stale.once('exit', resolve));
    expect(code).toBe(0);
    expect(readFileSync(join(root, 'events.log'), 'utf8')).toContain('refused GENERATION_OUTDATED');
  });

  it('adopts an unknown process of the topology that its free slot is assigned to', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    // Its code is lost, so the slot stays free of a worker of its own.
    const codeHash = (await coordination.readTopology('words'))?.value.codeHash ?? '';
    blobs.delete(codeHash);
    await start();
    await until('a failed attempt', () => slot().lastProblem?.code === 'TOPOLOGY_CODE_LOST');
    writeFileSync(join(root, 'bundle.mjs'), 'good');
    const launch = {
      workerId: 'unknown',
      generation: 7,
      topologyId: 'words',
      supervisorId: 's1',
      port: PORT,
      codePath: join(root, 'bundle.mjs'),
      supervisorSocket: join(root, 's.sock'),
      directory: root,
    };
    writeFileSync(join(root, 'unknown.json'), JSON.stringify(launch));
    const unknown = spawn(process.execPath, [WORKER_ENTRY, join(root, 'unknown.json')], {
      stdio: 'ignore',
      detached: true,
    });
    const report = await running();
    expect(report.workerId).toBe('unknown');
    expect(report.pid).toBe(unknown.pid);
  });

  it('keeps code that is lost or damaged a problem of its own topology, and tries again', async () => {
    await submit('lost', 'good');
    await submit('words', 'good, but other code');
    const codeHash = (await coordination.readTopology('lost'))?.value.codeHash ?? '';
    blobs.set(codeHash, Buffer.from('damaged'));
    await assign('lost', [PORT]);
    await assign('words', [PORT + 1]);
    await start();
    await running(PORT + 1);
    const report = await until('the problem', () => slot().lastProblem !== null && slot());
    expect(report.lastProblem).toMatchObject({ code: 'TOPOLOGY_CODE_LOST' });
    blobs.set(codeHash, Buffer.from('good'));
    await running(PORT);
  });

  it('reports a topology that cannot run in any worker', async () => {
    await submit('words', 'unusable');
    await assign('words', [PORT]);
    await start();
    const report = await until('the verdict', () => slot().state === 'unusable' && slot());
    expect(report.lastProblem).toMatchObject({ code: 'GRAPH_MISMATCH' });
  });

  it('ends a worker that connects and then says nothing', async () => {
    await submit('words', 'mute');
    await coordination.updateTopology(
      {
        ...(await coordination.readTopology('words').then((topology) => {
          if (topology === undefined) throw new Error('no record');
          return topology.value;
        })),
        settings: { 'topology.worker-launch-timeout': 100 },
      },
      (await coordination.readTopology('words'))?.version ?? -1,
    );
    await assign('words', [PORT]);
    await start();
    const report = await until('the time-out', () => slot().lastProblem !== null && slot());
    expect(report.lastProblem).toMatchObject({ code: 'WORKER_START_FAILED' });
    expect(report.lastProblem?.message).toContain('no heartbeat for 300 ms');
  });

  it('leaves workers alone while the coordinator is away', async () => {
    await submit('words', 'good');
    await assign('words', [PORT]);
    const { pid } = await (await start(), running());
    await coordinator.close();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(slot()).toMatchObject({ state: 'running', pid });
    coordinator = await openEmbeddedCoordinator({
      directory: join(root, 'coordinator'),
      socketPath: join(root, 'c.sock'),
      clock: systemClock,
      logger: silentLogger,
      sessionTimeoutMs: 10_000,
    });
    await until('heartbeats again', async () => {
      try {
        return (await coordination.listHeartbeats())[0]?.slots[0]?.state === 'running';
      } catch {
        return false;
      }
    });
    await assign('words', []);
    await until('an empty slot', () => slot().state === 'empty');
  });
});
