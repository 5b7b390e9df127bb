/** The life of topologies as users steer it, over restarts of Nimbus. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../scheduling/index.js';
import type { RebalanceRequest } from './rebalance.js';
import { described, NimbusHarness, until } from './testing/nimbus-harness.js';

let cluster: NimbusHarness;

beforeEach(async () => {
  cluster = await NimbusHarness.create();
});
afterEach(() => cluster.close());

const LIVE: RebalanceRequest = {
  executors: {},
  resources: {},
  waitMs: null,
  fromScratch: false,
  preview: false,
};

/** Submitted, placed on s1, and reported as running. */
async function running(name = 'words', workers = 2): Promise<Assignment> {
  await cluster.announce('s1', [1, 2, 3, 4]);
  const id = await cluster.submit(name, workers);
  const assignment = await cluster.assigned(id, ({ slots }) => slots.length === workers);
  await cluster.report('s1', [assignment]);
  await until('its workers', async () => {
    const { topologies } = await cluster.nimbus.list();
    return topologies.some((one) => one.id === id && one.workers.actual === workers);
  });
  return assignment;
}

async function isGone(id: string): Promise<boolean> {
  return (await cluster.record(id)) === undefined;
}

describe('activate and deactivate', () => {
  it('change the phase, say whether they did, and move nothing', async () => {
    const assignment = await running();
    const id = assignment.topologyId;
    expect(await cluster.nimbus.deactivate('words')).toEqual({
      topologyId: id,
      status: 'INACTIVE',
      isChanged: true,
      waitMs: null,
    });
    expect((await cluster.record(id))?.phase).toEqual({ kind: 'inactive' });
    expect(await cluster.nimbus.deactivate('words')).toMatchObject({ isChanged: false });
    expect(await cluster.nimbus.activate('words')).toMatchObject({ status: 'ACTIVE', isChanged: true });
    expect(await cluster.outside.readAssignment(id)).toEqual(assignment);
  });

  it('refuse what the status does not allow, and names that are not there', async () => {
    await running();
    await cluster.nimbus.kill('words', null);
    await expect(cluster.nimbus.activate('words')).rejects.toMatchObject({ code: 'TRANSITION_ILLEGAL' });
    await expect(cluster.nimbus.deactivate('word')).rejects.toMatchObject({
      code: 'TOPOLOGY_NOT_ALIVE',
      message: 'no topology named "word" is alive; did you mean "words"?',
    });
  });

  it('keep a topology whose input has ended from ending until it is activated', async () => {
    const assignment = await running();
    await cluster.nimbus.deactivate('words');
    await cluster.report('s1', [assignment], () => ({ ended: true }));
    await cluster.settle();
    expect((await cluster.record(assignment.topologyId))?.phase.kind).toBe('inactive');
    await cluster.nimbus.activate('words');
    await until(
      'the end',
      async () => (await cluster.record(assignment.topologyId))?.phase.kind === 'finished',
    );
  });
});

