import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { planCommand } from './plan-command.js';
import type { PlanFlags } from './plan-options.js';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-plan-test-'));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

async function run(
  files: Readonly<Record<string, unknown>>,
  flags: PlanFlags = {},
  columns = 80,
): Promise<{ code: number; out: string; err: string }> {
  const paths = Object.entries(files).map(([name, value]) => {
    const path = join(directory, name);
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
    return path;
  });
  let [out, err] = ['', ''];
  const code = await planCommand(paths, flags, {
    out: { isTTY: true, columns, write: (text: string) => ((out += text), true) },
    err: { write: (text: string) => ((err += text), true) },
    environment: { NO_COLOR: '1' },
  });
  return { code, out, err };
}

const three = ['m1', 'm2', 'm3'].map((id) => ({ id, slots: 3 }));
const words = {
  id: 'words',
  workers: 'max-parallelism',
  ackers: 0,
  components: [
    { id: 'source', kind: 'spout', parallelism: 2 },
    { id: 'map', kind: 'bolt', parallelism: 4, inputs: [{ from: 'source', grouping: 'shuffle' }] },
    { id: 'sink', kind: 'bolt', parallelism: 6, inputs: [{ from: 'map', grouping: 'fields' }] },
  ],
};
const small = { supervisors: three, topologies: [words] };

