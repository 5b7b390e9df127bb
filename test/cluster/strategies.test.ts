/** Strategies that look at whole machines, in a running cluster: supervisors of `isobar dev` stand for the machines. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { numbersApp, Workshop } from './command.js';
import { DevCluster } from './dev-cluster.js';

let workshop: Workshop;
let cluster: DevCluster;
beforeEach(() => {
  workshop = new Workshop();
  cluster = new DevCluster(workshop);
});
afterEach(() => workshop.close());

/** Names of settings with their values, as options. */
const settings = (values: Readonly<Record<string, string | number | boolean>>): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
const machines = (...descriptions: readonly string[]): string[] =>
  descriptions.flatMap((description) => ['--supervisor', description]);

async function run(...words: string[]): Promise<void> {
  const { code, stdout, stderr } = await workshop.run([...words, '--directory', cluster.directory]);
  expect(code, stdout + stderr).toBe(0);
}

/** An endless topology with a spout of one executor, and a bolt and ackers of as many as workers. */
function submit(name: string, workers: number, values: Record<string, string | number> = {}): Promise<void> {
  const file = workshop.write(`${name}.ts`, numbersApp(null, { name, workers }));
  return run('submit', file, '--no-check', ...settings(values));
}

/** Supervisor of each worker, in order, once the topology runs as it is meant to. */
async function placesOf(name: string): Promise<string[]> {
  const slots = await cluster.untilRunning(name);
  return [...slots.keys()].map((slot) => slot.split(':')[0]!).sort();
}

describe('a running cluster', () => {
  it('places by resources, says what a topology lacks, and places it once that is there', async () => {
    await cluster.ask(
      ...machines('name=large,slots=2,cores=3,memory=2GB', 'name=small,slots=2,cores=0.5,memory=2GB'),
      ...settings({ 'scheduling.strategy': 'resource-aware', 'metrics.port': 0 }),
    );
    await submit('first', 1, { 'topology.component-cpu': 100 });
    expect(await placesOf('first')).toEqual(['large']);
    await submit('second', 1, { 'topology.component-cpu': 80 });
    const lack = await cluster.untilTopology(
      'a reason',
      'second',
      ({ unplacedReason }) => unplacedReason ?? false,
    );
    expect(lack).toContain('Together they need 240 % of a core; 50 % are free in all.');
    await run('kill', 'first', '-w', '0');
    expect(await placesOf('second')).toEqual(['large']);
    await cluster.untilRowsFlow('second');
  }, 300_000);

  it('gives an isolated topology machines of its own, and others the rest', async () => {
    await cluster.ask(
      ...machines('name=a,slots=2', 'name=b,slots=2', 'name=c,slots=2'),
      ...settings({
        'scheduling.strategy': 'isolation',
        'scheduling.isolated-topologies': 'alone=1',
        'metrics.port': 0,
      }),
    );
    await submit('alone', 2);
    const own = await placesOf('alone');
    expect(own).toHaveLength(2);
    expect(new Set(own).size).toBe(1);
    await submit('others', 4);
    const rest = await placesOf('others');
    expect(rest).toHaveLength(4);
    expect(rest).not.toContain(own[0]);
    await cluster.untilRowsFlow('others');
    await cluster.untilRowsFlow('alone');
    expect(await placesOf('alone')).toEqual(own);
  }, 300_000);

  it('gives nothing new to a machine that has gone, after it is back, for as long as it is blacklisted', async () => {
    await cluster.ask(
      ...machines('name=a,slots=3', 'name=b,slots=3', 'name=c,slots=3'),
      ...settings({
        'scheduling.strategy': 'even',
        'scheduling.blacklist': true,
        'blacklist.tolerance-count': 2,
        'blacklist.tolerance-time': '1m',
        'blacklist.resume-time': '1h',
        'nimbus.round-interval': '1s',
        'coordinator.session-timeout': '2s',
        'metrics.port': 0,
      }),
    );
    // The blacklist learns from rounds, and without a topology there are none.
    await submit('before', 3);
    expect(await placesOf('before')).toEqual(['a', 'b', 'c']);
    await cluster.ask('supervisor', 'stop', 'a', '--crash');
    const listed = async (): Promise<boolean> => {
      const { stdout } = await workshop.run(['logs', '--daemon', 'nimbus', '--directory', cluster.directory]);
      return stdout.includes('supervisor.blacklisted');
    };
    const endMs = performance.now() + 60_000;
    while (!(await listed()))
      expect(performance.now(), 'waiting until it is blacklisted').toBeLessThan(endMs);
    await cluster.ask('supervisor', 'start', 'a');
    await cluster.untilStatus(
      'it is back',
      ({ supervisors }) => supervisors.find(({ name }) => name === 'a')?.isPresent === true,
    );
    await submit('after', 3);
    expect(new Set(await placesOf('after'))).toEqual(new Set(['b', 'c']));
  }, 300_000);
});