describe('kill', () => {
  it('stops reading at once, and removes everything once the wait is over and the workers are gone', async () => {
    const assignment = await running();
    const id = assignment.topologyId;
    const result = await cluster.nimbus.kill('words', 7000);
    expect(result).toEqual({ topologyId: id, status: 'KILLED', isChanged: true, waitMs: 7000 });
    expect((await cluster.record(id))?.phase).toMatchObject({ kind: 'killed', wait: { waitMs: 7000 } });
    cluster.clock.advance(6999);
    await cluster.settle();
    expect((await cluster.outside.readAssignment(id))?.slots).toHaveLength(2);
    cluster.clock.advance(1);
    await cluster.assigned(id, ({ slots }) => slots.length === 0);
    await cluster.settle();
    // Its workers are still there, as far as anybody knows.
    expect((await cluster.record(id))?.phase.kind).toBe('removed');
    expect((await cluster.nimbus.list()).topologies).toEqual([]);
    await cluster.report('s1', []);
    await until('the removal', () => isGone(id));
    expect(await cluster.outside.listAssignments()).toEqual([]);
    expect(readdirSync(cluster.blobs)).toEqual([]);
    expect(readdirSync(cluster.documents)).toEqual([]);
  });

  it('waits for the message time-out unless told otherwise', async () => {
    await cluster.submit('words', 1, { settings: { 'topology.message-timeout': '12s' } });
    expect(await cluster.nimbus.kill('words', null)).toMatchObject({ waitMs: 12_000 });
  });

  it('starts its wait anew when it is asked again', async () => {
    const id = await cluster.submit();
    await cluster.nimbus.kill('words', 5000);
    cluster.clock.advance(4000);
    await cluster.nimbus.kill('words', 9000);
    cluster.clock.advance(8000);
    await cluster.settle();
    expect((await cluster.record(id))?.phase.kind).toBe('killed');
    await cluster.nimbus.kill('words', 0);
    await until('the removal', () => isGone(id));
  });

  it('goes on with its wait over a restart of Nimbus, whatever the wall clock says', async () => {
    const id = await cluster.submit();
    await cluster.nimbus.kill('words', 60_000);
    cluster.clock.advance(20_000);
    await cluster.restartNimbus();
    await cluster.settle();
    cluster.clock.advance(39_000);
    await cluster.settle();
    expect((await cluster.record(id))?.phase.kind).toBe('killed');
    cluster.clock.advance(1000);
    await until('the removal', () => isGone(id));
  });

  it('keeps the name until it is removed, and blobs that another topology uses', async () => {
    await cluster.submit('words', 1, { code: '// shared' });
    await cluster.submit('other', 1, { code: '// shared' });
    await cluster.nimbus.kill('words', 5000);
    await expect(cluster.submit('words')).rejects.toMatchObject({ code: 'TOPOLOGY_ALREADY_ALIVE' });
    await cluster.nimbus.kill('words', 0);
    await until('the name', async () => (await cluster.nimbus.list()).topologies.length === 1);
    const record = (await cluster.outside.listTopologies()).find(({ value }) => value.name === 'other');
    expect(await cluster.blobStore.has(record?.value.codeHash ?? '')).toBe(true);
  });

  it('removes what has ended, and what failed', async () => {
    const assignment = await running();
    await cluster.report('s1', [assignment], () => ({ ended: true }));
    await until(
      'the end',
      async () => (await cluster.record(assignment.topologyId))?.phase.kind === 'finished',
    );
    await cluster.report('s1', []);
    expect(await cluster.nimbus.kill('words', null)).toMatchObject({ status: 'REMOVED' });
    await until('the removal', () => isGone(assignment.topologyId));
  });

  it('does not wait for workers on a machine that is gone', async () => {
    const assignment = await running();
    await cluster.nimbus.kill('words', 0);
    await cluster.assigned(assignment.topologyId, ({ slots }) => slots.length === 0);
    // Without its record, and with nobody announcing a worker of it, its machine is gone after the grace.
    await cluster.outside.withdrawSupervisor('s1');
    await cluster.report('s1', [assignment]);
    for (let i = 0; i < 5; i++) {
      await cluster.settle();
      cluster.clock.advance(500);
    }
    await until('the removal', () => isGone(assignment.topologyId));
  });
});

