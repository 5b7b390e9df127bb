import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ErrorCode, silentLogger, type Settings, VirtualClock } from '../base/index.js';
import type { Coordination, TaskReport } from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { BlobStore } from './blob-store.js';
import { type Nimbus, startNimbus } from './nimbus.js';
import type { TopologyStatus } from './status.js';
import { NimbusHarness, until } from './testing/nimbus-harness.js';

let cluster: NimbusHarness;
let settings: Settings;
/** Of the supervisors that the tests play. */
let outside: Coordination;
let clock: VirtualClock;
let blobStore: BlobStore;
let nimbus: Nimbus;

beforeEach(async () => {
  cluster = await NimbusHarness.create();
  ({ settings, outside, clock, blobStore, nimbus } = cluster);
});

afterEach(() => cluster.close());

/** A new Nimbus over the session of the old one, which is closed. */
async function startAnew(): Promise<void> {
  cluster.nimbus = nimbus = await cluster.startNimbus();
}

const submit = (name?: string, workers?: number): Promise<string> => cluster.submit(name, workers);
const announce = (id: string, ports: readonly number[]): Promise<void> => cluster.announce(id, ports);
const assigned: NimbusHarness['assigned'] = (id, isRight) => cluster.assigned(id, isRight);
const settle = (): Promise<void> => cluster.settle();

async function statusOf(id: string): Promise<TopologyStatus> {
  const found = (await nimbus.status()).topologies.find((topology) => topology.id === id);
  if (found === undefined) throw new Error(`no topology ${id}`);
  return found;
}

/** Publishes, for one supervisor, what ready workers of the assignment would report. */
function report(
  assignment: Assignment,
  supervisor: string,
  parts?: (component: string) => Partial<TaskReport>,
  workerSuffix = '',
): Promise<void> {
  const life = { suffix: workerSuffix, generation: workerSuffix === '' ? 1 : 2 };
  return cluster.report(supervisor, [assignment], parts, life);
}

const places = (assignment: Assignment): string[] =>
  assignment.slots.map(
    ({ supervisor, port, executors }) => `${supervisor}:${port} ${JSON.stringify(executors)}`,
  );

