/** One topology's whole life on a cluster of three supervisors, by the commands alone; and nothing is left behind. */
import { afterAll, describe, expect, it, vi } from 'vitest';
import { numbersApp, Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const workshop = new Workshop();
const cluster = new DevCluster(workshop);
afterAll(() => workshop.close());

/** Runs a command of the cluster that must succeed, and returns its JSON. */
async function ask(...words: string[]): Promise<Record<string, unknown>> {
  const ended = await workshop.run([...words, '--directory', cluster.directory, '--json']);
  expect(ended, words.join(' ')).toMatchObject({ code: 0 });
  return JSON.parse(ended.stdout) as Record<string, unknown>;
}

describe('a topology on a cluster that stays', () => {
  it('is submitted, shown, rebalanced, held, let go on and killed; then the cluster is stopped', async () => {
    expect(await ask('dev', '--supervisors', '3')).toMatchObject({ outcome: 'started', state: 'ready' });
    const app = workshop.write('app.ts', numbersApp(null, { workers: 3 }));
    const { topologyId } = await ask('submit', app, '--no-check');
    const before = await cluster.untilRunning('numbers');
    expect([...before.keys()].sort()).toEqual(['s1:6700', 's2:6700', 's3:6700']);
    await cluster.untilRowsFlow('numbers');

    expect(await ask('list')).toMatchObject({
      supervisors: 3,
      slots: { total: 12, used: 3 },
      topologies: [{ id: topologyId, name: 'numbers', status: 'ACTIVE', workers: { desired: 3, actual: 3 } }],
    });
    const described = await ask('describe', 'numbers');
    expect(described).toMatchObject({ name: 'numbers', status: 'ACTIVE', problems: [] });
    expect(described['placements']).toHaveLength(3);

    await ask('rebalance', 'numbers', '-n', '2');
    const after = await cluster.untilTopology('two workers', 'numbers', ({ isReady, workers }) =>
      isReady && workers.length === 2 ? workers : undefined,
    );
    expect(await ask('describe', 'numbers')).toMatchObject({ lastMove: { step: 'done', problems: [] } });
    // What stayed was not restarted.
    for (const { pid } of after) expect([...before.values()]).toContain(pid);
    await cluster.untilRowsFlow('numbers');

    await ask('deactivate', 'numbers');
    expect(await ask('list')).toMatchObject({ topologies: [{ status: 'INACTIVE' }] });
    await cluster.untilTopology('nothing is pending', 'numbers', ({ totals }) => totals.pending === 0);
    await ask('activate', 'numbers');
    await cluster.untilRowsFlow('numbers');

    await ask('kill', 'numbers', '--wait', '0');
    await cluster.untilStatus('it is gone', ({ topologies }) => topologies?.length === 0);
    await cluster.untilStatus('all slots are empty', ({ supervisors }) =>
      supervisors.every(({ slots }) => slots.every(({ state }) => state === 'empty')),
    );
    expect(await ask('dev', 'stop')).toMatchObject({ keepWorkers: false });
    await cluster.untilNothingRuns();
  });
});