describe('rebalance', () => {
  it('brings new counts into force without a wait, and moves only what must move', async () => {
    const before = await running('words', 2);
    const id = before.topologyId;
    const result = await cluster.nimbus.rebalance('words', { ...LIVE, workers: 3, executors: { count: 1 } });
    expect(result).toMatchObject({
      topologyId: id,
      status: 'ACTIVE',
      revision: 1,
      waitMs: null,
      workers: 3,
      executors: { count: 1, lines: 2, __acker: 2 },
      notes: [],
    });
    expect(result.changes.startedWorkers).toHaveLength(1);
    expect(result.changes.stoppedWorkers).toEqual([]);
    const prepared = await cluster.assigned(id, ({ version }) => version === 2);
    expect(prepared.target?.slots).toHaveLength(3);
    expect(prepared.slots.map(({ executors }) => executors)).toEqual([
      ...before.slots.map(({ executors }) => executors),
      [],
    ]);
    const after = await cluster.carryOut(id, ['s1']);
    expect(after.slots).toHaveLength(3);
    expect(after.revision).toBe(1);
    expect((await cluster.record(id))?.desired).toMatchObject({ workers: 3, executors: { count: 1 } });
  });

  it('leaves everything where it runs when the machines go that were to take tasks, and moves it elsewhere as planned', async () => {
    await cluster.announce('s1', [1, 2, 3]);
    const id = await cluster.submit('words', 1);
    const before = await cluster.assigned(id, ({ slots }) => slots.length === 1);
    await cluster.report('s1', [before]);
    for (const other of ['s2', 's3']) {
      await cluster.announce(other, [1]);
      await cluster.report(other, []);
    }
    await cluster.settle();
    await cluster.nimbus.rebalance('words', { ...LIVE, workers: 3 });
    await cluster.assigned(id, ({ target }) => target?.slots.length === 3);
    const written: Assignment[] = [];
    const write = cluster.own.writeAssignment.bind(cluster.own);
    cluster.own.writeAssignment = (assignment: Assignment) => {
      written.push(assignment);
      return write(assignment);
    };
    // s1 is away as well, but its worker says that it lives.
    const [heartbeat] = (await cluster.outside.listHeartbeats()).filter(
      ({ supervisorId }) => supervisorId === 's1',
    );
    const worker = heartbeat?.slots[0]?.heartbeat;
    if (worker === undefined || worker === null) throw new Error('no worker');
    await cluster.outside.publishWorkerLiveness(worker);
    for (const supervisor of ['s1', 's2', 's3']) await cluster.outside.withdrawSupervisor(supervisor);
    await cluster.settle();
    for (let i = 1; i < 20; i++) {
      cluster.clock.advance(200);
      await cluster.outside.publishWorkerLiveness({ ...worker, sequence: worker.sequence + i });
      await cluster.settle();
    }
    await cluster.announce('s1', [1, 2, 3]);
    const after = await cluster.carryOut(id, ['s1']);
    expect(after.slots.map(({ port }) => port)).toEqual([1, 2, 3]);
    // No task was ever anywhere else without a move that hands it over.
    const slotOf = ({ slots }: Assignment, task: number): number | undefined =>
      slots.find(({ executors }) => executors.some(([first, last]) => first <= task && task <= last))?.port;
    for (const [index, assignment] of written.entries()) {
      for (let task = 2; task <= 5; task++) {
        const isMoving = assignment.moves?.some(({ tasks }) => tasks[0] <= task && task <= tasks[1]) === true;
        const formerly = slotOf(written[index - 1] ?? before, task);
        if (!isMoving)
          expect([assignment.version, task, slotOf(assignment, task)]).toEqual([
            assignment.version,
            task,
            formerly,
          ]);
      }
    }
  });

  it('accepts more executors than tasks, and says how many there will be', async () => {
    await running();
    const result = await cluster.nimbus.rebalance('words', { ...LIVE, executors: { count: 99 } });
    expect(result.executors['count']).toBe(2);
    expect(result.notes).toEqual([
      'Component "count" has 2 executors instead of 99, because it has 2 tasks.',
    ]);
  });

  it('accepts more workers than there are slots or executors, and says how many there will be', async () => {
    await running();
    const { workers, notes, changes } = await cluster.nimbus.rebalance('words', { ...LIVE, workers: 99 });
    expect(workers).toBe(99);
    const there = 2 + changes.startedWorkers.length - changes.stoppedWorkers.length;
    expect(notes).toEqual([
      'The workers wanted are 99, but there are 6 executors: at most 6 workers will run.',
      `Of the 99 workers that are wanted ${there} have a slot and executors.`,
    ]);
  });

  it('refuses resources that its strategy does not look at, and changes nothing', async () => {
    const id = await cluster.submit();
    const request = { ...LIVE, workers: 3, resources: { count: { cpu: 50 } } };
    await expect(cluster.nimbus.rebalance('words', request)).rejects.toMatchObject({
      code: 'RESOURCES_NOT_HEEDED',
      message:
        'resources of "count" would have no effect: the strategy "balanced" does not place by resources',
    });
    expect((await cluster.record(id))?.desired).toBeUndefined();
  });

  it('places by resources with a strategy that does, and refuses those that nobody knows', async () => {
    await cluster.close();
    cluster = await NimbusHarness.create({ 'scheduling.strategy': 'resource-aware' });
    const machine = {
      host: 'h',
      rack: 'r',
      ports: [1, 2],
      cores: 4,
      memoryBytes: 2 ** 34,
      owner: 'o',
      startedMs: 0,
    };
    await cluster.outside.announceSupervisor({ id: 's1', ...machine });
    const id = await cluster.submit('words', 1);
    await cluster.assigned(id, ({ slots }) => slots.length > 0);
    const ask = (amounts: Readonly<Record<string, number>>, fromScratch = false) =>
      cluster.nimbus.rebalance('words', {
        ...LIVE,
        preview: true,
        fromScratch,
        resources: { count: amounts },
      });
    await expect(ask({ gpu: 1 })).rejects.toMatchObject({
      code: 'RESOURCES_NOT_HEEDED',
      details: { found: 'gpu' },
    });
    expect((await ask({ cpu: 20, heap: 64 }, true)).unplacedReason).toBeNull();
    expect((await ask({ 'cpu.pcore.percent': 500 }, true)).unplacedReason).not.toBeNull();
  });

  it('only says what it would do when asked for a preview', async () => {
    const before = await running();
    const result = await cluster.nimbus.rebalance('words', { ...LIVE, workers: 1, preview: true });
    expect(result.changes.stoppedWorkers).toEqual([{ supervisorId: 's1', port: 2 }]);
    expect(result.changes.movedTasks).toBe(3);
    await cluster.settle();
    expect(await cluster.outside.readAssignment(before.topologyId)).toEqual(before);
    expect(await cluster.record(before.topologyId)).not.toHaveProperty('desired');
  });

  it('waits with its spouts stopped when told to, over a restart of Nimbus', async () => {
    const before = await running();
    const id = before.topologyId;
    const result = await cluster.nimbus.rebalance('words', { ...LIVE, workers: 3, waitMs: 30_000 });
    expect(result).toMatchObject({ status: 'REBALANCING', waitMs: 30_000 });
    await expect(cluster.nimbus.rebalance('words', LIVE)).rejects.toMatchObject({
      code: 'TRANSITION_ILLEGAL',
    });
    cluster.clock.advance(10_000);
    await cluster.report('s1', [before]);
    await cluster.restartNimbus();
    await cluster.settle();
    cluster.clock.advance(19_000);
    await cluster.report('s1', [before]);
    await cluster.settle();
    expect((await cluster.record(id))?.phase.kind).toBe('rebalancing');
    expect((await cluster.outside.readAssignment(id))?.version).toBe(1);
    cluster.clock.advance(1000);
    await cluster.assigned(id, ({ target }) => target?.revision === 1);
    const after = await cluster.carryOut(id, ['s1']);
    expect(after.slots).toHaveLength(3);
    expect(after.revision).toBe(1);
    expect((await cluster.record(id))?.phase).toEqual({ kind: 'active' });
  });

  it('places everything anew when told to, once', async () => {
    const before = await running();
    await cluster.announce('s2', [1, 2, 3, 4]);
    await cluster.settle();
    await cluster.nimbus.rebalance('words', { ...LIVE, waitMs: 0, fromScratch: true });
    await cluster.assigned(before.topologyId, ({ version }) => version === 2);
    const after = await cluster.carryOut(before.topologyId, ['s1', 's2']);
    expect(after.slots.map(({ supervisor }) => supervisor)).toEqual(['s1', 's2']);
  });

  it.each([
    [{ workers: 0 }, 'PARALLELISM_ILLEGAL'],
    [{ workers: -1 }, 'PARALLELISM_ILLEGAL'],
    [{ workers: 2.5 }, 'PARALLELISM_ILLEGAL'],
    [{ executors: { count: 0 } }, 'PARALLELISM_ILLEGAL'],
    [{ executors: { nobody: 2 } }, 'COMPONENT_NOT_FOUND'],
  ])('refuses %j and changes nothing', async (part, code) => {
    const id = await cluster.submit();
    await expect(cluster.nimbus.rebalance('words', { ...LIVE, ...part })).rejects.toMatchObject({ code });
    expect(await cluster.record(id)).not.toHaveProperty('desired');
  });

  it('is refused for what is killed', async () => {
    await cluster.submit();
    await cluster.nimbus.kill('words', 5000);
    await expect(cluster.nimbus.rebalance('words', { ...LIVE, workers: 2 })).rejects.toMatchObject({
      code: 'TRANSITION_ILLEGAL',
    });
  });

  it('carries out both of two that come at once, and one that is sent twice once', async () => {
    const before = await running();
    const results = await Promise.all([
      cluster.nimbus.rebalance('words', { ...LIVE, workers: 3 }),
      cluster.nimbus.rebalance('words', { ...LIVE, executors: { count: 1 } }),
    ]);
    expect(results.map(({ revision }) => revision).sort()).toEqual([1, 2]);
    expect((await cluster.record(before.topologyId))?.desired).toMatchObject({
      workers: 3,
      executors: { count: 1 },
    });
    const request = { ...LIVE, workers: 4, requestId: 'r' };
    expect(await cluster.nimbus.rebalance('words', request)).toMatchObject({ revision: 3 });
    expect(await cluster.nimbus.rebalance('words', request)).toMatchObject({ revision: 3 });
  });
});