describe('a submission', () => {
  it('is stored, placed and shown', async () => {
    await announce('s1', [1, 2]);
    const id = await submit('wörter 🙂');
    expect(id).toMatch(/^[A-Za-z0-9_-]+-1-\d+$/);
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    expect(assignment.version).toBe(1);
    const record = (await outside.readTopology(id))?.value;
    expect(record).toMatchObject({ name: 'wörter 🙂', phase: { kind: 'active' } });
    expect(record?.secret).toMatch(/^[0-9a-f]{64}$/);
    expect(Buffer.from(await blobStore.read(record?.codeHash ?? '')).toString()).toBe('// wörter 🙂');
    await settle();
    expect(await statusOf(id)).toMatchObject({
      isReady: false,
      unplacedExecutors: 0,
      workersAsked: 2,
      ackers: 2,
    });
    await report(assignment, 's1');
    await until('readiness', async () => (await statusOf(id)).isReady);
  });

  it('stores nothing when it is refused', async () => {
    await expect(nimbus.submit({ description: {}, code: '', settings: {} })).rejects.toMatchObject({
      code: 'DESCRIPTION_INVALID',
    });
    expect(await outside.listTopologies()).toEqual([]);
    expect(readdirSync(cluster.blobs)).toEqual([]);
  });

  it('is refused while a topology of its name is alive, and replaces one that has ended', async () => {
    const first = await submit();
    await expect(submit()).rejects.toMatchObject({ code: 'TOPOLOGY_ALREADY_ALIVE' });
    await nimbus.stop('words');
    const second = await submit();
    expect(second).not.toBe(first);
    expect((await outside.listTopologies()).map(({ value }) => value.id)).toEqual([second]);
    // Its code is the same, so it is still there.
    await blobStore.read((await outside.readTopology(second))?.value.codeHash ?? '');
  });

  it('succeeds once of two at the same time', async () => {
    const results = await Promise.allSettled([submit(), submit()]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('waits for slots, and is placed when a supervisor comes', async () => {
    const id = await submit();
    await settle();
    expect((await statusOf(id)).unplacedExecutors).toBeGreaterThan(0);
    expect((await statusOf(id)).unplacedReason).not.toBeNull();
    await announce('s1', [1, 2]);
    await assigned(id, ({ slots }) => slots.length === 2);
  });
});

describe('a bounded topology', () => {
  it('goes through its stages to its end, as the reports say, and then keeps no worker', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    await report(assignment, 's1', () => ({ acked: 5, emitted: 5 }));
    await settle();
    expect((await statusOf(id)).phase.kind).toBe('active');
    await report(assignment, 's1', (component) =>
      component === 'lines' ? { ended: true, acked: 7 } : { executed: 9 },
    );
    const ending = await until('the end to begin', async () => {
      const phase = (await outside.readTopology(id))?.value.phase;
      return phase?.kind === 'ending' && phase;
    });
    expect(ending).toEqual({ kind: 'ending', stage: 0, stages: [['count']] });
    await report(assignment, 's1', () => ({ ended: true, acked: 7, executed: 9, queued: 4 }));
    await until('the end', async () => (await outside.readTopology(id))?.value.phase.kind === 'finished');
    const ended = await until('the end to be told', async () => {
      const found = await statusOf(id);
      return found.phase.kind === 'finished' && found;
    });
    expect(ended.components.map(({ queued }) => queued)).toEqual(ended.components.map(() => 0));
    await assigned(id, ({ slots, version }) => slots.length === 0 && version === 2);
    await outside.publishHeartbeat({
      supervisorId: 's1',
      pid: 1,
      sequence: cluster.nextSequence(),
      slots: [],
      lastReports: [],
    });
    const status = await until('the final status', async () => {
      const found = await statusOf(id);
      return found.isSettled && found;
    });
    expect(status.totals).toMatchObject({ acked: 14, executed: 18 });
  });

  it('keeps its totals over restarts of its workers and of Nimbus', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    await report(assignment, 's1', () => ({ acked: 10 }));
    await until('the first report', async () => (await statusOf(id)).totals.acked === 20);
    await report(assignment, 's1', () => ({ acked: 1 }), 'b');
    await until('the second lives', async () => (await statusOf(id)).totals.acked === 22);
    await settle();
    clock.advance(1001);
    await until('the stored totals', async () => readdirSync(cluster.documents).length === 1);
    await settle();
    await nimbus.close();
    await startAnew();
    expect((await statusOf(id)).totals.acked).toBe(22);
  });
});

describe('draining and killing', () => {
  it('drains to the end of what is pending', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    await report(assignment, 's1', () => ({ pending: 3 }));
    await nimbus.drain('words');
    expect((await outside.readTopology(id))?.value.phase.kind).toBe('draining');
    await report(assignment, 's1', () => ({ stopped: true }));
    await until('the end', async () => (await outside.readTopology(id))?.value.phase.kind === 'finished');
    expect((await outside.readTopology(id))?.value.phase).toEqual({ kind: 'finished', drained: true });
  });

  it('kills what does not drain in time, and says so', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    await report(assignment, 's1', () => ({ pending: 3 }));
    await nimbus.drain('words');
    await settle();
    clock.advance(settings['drain.timeout'] + 1);
    await until('the kill', async () => (await outside.readTopology(id))?.value.phase.kind === 'stopped');
    await settle();
    expect((await statusOf(id)).notes.join()).toContain('drain.timeout');
  });

  it('kills at once, frees the slots, and knows no such name afterwards', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    const other = await submit('other');
    await assigned(id, ({ slots }) => slots.length === 2);
    await nimbus.stop('words');
    await assigned(id, ({ slots }) => slots.length === 0);
    await assigned(other, ({ slots }) => slots.length === 2);
    await expect(nimbus.stop('words')).rejects.toMatchObject({ code: 'TOPOLOGY_NOT_ALIVE' });
    await expect(nimbus.drain('nobody')).rejects.toMatchObject({ code: 'TOPOLOGY_NOT_ALIVE' });
  });

  it('fails a topology that a supervisor calls unusable', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    await assigned(id, ({ slots }) => slots.length === 2);
    const lastProblem = { code: 'GRAPH_MISMATCH', message: 'another graph', details: {} } as const;
    const slot = {
      port: 1,
      state: 'unusable',
      topologyId: id,
      workerId: null,
      pid: null,
      restarts: 1,
      lastProblem,
    };
    await outside.publishHeartbeat({
      supervisorId: 's1',
      pid: 1,
      sequence: cluster.nextSequence(),
      slots: [{ ...slot, heartbeat: null, heartbeatMs: null }],
      lastReports: [],
    });
    await until('the failure', async () => (await outside.readTopology(id))?.value.phase.kind === 'failed');
    await assigned(id, ({ slots }) => slots.length === 0);
  });
});