describe('isobar plan', () => {
  it.each([80, 140])('fits its screen of %i columns, with and without a machine lost', async (columns) => {
    const { code, out } = await run({ 'c.json': small }, { remove: ['m3'] }, columns);
    expect(code).toBe(0);
    expect(out.split('\n').every((line) => line.length <= columns)).toBe(true);
    expect(out).toMatchSnapshot();
  });

  it('says where a file is no JSON, and which key is in it twice', async () => {
    const twice = '{"supervisors": [{"id": "a",\n"slots": 1, "slots": 2}]}';
    expect((await run({ 'twice.json': twice })).err).toMatch(
      /twice.json: supervisors\[0\].slots: expected each key once, found it again, at line 2, column 13/,
    );
    const short = await run({ 'short.json': '{"a": NaN}' });
    expect(short.err).toMatch(/at line 1, column 7/);
    const long = await run({ 'long.json': '{"supervisors": [\n{"slots": 1, "cpuPercent": NaN}]}' });
    expect(long.err).toMatch(/at line 2, column 28/);
  });

  it('says what no machine could hold, however empty', async () => {
    const cluster = {
      settings: { 'scheduling.strategy': 'resource-aware' },
      supervisors: [{ id: 'a', slots: 2, cpuPercent: 100, memoryMb: 1000 }],
      topologies: [
        { id: 't', components: [{ id: 's', kind: 'spout', parallelism: 1, cpuPercent: 900, onHeapMb: 64 }] },
      ],
    };
    const { code, out } = await run({ 'c.json': cluster });
    expect(code).toBe(1);
    expect(out).toMatch(/never-fits: .*\n +t has no machine that could hold an executor of "s"/);
  });

  it('reads a cluster and what runs there, and explains why one executor moved', async () => {
    const first = await run({ 'c.json': small }, { json: true });
    const { topologies } = JSON.parse(first.out) as {
      topologies: { placement: { executors: { range: [number, number] }[] }[] }[];
    };
    const placement = topologies[0]!.placement.map((worker) => ({
      ...worker,
      executors: worker.executors.map(({ range }) => range),
    }));
    const running = { supervisors: three, topologies: [{ ...words, placement }] };
    expect((await run({ 'c.json': running })).out).toMatch(/nothing\s+changes/);
    const { out } = await run({ 'c.json': running }, { remove: ['m3'], explain: 'words/map/1' });
    expect(out).toMatchSnapshot();
  });

  it('tells many moves by topology within 80 columns, names in full and rules as far as they fit', async () => {
    const machine = (id: string): object => ({ id, slots: 40 });
    const topologies = Array.from({ length: 24 }, (_, number) => {
      const components = [{ id: 'c', kind: 'spout', parallelism: 4 }];
      return { id: `topology-of-the-team-with-number-${10 + number}`, workers: 2, ackers: 0, components };
    });
    const saved = join(directory, 'placed.json');
    await run({ 'c.json': { supervisors: ['m1', 'm2', 'm3'].map(machine), topologies } }, { save: saved });
    const grown = await run(
      { 'placed.json': readFileSync(saved, 'utf8') },
      { remove: ['m1'], addSupervisor: ['slots=40,count=3'], set: ['topology.workers=3'] },
    );
    const lines = grown.out.split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    const rows = lines.filter((line) => line.startsWith('  topology-of-the-team-with-number-'));
    expect(rows).toHaveLength(20);
    expect(rows.join('\n')).toMatch(/ \+\d$/m);
    expect(rows.join('\n')).not.toContain('…');
  });

  it('compares strategies on the same numbers, within 80 columns', async () => {
    const { out } = await run(
      {
        'c.json': {
          ...small,
          supervisors: three.map((one) => ({ ...one, cpuPercent: 400, memoryMb: 4000 })),
        },
      },
      { compare: 'balanced,even,resource-aware' },
    );
    expect(out.split('\n').every((line) => line.length <= 80)).toBe(true);
    expect(out).toContain('BALANCED');
    expect(out).toMatch(/largest {2,}– +4 \(optimal\) +4 \(optimal\) +12/);
  });

  it('compares in several tables what is too wide for one, and cuts no name', async () => {
    const compare = 'balanced,even,default,resource-aware';
    const lines = (await run({ 'c.json': small }, { compare }, 70)).out.split('\n');
    expect(lines.every((line) => line.length <= 70)).toBe(true);
    expect(lines.filter((line) => line.startsWith('executors without place'))).toHaveLength(2);
    expect(lines.filter((line) => /^ +NOW/.test(line)).map((line) => line.trim().split(/ +/))).toEqual([
      ['NOW', 'BALANCED', 'EVEN'],
      ['NOW', 'DEFAULT', 'RESOURCE-AWARE'],
    ]);
    expect(lines.join('\n')).not.toContain('…');
  });

  it('prints what does not fit with need, have, best machine and the first rule that failed, and ends with 1', async () => {
    const heavy = {
      id: 'heavy',
      ackers: 0,
      components: [{ id: 'a', kind: 'spout', parallelism: 1, cpuPercent: 10, onHeapMb: 900 }],
    };
    const supervisors = [
      { id: 'm1', slots: 2, cpuPercent: 400, memoryMb: 500 },
      { id: 'm2', slots: 2, cpuPercent: 400, memoryMb: 600 },
    ];
    const { code, out } = await run(
      { 'c.json': { supervisors, topologies: [heavy] } },
      { strategy: 'resource-aware' },
      120,
    );
    expect(code).toBe(1);
    expect(out).toContain(
      [
        'Does not fit: 1 executor of 1 topology',
        '  heavy: 1 executor without a place',
        '    need  an executor of "a": 10 % of a core, 900 MB, of these 900 MB on heap',
        '    have  800 % of a core, 1,100 MB free in all',
        '    best  m2: 400 % of a core, 600 MB free',
        '    rule  memory: its memory is too small: add a machine, or lower the request',
      ].join('\n'),
    );
  });

  it('says what a topology without a place asks for in all, and that it would be there in sum', async () => {
    const wide = {
      id: 'wide',
      ackers: 0,
      components: [{ id: 'a', kind: 'spout', parallelism: 3, cpuPercent: 10, onHeapMb: 400 }],
    };
    const machine = { slots: 2, cpuPercent: 400, memoryMb: 700 };
    const supervisors = [
      { id: 'm1', ...machine },
      { id: 'm2', ...machine },
    ];
    const { code, out } = await run(
      { 'c.json': { supervisors, topologies: [wide] } },
      { strategy: 'resource-aware' },
      140,
    );
    expect(code).toBe(1);
    expect(out).toContain(
      '    all   3 executors ask 30 % of a core, 1,200 MB; 800 % of a core, 1,400 MB left beside all that is placed; enough in sum',
    );
    expect(out).toContain('have  780 % of a core, 600 MB free in all, in the last try');
  });

  it('says that machines do not tell what they offer where the strategy asks for that', async () => {
    const { code, out } = await run({ 'c.json': small }, { strategy: 'resource-aware' });
    expect(code).toBe(1);
    expect(out).toContain('3 of 3 machines; give cpuPercent and memoryMb');
  });

  it('says that an empty cluster is empty', async () => {
    const { code, out } = await run({ 'c.json': { supervisors: [], topologies: [words] } });
    expect(code).toBe(1);
    expect(out).toContain('the cluster has no machine; --add-supervisor slots=4 adds one');
  });

  it('refuses bad input with exit code 3, bad words with 2, and prints nothing else', async () => {
    const bad = await run({ 'c.json': { supervisors: [{ slot: 3 }] }, 'd.json': '{"supervisors": [NaN]}' });
    expect(bad).toMatchObject({ code: 3, out: '' });
    expect(bad.err).toContain('CLUSTER_INVALID: 2 faults:');
    expect(bad.err).toContain('supervisors[0]: expected "slots", found the unknown key "slot"');
    expect(bad.err).toContain('d.json: expected JSON, found');
    expect(await run({})).toMatchObject({ code: 2, out: '' });
    expect((await run({ 'c.json': small }, { remove: ['m4'] })).err).toMatch(
      /SUPERVISOR_UNKNOWN.*did you mean "m1"/s,
    );
    expect((await run({ 'c.json': small }, { remove: ['rack-seven'] })).err).toContain(
      'the id or the host of a supervisor: m1, m2, m3',
    );
    expect((await run({ 'c.json': small }, { rounds: '0' })).err).toContain('--rounds 0 is not understood');
    expect((await run({ 'c.json': small }, { explain: 'words/mop' })).err).toContain('did you mean "map"?');
    const asJson = await run({ 'c.json': { supervisors: 1 } }, { json: true });
    expect(JSON.parse(asJson.out)).toMatchObject({ type: 'error', code: 'CLUSTER_INVALID', exitCode: 3 });
  });

  it.each([
    ['{"supervisors": [\n  {"id": "m1" "slots": 2}]}', /found text that is not: .* at line 2, column 15$/m],
    ['{"supervisors": [\n', /found its end too early, at line 2, column 1$/m],
    ['', /found its end too early, at line 1, column 1$/m],
  ])('says in which line %j is no JSON', async (text, expected) => {
    const { code, err } = await run({ 'c.json': text });
    expect(code).toBe(3);
    expect(err).toMatch(expected);
  });

  it('blames settings once, on the place that gave them', async () => {
    const two = { supervisors: three, topologies: [words, { ...words, id: 'more' }] };
    const given = await run({ 'c.json': two }, { set: ['topology.wrkers=2', 'words:topology.workers=-2'] });
    expect(given).toMatchObject({ code: 3, out: '' });
    expect(given.err).toMatch(
      /CLUSTER_INVALID: 2 faults:\n {2}--set: .*wrkers.*\n {2}--set words:…: .*workers/,
    );
    expect(given.err).not.toContain('c.json');
    const inFile = await run({ 'c.json': { ...small, settings: { 'load-balance.mode': 'tsks' } } });
    expect(inFile.err).toMatch(/CLUSTER_INVALID: cluster settings: .*tsks/);
    const both = { ...small, settings: { 'load-balance.mode': 'tsks' } };
    const mixed = await run({ 'c.json': both }, { set: ['scheduling.moves-per-round=-1'] });
    expect(mixed.err).toContain('CLUSTER_INVALID: 2 faults:');
  });

  it('names machines and topologies that are there twice beside other faults', async () => {
    const { err } = await run({ 'c.json': small, 'd.json': small, 'e.json': { settngs: {} } });
    expect(err).toContain('e.json: expected "settings", found the unknown key "settngs"');
    expect(err).toContain('each supervisor in one file only, found "m1"');
    expect(err).toContain('an id of its own, found "words"');
  });

  it('tells at the end of a timeline what stays in fewer workers than it wants, and does not where it grows', async () => {
    const setting = ['load-balance.mode=slots'];
    const bySlots = await run({ 'c.json': small }, { timeline: true, set: setting });
    expect(bySlots.out.replaceAll(/\s+/g, ' ')).toContain(
      'words has 1 of 6 workers: it stays on the slots that it was placed on, until isobar rebalance words',
    );
    const byTasks = await run({ 'c.json': small }, { timeline: true });
    expect(byTasks.out).not.toContain('workers: it stays');
    const { short } = JSON.parse(
      (await run({ 'c.json': small }, { timeline: true, set: setting, json: true })).out,
    ) as { short: unknown };
    expect(short).toEqual([{ topologyId: 'words', workers: 1, wanted: 6, stays: true }]);
  });

  it('says which topology there is where --explain names another one before a component', async () => {
    const { err } = await run({ 'c.json': small }, { explain: 'nosuch/sink' });
    expect(err).toContain('expected  the topology words; there is no other');
  });

  it('keeps the shape of its JSON', async () => {
    const { out } = await run({ 'c.json': small }, { json: true, addSupervisor: ['id=m4,slots=3'] });
    expect(JSON.parse(out)).toMatchObject({
      type: 'plan',
      format: 1,
      strategy: 'balanced',
      rounds: 1,
      isSettled: true,
      before: { machinesUsed: 0 },
      after: {
        machinesUsed: 4,
        machineLoad: { max: 4, min: 2, mean: 3, maxOverMean: 4 / 3 },
        lowestMaxLoad: 4,
      },
      topologies: [{ id: 'words', unplacedExecutors: 0, failure: null }],
      lacks: [],
    });
    const timeline = await run({ 'c.json': small }, { json: true, timeline: true });
    expect(JSON.parse(timeline.out)).toMatchObject({ type: 'plan-timeline', format: 1, isSettled: true });
    const compared = await run({ 'c.json': small }, { json: true, compare: 'balanced,even' });
    expect(JSON.parse(compared.out)).toMatchObject({ type: 'plan-comparison', plans: [{}, {}] });
  });
});