describe('a machine that goes', () => {
  it('takes the state of its tasks along, which is named, also by the next Nimbus', async () => {
    await cluster.announce('s1', [1]);
    const description = described('words') as { components: { id: string; stateful: boolean }[] };
    for (const one of description.components) one.stateful = one.id === 'count';
    const settings = { 'topology.workers': 1 };
    const { topologyId } = await cluster.nimbus.submit({ description, code: '//', settings });
    const before = await cluster.assigned(topologyId, ({ slots }) => slots.length === 1);
    await cluster.report('s1', [before], () => ({ executed: 5 }));
    await cluster.settle();
    await cluster.announce('s2', [1]);
    await cluster.outside.withdrawSupervisor('s1');
    await cluster.settle();
    cluster.clock.advance(cluster.settings['supervisor.gone-grace'] + 1);
    await cluster.assigned(topologyId, ({ slots }) => slots[0]?.supervisor === 's2');
    const lost = async () => (await cluster.nimbus.describe('words')).status.lostStates;
    const [first, second] = before.tasks.flatMap(({ component, first: low, last }) =>
      component === 'count' ? [low, last] : [],
    );
    await until('the loss', async () => (await lost()).length > 0);
    expect(await lost()).toMatchObject([
      { component: 'count', task: first },
      { component: 'count', task: second },
    ]);
    cluster.clock.advance(5000);
    await cluster.settle();
    await cluster.restartNimbus();
    await until('the next Nimbus', async () => (await lost()).length === 2);
  });
});

