/** Life of a cluster of `isobar dev`: daemons that are started and left, killed and found again; and its end. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { numbersApp, Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

let workshop: Workshop;
let cluster: DevCluster;
beforeEach(() => {
  workshop = new Workshop();
  cluster = new DevCluster(workshop);
});
afterEach(() => workshop.close());

const APART = [
  '--supervisor',
  'name=a,host=h1,rack=r1,slots=2',
  '--supervisor',
  'name=b,host=h2,rack=r1,slots=2',
  '--supervisor',
  'name=c,host=h3,rack=r2,slots=2',
] as const;

function kill(...pids: number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}

async function submitNumbers(workers: number): Promise<ReadonlyMap<string, number>> {
  await cluster.submit(workshop.write('app.ts', numbersApp(null, { workers })));
  const pids = await cluster.untilRunning('numbers');
  await cluster.untilRowsFlow('numbers');
  return pids;
}

describe('isobar dev', () => {
  it('starts the daemons, leaves them, finds them again, and ends all of it but the state', async () => {
    const first = await cluster.dev('--set', 'metrics.port=0');
    expect(first).toMatchObject({ code: 0 });
    expect(first.stdout).toMatch(/^metrics +http:\/\/127\.0\.0\.1:\d+\/metrics$/m);
    const [{ metricsUrl } = { metricsUrl: null }] = (await cluster.status()).daemons;
    expect(await (await fetch(metricsUrl ?? '')).text()).toContain('isobar_nimbus_leader 1');
    expect(first.stdout).toContain(`started; ready: isobar submit app.ts --directory ${cluster.directory}\n`);
    const keeper = await cluster.pidOf('keeper');
    const second = await cluster.dev();
    expect(second).toMatchObject({ code: 0, stderr: '' });
    expect(second.stdout).toContain('runs already');
    expect(await cluster.status()).toMatchObject({
      state: 'ready',
      keeper: { pid: keeper },
      daemons: [{ id: 'local', state: 'ready', restarts: 0, problem: null }],
      supervisors: [{ name: 'local', isPresent: true }],
    });
    await submitNumbers(2);
    expect(await cluster.ask('stop')).toMatchObject({ stopped: ['local'] });
    await cluster.untilNothingRuns();
    expect(await cluster.status()).toMatchObject({ state: 'stopped', keeper: null });
    expect((await cluster.dev('stop')).stdout).toContain('nothing ran');
    // What was alive goes on.
    await cluster.ask();
    await cluster.untilRunning('numbers');
    await cluster.ask('stop');
    await cluster.untilNothingRuns();
  });

  it('keeps workers through the death of its keeper and its daemon, and re-attaches', async () => {
    await cluster.ask();
    const pids = await submitNumbers(2);
    kill(await cluster.pidOf('keeper'));
    await cluster.untilStatus('the keeper is gone', ({ keeper }) => keeper === null);
    await cluster.untilRowsFlow('numbers');
    const local = await cluster.pidOf('local');
    expect(await cluster.ask()).toMatchObject({ outcome: 'attached' });
    expect(await cluster.pidOf('local')).toBe(local);
    kill(local);
    await cluster.untilStatus(
      'another daemon',
      ({ daemons: [one], state }) => state === 'ready' && one?.pid !== local,
    );
    await cluster.untilRowsFlow('numbers');
    // Both at once: nobody is left who would start anything.
    kill(await cluster.pidOf('keeper'), await cluster.pidOf('local'));
    expect(await cluster.ask()).toMatchObject({ outcome: 'started' });
    await cluster.untilRowsFlow('numbers');
    expect(await cluster.untilRunning('numbers')).toEqual(pids);
  });

  it('can leave its workers for the next start', async () => {
    await cluster.ask();
    const pids = await submitNumbers(2);
    await cluster.ask('stop', '--keep-workers');
    expect(workshop.processes().map(({ kind }) => kind)).toEqual(['worker', 'worker']);
    await cluster.ask();
    await cluster.untilRowsFlow('numbers');
    expect(await cluster.untilRunning('numbers')).toEqual(pids);
  });

  it('stops what is left when keeper and daemon are gone', async () => {
    await cluster.ask();
    await submitNumbers(2);
    kill(await cluster.pidOf('keeper'), await cluster.pidOf('local'));
    await cluster.ask('stop');
    await cluster.untilNothingRuns();
  });
});

describe('isobar dev with several supervisors', () => {
  it('has a process for each daemon; any two may die at once, and no worker notices', async () => {
    await cluster.ask(...APART);
    const status = await cluster.status();
    expect(status.daemons.map(({ id }) => id)).toEqual([
      'coordinator',
      'nimbus',
      'supervisor-a',
      'supervisor-b',
      'supervisor-c',
    ]);
    expect(status.supervisors).toMatchObject([
      { name: 'a', host: 'h1', rack: 'r1', isPresent: true },
      { name: 'b', host: 'h2', rack: 'r1', isPresent: true },
      { name: 'c', host: 'h3', rack: 'r2', isPresent: true },
    ]);
    expect(status.supervisors.map(({ slots }) => slots.length)).toEqual([2, 2, 2]);
    const pids = await submitNumbers(3);
    // One worker each: the same port at three supervisors.
    expect([...pids.keys()].sort()).toEqual(['a:6700', 'b:6700', 'c:6700']);
    const pairs = [
      ['coordinator', 'nimbus'],
      ['nimbus', 'supervisor-a'],
      ['coordinator', 'supervisor-b'],
      ['keeper', 'supervisor-c'],
    ];
    for (const pair of pairs) {
      kill(...(await Promise.all(pair.map((id) => cluster.pidOf(id)))));
      if (pair.includes('keeper')) await cluster.ask();
      await cluster.untilStatus(
        `ready after ${pair.join(' and ')}`,
        ({ state, keeper }) => state === 'ready' && keeper !== null,
      );
      await cluster.untilRowsFlow('numbers');
      expect(await cluster.untilRunning('numbers')).toEqual(pids);
    }
  });

  it('moves the executors of a machine that dies, and takes the machine back', async () => {
    await cluster.ask(...APART);
    const pids = await submitNumbers(3);
    expect(await cluster.ask('supervisor', 'stop', 'b', '--crash')).toMatchObject({ name: 'b', workers: 1 });
    const moved = await cluster.untilTopology(
      'its executors run elsewhere',
      'numbers',
      ({ isReady, workers }) =>
        isReady && workers.every(({ supervisorId }) => supervisorId !== 'b') ? workers : undefined,
    );
    const kept = moved
      .filter(({ pid }) => [...pids.values()].includes(pid ?? 0))
      .map(({ supervisorId }) => supervisorId);
    expect(kept).toEqual(expect.arrayContaining(['a', 'c']));
    await cluster.untilRowsFlow('numbers');
    const away = await cluster.status();
    expect(away.supervisors[1]).toMatchObject({ name: 'b', isWanted: false, isPresent: false, pid: null });
    expect(away.daemons.some(({ id }) => id === 'supervisor-b')).toBe(false);
    await cluster.ask('supervisor', 'start', 'b');
    await cluster.untilStatus('it is back', ({ supervisors }) => supervisors[1]?.isPresent === true);
    await cluster.untilRowsFlow('numbers');
  });

  it('leaves the workers of a supervisor that goes alone, and adopts them', async () => {
    await cluster.ask(...APART);
    const pids = await submitNumbers(3);
    await cluster.ask('supervisor', 'stop', 'a', '--only');
    await cluster.ask('supervisor', 'stop', 'c', '--only', '--crash');
    await cluster.untilStatus(
      'both are away',
      ({ supervisors: [a, , c] }) => a?.isPresent === false && c?.isPresent === false,
    );
    await cluster.ask('supervisor', 'start', 'a');
    await cluster.ask('supervisor', 'start', 'c');
    await cluster.untilStatus('both are back', ({ state }) => state === 'ready');
    await cluster.untilRowsFlow('numbers');
    expect(await cluster.untilRunning('numbers')).toEqual(pids);
  });

  it('takes in a supervisor that comes later', async () => {
    await cluster.ask();
    await cluster.ask('supervisor', 'start', 'late', '--supervisor', 'host=h9,slots=1,cores=1');
    const { supervisors } = await cluster.untilStatus('it has joined', ({ state }) => state === 'ready');
    expect(supervisors).toMatchObject([
      { name: 'late', host: 'h9', cores: 1, slots: [{ port: 6700 }] },
      { name: 'local' },
    ]);
    await cluster.ask('stop');
    await cluster.untilNothingRuns();
    expect(existsSync(join(cluster.directory, 'supervisors', 'late'))).toBe(true);
  });
});
