/**
 * How much Nimbus and supervisors write to the coordinator while a topology runs, counted by the coordinator over virtual time: it
 * grows with machines, not with executors. Workers are played; the bench `coordination` counts it for real ones and over ZooKeeper.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  compileSettings,
  processIdentity,
  silentLogger,
  systemClock,
  VirtualClock,
} from '../../src/base/index.js';
import {
  type Coordination,
  connectCoordination,
  type EmbeddedCoordinator,
  openEmbeddedCoordinator,
} from '../../src/coordination/index.js';
import { createBlobStore, EventJournal, startNimbus } from '../../src/nimbus/index.js';
import { described, until } from '../../src/nimbus/testing/nimbus-harness.js';
import { startSupervisor, type Supervisor } from '../../src/supervisor/index.js';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const WORKER_ENTRY = fileURLToPath(new URL('../../src/supervisor/fake-worker.mjs', import.meta.url));
/** With the submission in them. */
const FIRST_SECONDS = 3;
const SECONDS = 10;
const SETTINGS = compileSettings({
  'slot.request.max-interval': 0,
  'slot.wait-timeout': 0,
  'supervisor.worker-stop-timeout': '1s',
});

let root: string;
let coordinator: EmbeddedCoordinator;
const clock = new VirtualClock();
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'isobar-writes-'));
  coordinator = await openEmbeddedCoordinator({
    directory: join(root, 'coordinator'),
    socketPath: join(root, 'c.sock'),
    clock: systemClock,
    logger: silentLogger,
    sessionTimeoutMs: 60_000,
  });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await coordinator.close();
  rmSync(root, { recursive: true, force: true });
});

async function connect(): Promise<Coordination> {
  const coordination = await connectCoordination({
    address: join(root, 'c.sock'),
    process: processIdentity(process.pid)!,
    clock: systemClock,
    logger: silentLogger,
    settings: { 'coordinator.session-timeout': 60_000 },
  });
  closing.push(() => coordination.close());
  return coordination;
}

async function start(id: string): Promise<Supervisor> {
  const supervisor = await startSupervisor({
    id,
    host: id,
    rack: 'r',
    cores: 1,
    memoryBytes: 1e9,
    owner: 'o',
    directory: join(root, id),
    socketPath: join(root, `${id}.sock`),
    coordination: await connect(),
    coordinatorAddress: join(root, 'c.sock'),
    workerEntry: WORKER_ENTRY,
    settings: SETTINGS,
    clock,
    logger: silentLogger,
    keeper: null,
    socketDirectory: join(root, 'peers'),
    deadLetterDirectory: join(root, 'dead'),
    blobs: createBlobStore(join(root, 'nimbus')),
  });
  // Its timers are those of the virtual clock, so a worker that is to stop is not waited for.
  closing.push(async () => {
    for (const { pid } of supervisor.slots()) if (pid !== null) process.kill(pid, 'SIGKILL');
    await supervisor.close();
  });
  return supervisor;
}

/** Writes in some seconds of virtual time. */
async function countWrites(supervisors: number, executors: number): Promise<number> {
  const nimbus = await startNimbus({
    id: 'n1',
    coordination: await connect(),
    blobStore: createBlobStore(join(root, 'nimbus')),
    journal: new EventJournal(join(root, 'nimbus', 'events.jsonl'), silentLogger),
    settings: SETTINGS,
    clock,
    logger: silentLogger,
    randomBytes,
  });
  closing.push(() => nimbus.close());
  const started: Supervisor[] = [];
  for (let index = 0; index < supervisors; index++) started.push(await start(`s${index}`));
  const outside = await connect();
  await until('all supervisors', async () => (await outside.listSupervisors()).length === supervisors);
  await nimbus.submit({
    description: described('writes', executors / 2),
    code: `busy ${executors / supervisors}`,
    sourceMap: '{}',
    settings: { 'topology.workers': supervisors },
  });
  const heard = (supervisor: Supervisor): number =>
    supervisor.slots().find(({ heartbeat }) => heartbeat !== null)?.heartbeat?.sequence ?? 0;
  const told = async (supervisor: Supervisor): Promise<number> => {
    const folded = await outside.readHeartbeat(supervisor.id);
    return folded?.slots.find(({ heartbeat }) => heartbeat !== null)?.heartbeat?.sequence ?? 0;
  };
  let before = 0;
  for (let second = 0; second < FIRST_SECONDS + SECONDS; second++) {
    if (second === FIRST_SECONDS) before = coordinator.changeCount;
    for (const supervisor of started) {
      const known = await told(supervisor);
      await until('news of a worker', () => Promise.resolve(heard(supervisor) > known + 1));
    }
    const heardNow = started.map(heard);
    clock.advance(1000);
    for (const [index, supervisor] of started.entries())
      await until('a heartbeat with it', async () => (await told(supervisor)) >= heardNow[index]!);
    // What is written because of it.
    for (let look = 0; look < 5; look++) await nimbus.list();
  }
  return coordinator.changeCount - before;
}

describe('writes to the coordinator', () => {
  it.each([
    [1, 10],
    [1, 1000],
    [3, 30],
    [3, 3000],
  ])('of %i supervisors are two a second each, with %i executors', async (supervisors, executors) => {
    const writes = await countWrites(supervisors, executors);
    // A heartbeat each, and the positions of its tasks; of those at the edges one more may fall into the time.
    expect(writes).toBeGreaterThanOrEqual(supervisors * SECONDS);
    expect(writes).toBeLessThanOrEqual(2 * supervisors * (SECONDS + 1));
  });
});