describe('a list', () => {
  it('counts workers as running that are ready, and says of a silent one that it is', async () => {
    const assignment = await running();
    const listed = async () => (await cluster.nimbus.list()).topologies[0]!;
    cluster.clock.advance(20_000);
    expect(await listed()).toMatchObject({ workers: { actual: 2 }, problem: { code: 'WORKER_SILENT' } });
    await cluster.report('s1', [assignment]);
    await until('the report', async () => (await listed()).problem === null);
    await cluster.report('s1', [assignment], () => ({}), { suffix: '', generation: 1, isReady: false });
    await until('the other report', async () => (await listed()).workers.actual === 0);
    expect(await listed()).toMatchObject({ workers: { desired: 2 }, executors: { desired: 6, actual: 0 } });
  });

  it('shows what is wanted and what there is, with the last change', async () => {
    const assignment = await running();
    const { topologies, slots, supervisors } = await cluster.nimbus.list();
    expect(topologies).toMatchObject([
      {
        name: 'words',
        status: 'ACTIVE',
        lastChange: 'submitted',
        workers: { desired: 2, actual: 2 },
        executors: { desired: 6, actual: 6 },
        tasks: 6,
        isRebalancing: false,
        waitLeftMs: null,
        problem: null,
      },
    ]);
    expect([slots, supervisors]).toEqual([{ total: 2, used: 2 }, 1]);
    cluster.clock.advance(10_000);
    await cluster.report('s1', [assignment]);
    await cluster.nimbus.rebalance('words', { ...LIVE, workers: 3 });
    await cluster.assigned(assignment.topologyId, ({ slots: now }) => now.length === 3);
    const [moving] = (await cluster.nimbus.list()).topologies;
    expect(moving).toMatchObject({ lastChange: 'rebalanced', isRebalancing: true, workers: { desired: 3 } });
    await cluster.carryOut(assignment.topologyId, ['s1']);
    await until('the rebalance', async () => !(await cluster.nimbus.list()).topologies[0]!.isRebalancing);
    cluster.clock.advance(1);
    await cluster.nimbus.kill('words', 8000);
    cluster.clock.advance(3000);
    expect((await cluster.nimbus.list()).topologies[0]).toMatchObject({
      status: 'KILLED',
      lastChange: 'status',
      waitLeftMs: 5000,
    });
  });

  it('says why something is not placed', async () => {
    await cluster.submit();
    expect((await cluster.nimbus.list()).topologies[0]?.problem).toMatchObject({ code: 'NO_FREE_SLOT' });
    const { status, summary } = await cluster.nimbus.describe('words');
    expect(status.unplacedExecutors).toBe(summary.executors.desired);
  });
});