describe('losses', () => {
  it('moves nothing while a supervisor is away whose workers speak for themselves', async () => {
    await announce('s1', [1]);
    await announce('s2', [1]);
    await announce('s3', [1]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    for (const supervisor of ['s1', 's2', 's3']) await report(assignment, supervisor);
    await settle();
    const lost = assignment.slots[0]?.supervisor ?? '';
    const [heartbeat] = (await outside.listHeartbeats()).filter(({ supervisorId }) => supervisorId === lost);
    const worker = heartbeat?.slots[0]?.heartbeat;
    if (worker === undefined || worker === null) throw new Error('no worker');
    await outside.publishWorkerLiveness(worker);
    await outside.withdrawSupervisor(lost);
    await settle();
    for (let second = 0; second < 10; second++) {
      clock.advance(1000);
      await outside.publishWorkerLiveness({ ...worker, sequence: worker.sequence + second + 1 });
      for (const supervisor of ['s1', 's2', 's3'])
        if (supervisor !== lost) await report(assignment, supervisor);
      await settle();
    }
    expect(await outside.readAssignment(id)).toEqual(assignment);
    expect((await nimbus.status()).supervisors.find((one) => one.id === lost)?.isPresent ?? false).toBe(
      false,
    );
  });

  it('moves the executors of a machine that is gone, and leaves the others where they are', async () => {
    await announce('s1', [1]);
    await announce('s2', [1]);
    await announce('s3', [1]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    const [first, second] = assignment.slots;
    for (const supervisor of ['s1', 's2', 's3']) await report(assignment, supervisor);
    await outside.withdrawSupervisor(first?.supervisor ?? '');
    await settle();
    expect((await outside.readAssignment(id))?.version).toBe(1);
    clock.advance(settings['supervisor.gone-grace'] + 1);
    const moved = await assigned(id, ({ version }) => version === 2);
    expect(moved.slots.map(({ supervisor }) => supervisor)).not.toContain(first?.supervisor);
    expect(places(moved)).toContain(
      second === undefined ? '' : places({ ...assignment, slots: [second] })[0],
    );
  });

  it('gives workers on a slow machine the time of their requests to announce themselves, whatever the grace', async () => {
    await announce('s1', [1]);
    await announce('s2', [1]);
    const id = await submit('words', 1);
    const assignment = await assigned(id, ({ slots }) => slots.length === 1);
    const lost = assignment.slots[0]?.supervisor ?? '';
    await report(assignment, lost);
    const worker = (await outside.listHeartbeats())[0]?.slots[0]?.heartbeat;
    if (worker === undefined || worker === null) throw new Error('no worker');
    await outside.withdrawSupervisor(lost);
    await settle();
    // From here on, as if the worker had got its turn only after some requests of others.
    const { own } = cluster;
    const list = own.listWorkerLiveness.bind(own);
    let requests = 0;
    own.listWorkerLiveness = async () => {
      if (++requests === 10) await outside.publishWorkerLiveness(worker);
      return list();
    };
    clock.advance(settings['supervisor.gone-grace'] + 1);
    await until('the announcement', async () => requests >= 10);
    await settle();
    expect(await outside.readAssignment(id)).toEqual(assignment);
  });

  it('does not wait for workers of a machine that is gone, whatever was last reported of them', async () => {
    await announce('s1', [1]);
    const id = await submit('words', 1);
    const assignment = await assigned(id, ({ slots }) => slots.length === 1);
    await report(assignment, 's1');
    await until('its worker', async () => (await statusOf(id)).workers[0]?.isReady);
    await outside.withdrawSupervisor('s1');
    // Its session ended; what it published last stays.
    await report(assignment, 's1');
    await settle();
    clock.advance(settings['supervisor.gone-grace'] + 1);
    await assigned(id, ({ version }) => version > 1);
    await until('no worker', async () => (await statusOf(id)).workers.length === 0);
    await nimbus.stop('words');
    await settle();
    expect((await statusOf(id)).isSettled).toBe(true);
  });

  it('keeps everything where it is when Nimbus is started anew', async () => {
    await announce('s1', [1, 2]);
    const id = await submit();
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    await nimbus.close();
    clock.advance(1_000_000);
    await startAnew();
    await settle();
    clock.advance(settings['nimbus.round-interval']);
    await settle();
    expect(await outside.readAssignment(id)).toEqual(assignment);
  });

  it('goes on with other topologies when the description of one is lost', async () => {
    await announce('s1', [1, 2, 3]);
    const lost = await submit('lost', 1);
    await assigned(lost, ({ slots }) => slots.length === 1);
    const hash = (await outside.readTopology(lost))?.value.descriptionHash ?? '';
    await nimbus.close();
    writeFileSync(blobStore.blobPath(hash), 'damaged');
    await startAnew();
    const id = await submit('words', 2);
    const assignment = await assigned(id, ({ slots }) => slots.length === 2);
    const kept = await outside.readAssignment(lost);
    expect(kept?.slots).toHaveLength(1);
    const taken = [...assignment.slots, ...(kept?.slots ?? [])].map(({ port }) => port);
    expect(new Set(taken).size).toBe(3);
    expect((await statusOf(lost)).problems).toMatchObject([{ code: 'TOPOLOGY_CODE_LOST' }]);
  });

  it.each([
    ['deleted', (path: string) => rmSync(path)],
    ['emptied', (path: string) => writeFileSync(path, '')],
    ['of other bytes', (path: string) => writeFileSync(path, '// worts')],
  ])('calls a topology failed whose code is %s, once a supervisor cannot start it', async (_how, harm) => {
    await announce('s1', [1]);
    const id = await submit('words', 1);
    const assignment = await assigned(id, ({ slots }) => slots.length === 1);
    await report(assignment, 's1');
    await until('its worker', async () => (await statusOf(id)).workers[0]?.isReady);
    harm(blobStore.blobPath((await outside.readTopology(id))!.value.codeHash));
    const heartbeat = (await outside.readHeartbeat('s1'))!;
    const tell = (code: ErrorCode): Promise<void> =>
      outside.publishHeartbeat({
        ...heartbeat,
        sequence: cluster.nextSequence(),
        slots: heartbeat.slots.map((slot) => ({
          ...slot,
          ...{ state: 'backing-off', workerId: null, pid: null },
          lastProblem: { code, message: 'it does not start', details: {} },
        })),
      });
    await tell('WORKER_LOST');
    await settle();
    expect((await statusOf(id)).phase.kind).toBe('active');
    await tell('TOPOLOGY_CODE_LOST');
    await until('its failure', async () => (await statusOf(id)).phase.kind === 'failed');
    expect((await nimbus.list()).topologies[0]).toMatchObject({
      status: 'FAILED',
      problem: { code: 'TOPOLOGY_CODE_LOST' },
    });
  });

  it('believes no supervisor that its code is lost while it is there', async () => {
    await announce('s1', [1]);
    const id = await submit('words', 1);
    const assignment = await assigned(id, ({ slots }) => slots.length === 1);
    await report(assignment, 's1');
    const heartbeat = (await outside.readHeartbeat('s1'))!;
    const lastProblem = { code: 'TOPOLOGY_CODE_LOST', message: 'gone', details: {} } as const;
    const slots = heartbeat.slots.map((slot) => ({
      ...slot,
      state: 'backing-off',
      workerId: null,
      lastProblem,
    }));
    await outside.publishHeartbeat({ ...heartbeat, sequence: cluster.nextSequence(), slots });
    await settle();
    expect((await statusOf(id)).phase.kind).toBe('active');
  });
});

describe('leadership', () => {
  it('goes to one Nimbus; another one answers that it does not lead, and takes over', async () => {
    await until('leadership', async () => nimbus.isLeader);
    const secondCoordination = await cluster.connect();
    const secondClock = new VirtualClock();
    const second = await startNimbus({
      id: 'n2',
      coordination: secondCoordination,
      blobStore,
      journal: cluster.openJournal(),
      settings,
      clock: secondClock,
      logger: silentLogger,
      randomBytes,
    });
    try {
      const refused = second.status();
      // Whatever it answers is looked at below.
      refused.catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 50));
      secondClock.advance(5001);
      await expect(refused).rejects.toMatchObject({ code: 'NOT_LEADER' });
      await nimbus.close();
      await cluster.own.close();
      await until('the new leader', async () => {
        secondClock.advance(500);
        return second.isLeader;
      });
    } finally {
      await second.close();
      await secondCoordination.close();
    }
  });
});
