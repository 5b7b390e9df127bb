/** What `isobar plan` says of a running cluster is what then happens. */
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

interface PlannedJson {
  readonly rounds: number;
  readonly moves: readonly { readonly from: { readonly supervisor: string } | null; readonly left: string }[];
  readonly topologies: readonly { readonly placement: readonly unknown[] }[];
}

async function plan(...words: string[]): Promise<PlannedJson> {
  const directory = ['--directory', cluster.directory, '--json'];
  const ended = await workshop.run(['plan', '--from-cluster', ...words, ...directory]);
  if (ended.code !== 0) throw new Error(`plan ended with ${ended.code}: ${ended.stdout}${ended.stderr}`);
  return JSON.parse(ended.stdout) as PlannedJson;
}

describe('isobar plan of a running cluster', () => {
  it('tells where everything goes when a machine is lost, and changes nothing by saying so', async () => {
    const file = workshop.write('app.ts', numbersApp(null, { workers: 4 }));
    await cluster.ask('--supervisors', '3', '-s', 'supervisor.slots=3');
    await cluster.submit(file);
    await cluster.untilRunning('numbers');
    const [topology] = (await plan()).topologies;
    expect(await plan()).toMatchObject({ rounds: 0, moves: [], topologies: [topology] });

    const lost = await plan('--remove', 's1');
    expect(lost.moves.length).toBeGreaterThan(0);
    expect(lost.moves.every(({ from, left }) => from?.supervisor === 's1' && left === 'machine-gone')).toBe(
      true,
    );
    expect((await plan()).topologies).toEqual([topology]);

    await cluster.ask('supervisor', 'stop', 's1', '--crash');
    await cluster.untilTopology('nothing is left on s1', 'numbers', ({ workers, isReady }) => {
      return isReady && workers.every(({ supervisorId }) => supervisorId !== 's1');
    });
    expect((await plan()).topologies[0]?.placement).toEqual(lost.topologies[0]?.placement);
  });
});