describe('the configuration', () => {
  it('tells each value with the layer that it comes from', async () => {
    await cluster.submit('words', 2, { settings: { 'topology.max.spout.pending': 9 } });
    await cluster.nimbus.rebalance('words', { ...LIVE, workers: 3 });
    const values = await cluster.nimbus.config('words');
    const of = (name: string) => values.find((one) => one.name === name);
    expect(of('topology.max-spout-pending')).toMatchObject({ value: 9, origin: 'submission', unit: null });
    expect(of('topology.workers')).toMatchObject({ value: 3, origin: 'rebalance' });
    expect(of('topology.worker-timeout')).toMatchObject({ value: 5000, origin: 'cluster', unit: 'ms' });
    expect(of('messaging.ring-bytes')).toMatchObject({ origin: 'default', unit: 'bytes' });
    const own = await cluster.nimbus.config(null);
    expect(own.find(({ name }) => name === 'topology.workers')).toMatchObject({
      value: 1,
      origin: 'default',
    });
  });
});

describe('lost code', () => {
  it('fails its topology and no other', async () => {
    await cluster.announce('s1', [1, 2, 3, 4]);
    const lost = await cluster.submit('lost', 1);
    const kept = await cluster.submit('kept', 1);
    const [first, second] = [
      await cluster.assigned(lost, ({ slots }) => slots.length === 1),
      await cluster.assigned(kept, ({ slots }) => slots.length === 1),
    ];
    await cluster.report('s1', [first, second]);
    const path = cluster.blobStore.blobPath((await cluster.record(lost))?.codeHash ?? '');
    expect(existsSync(path)).toBe(true);
    rmSync(path);
    await cluster.restartNimbus();
    await cluster.report('s1', [first, second]);
    await cluster.settle();
    // Its workers go on; it is shown as failed, since none of them could be started again.
    const shown = (await cluster.nimbus.list()).topologies;
    expect(shown.map(({ name, status }) => `${name} ${status}`)).toEqual(['kept ACTIVE', 'lost FAILED']);
    expect(shown[1]?.problem?.code).toBe('TOPOLOGY_CODE_LOST');
    expect((await cluster.record(lost))?.phase.kind).toBe('active');
    await cluster.report('s1', [second, { ...first, slots: [] }]);
    cluster.clock.advance(1001);
    await until('the failure', async () => (await cluster.record(lost))?.phase.kind === 'failed');
    expect((await cluster.outside.readAssignment(kept))?.slots).toEqual(second.slots);
    await cluster.nimbus.kill('lost', null);
    await until('the removal', () => isGone(lost));
  });
});
