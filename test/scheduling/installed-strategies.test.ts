/** Installed strategies in their threads, as built: what they do wrong is theirs alone. The example of the docs is run as it stands there. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { compileSettings, type RawSettings, systemClock, VirtualClock } from '../../src/base/index.js';
import { Decider } from '../../src/nimbus/deciding/decider.js';
import { described, NimbusHarness, until } from '../../src/nimbus/testing/nimbus-harness.js';
import type { ClusterSnapshot, ClusterTopology } from '../../src/scheduling/index.js';

const CLI = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const ROOT = mkdtempSync(join(tmpdir(), 'isobar-strategies-'));
afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

const MODULES: Readonly<Record<string, string>> = {
  'rack-spread': exampleOfDocs(),
  throws: 'export default () => { throw new Error("no idea"); };',
  hangs: 'export default () => { for (;;); };',
  rubbish: 'export default () => ({ placement: { t: [{ supervisor: 1 }] } });',
  promise: 'export default async () => ({ placement: {} });',
  ends: 'export default () => process.exit(3);',
  'no-function': 'export const strategy = 1;',
  'no-module': 'export default (',
  twice: `export default ({ topologies, supervisors }) => ({ placement: Object.fromEntries(topologies.map((one) => [one.id,
    supervisors.flatMap(({ id, ports }) => ports.map((port) => ({ supervisor: id, port, executors: one.executors.map(({ range }) => range) })))])) });`,
};
for (const [name, code] of Object.entries(MODULES)) writeFileSync(fileOf(name), code);

function fileOf(name: string): string {
  return join(ROOT, `${name}.mjs`);
}

function exampleOfDocs(): string {
  const page = readFileSync(new URL('../../docs/own-strategy.md', import.meta.url), 'utf8');
  return /```js\n(.*?)```/s.exec(page)![1]!;
}

const SETTINGS: RawSettings = {
  'scheduling.strategy-modules': Object.keys(MODULES).map((name) => `${name}=${fileOf(name)}`),
};

const topology = (id: string, strategy?: string): ClusterTopology => ({
  id,
  workers: 3,
  executors: [1, 2, 3, 4].map((task) => ({ range: [task, task], component: 'a' })),
  ...(strategy === undefined ? {} : { rules: { strategy } }),
});

const cluster = (...topologies: readonly ClusterTopology[]): ClusterSnapshot => ({
  supervisors: ['a', 'b', 'c', 'd'].map((id, index) => ({
    id,
    host: id,
    rack: `r${index % 2}`,
    ports: [1, 2],
  })),
  topologies,
  placement: new Map(),
});

let decider: Decider | undefined;
let harness: NimbusHarness | undefined;
afterEach(async () => {
  decider?.close();
  await harness?.close();
  decider = harness = undefined;
});

function deciderWith(settings: RawSettings = {}, clock = systemClock): Decider {
  decider = new Decider({ settings: compileSettings({ ...SETTINGS, ...settings }), clock });
  return decider;
}

describe('an installed strategy', () => {
  it('places the topologies that chose it, on what the others leave', async () => {
    const result = await deciderWith().decide(cluster(topology('mine', 'rack-spread'), topology('t')));
    expect([...result.failures]).toEqual([]);
    expect([...result.unplaced]).toEqual([]);
    const slots = [...result.placement.values()]
      .flat()
      .map(({ supervisor, port }) => `${supervisor}:${port}`);
    expect(new Set(slots).size).toBe(6);
    const racks = result.placement.get('mine')!.map(({ supervisor }) => 'abcd'.indexOf(supervisor) % 2);
    expect(new Set(racks).size).toBe(2);
  });

  it.each([
    ['throws', /threw: no idea/],
    ['hangs', /did not answer within 3000 ms/],
    ['rubbish', /returned no placement/],
    ['promise', /returned no placement/],
    ['ends', /ended its thread/],
    ['no-function', /exports no function/],
    ['no-module', /cannot be loaded/],
  ])('that %s fails its own topologies and no other', async (name, message) => {
    const result = await deciderWith({ 'scheduling.deadline': name === 'hangs' ? 3000 : 60_000 }).decide(
      cluster(topology('mine', name), topology('t'), topology('good', 'rack-spread')),
    );
    expect([...result.failures.keys()]).toEqual(['mine']);
    expect(result.failures.get('mine')).toMatchObject({
      code: 'STRATEGY_FAILED',
      message: message,
    });
    expect(result.placement.get('t')).toHaveLength(3);
    expect(result.placement.get('good')).toHaveLength(3);
  });

  it('that places executors twice is refused with each fault', async () => {
    const result = await deciderWith().decide(cluster(topology('mine', 'twice'), topology('t')));
    expect(result.failures.get('mine')).toMatchObject({ code: 'ASSIGNMENT_INVALID' });
    expect(result.placement.get('t')).toHaveLength(3);
  });

  it('that missed a deadline rests for ten, and is asked again after them', async () => {
    const clock = new VirtualClock();
    const asked = deciderWith({ 'scheduling.deadline': 1000 }, clock);
    const failureOf = async (snapshot: ClusterSnapshot): Promise<string> =>
      String((await asked.decide(snapshot)).failures.get('mine'));
    const snapshot = cluster(topology('mine', 'hangs'));
    const first = failureOf(snapshot);
    // The deadline is set once the question is on its way.
    await new Promise(setImmediate);
    clock.advance(1000);
    expect(await first).toMatch(/did not answer within 1000 ms/);
    expect(await failureOf(snapshot)).toMatch(/asked again in 10 s/);
    clock.advance(10_000);
    const again = failureOf(snapshot);
    await new Promise(setImmediate);
    clock.advance(1000);
    expect(await again).not.toMatch(/asked again/);
  });
});

describe('a large cluster', () => {
  it('is decided in a thread, as it would be at once', async () => {
    const many = {
      ...cluster(
        ...['x', 'y', 'z'].map((id) => ({
          ...topology(id),
          executors: Array.from({ length: 1000 }, (_, index) => ({
            range: [index + 1, index + 1] as const,
            component: 'a',
          })),
        })),
      ),
    };
    const small = cluster(topology('x'));
    const asked = deciderWith();
    const first = await asked.decide(many);
    expect([...first.failures]).toEqual([]);
    expect(
      [...first.placement.values()].flatMap((workers) => workers.flatMap(({ executors }) => executors)),
    ).toHaveLength(3000);
    // What is left as it is comes back as the very lists.
    const again = await asked.decide({ ...many, placement: first.placement });
    for (const [id, workers] of again.placement) expect(workers).toBe(first.placement.get(id));
    expect((await asked.decide(small)).placement.get('x')).toHaveLength(3);
  });

  it('fails as a round when its deadline has passed, and is decided by another thread in the next one', async () => {
    const clock = new VirtualClock();
    const asked = deciderWith({ 'scheduling.deadline': 1000 }, clock);
    const many = cluster({
      ...topology('x'),
      executors: Array.from({ length: 3000 }, (_, index) => ({
        range: [index + 1, index + 1] as const,
        component: 'a',
      })),
    });
    const late = asked.decide(many);
    await new Promise(setImmediate);
    clock.advance(1000);
    expect(String((await late).failures.get('x'))).toMatch(/"balanced" did not answer within 1000 ms/);
    expect([...(await asked.decide(many)).failures]).toEqual([]);
  });
});

describe('Nimbus with installed strategies', () => {
  it('refuses a name that nobody has installed, places by one that somebody has, and says why another fails', async () => {
    harness = await NimbusHarness.create(SETTINGS);
    const { outside, nimbus } = harness;
    for (const id of ['a', 'b'])
      await outside.announceSupervisor({
        id,
        host: id,
        rack: `r-${id}`,
        ports: [1, 2, 3],
        cores: 2,
        memoryBytes: 2 ** 30,
        owner: 'o',
        startedMs: 0,
      });
    const submit = async (name: string, strategy: string): Promise<string> => {
      const settings = {
        'topology.scheduler-strategy': strategy,
        'topology.workers': 2,
        'topology.ackers': 0,
      };
      return (await nimbus.submit({ description: described(name), code: '', settings })).topologyId;
    };
    await expect(submit('bad', 'rack-spraed')).rejects.toThrow(/did you mean "rack-spread"/);
    const good = await submit('good', 'rack-spread');
    const wrong = await submit('wrong', 'throws');
    const status = await until('both were decided', async () => {
      const { topologies } = await nimbus.status();
      const [placed, failed] = [good, wrong].map((id) => topologies.find((one) => one.id === id));
      return (placed?.workers.length ?? 0) > 0 && JSON.stringify(failed).includes('no idea')
        ? topologies
        : false;
    });
    expect(status.find(({ id }) => id === good)?.unplacedReason ?? null).toBeNull();
  });
});

describe('isobar plan with an installed strategy', () => {
  const CLUSTER = {
    supervisors: ['a', 'b'].map((id) => ({ id, host: id, rack: `r-${id}`, slots: 2 })),
    topologies: [
      { id: 'words', workers: 2, components: [{ id: 'lines', kind: 'spout', parallelism: 4, inputs: [] }] },
    ],
  };
  const plan = async (
    ...words: readonly string[]
  ): Promise<{ readonly code: number; readonly out: string }> => {
    const file = join(ROOT, 'cluster.json');
    writeFileSync(file, JSON.stringify(CLUSTER));
    const modules = Object.keys(MODULES).map((name) => `${name}=${fileOf(name)}`);
    const given = [`scheduling.strategy-modules=${modules.join(',')}`, 'scheduling.deadline=3s'];
    const flags = given.flatMap((pair) => ['--set', pair]);
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'plan', file, ...flags, ...words]);
      return { code: 0, out: stdout };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, out: stdout + stderr };
    }
  };

  it('plans by the example of the docs', async () => {
    const { code, out } = await plan('--strategy', 'rack-spread', '--json');
    expect({ code, out }).toMatchObject({ code: 0 });
    const planned = JSON.parse(out) as { readonly strategy: string };
    expect(planned.strategy).toBe('rack-spread');
  });

  it('compares it with others', async () => {
    const { code, out } = await plan('--compare', 'rack-spread,even');
    expect({ code, out }).toMatchObject({ code: 0 });
    expect(out).toContain('RACK-SPREAD');
  });

  it('says what is wrong with one that hangs, and ends', async () => {
    const { code, out } = await plan('--strategy', 'hangs');
    expect(code).not.toBe(0);
    expect(out).toContain('did not answer within 3000 ms');
  });

  it('refuses a name that nobody has installed with the closest one', async () => {
    const { code, out } = await plan('--strategy', 'rack-spraed');
    expect(code).toBe(2);
    expect(out).toContain('did you mean "rack-spread"?');
  });
});
