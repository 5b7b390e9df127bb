import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasCode, toIsobarError } from '../../base/index.js';
import { planCluster } from '../../scheduling/index.js';
import { mergeDrafts } from './cluster-draft.js';
import { toImagined } from './imagine-cluster.js';
import { InputFaults } from './input-faults.js';
import { readClusterFile } from './read-cluster-file.js';

const NOTHING_SET = { all: {}, byTopology: new Map() };

function read(value: unknown) {
  const faults = new InputFaults();
  const draft = readClusterFile(value, 'c.json', faults);
  const whole = draft === undefined ? undefined : mergeDrafts([draft], faults);
  const isSound = faults.count === 0;
  const imagined = whole === undefined || !isSound ? undefined : toImagined(whole, NOTHING_SET, faults);
  faults.throwIfAny();
  return { ...draft!, ...imagined! };
}

function faultsOf(value: unknown): string[] {
  try {
    read(value);
  } catch (error) {
    if (!hasCode(error, 'CLUSTER_INVALID')) throw error;
    return toIsobarError(error)
      .message.split('\n')
      .filter((line) => !/^\d+ faults:$/.test(line))
      .map((line) => line.trim());
  }
  return [];
}

const spout = { id: 'a', kind: 'spout', parallelism: 2 };

describe('readClusterFile', () => {
  it('counts out supervisors of a row and numbers them within their rack', () => {
    const { supervisors } = read({
      supervisors: [
        { rack: 'r1', count: 2, slots: 2, memoryMb: 100, cpuPercent: 400 },
        { rack: 'r1', count: 1, slots: 1 },
        { id: 'x', count: 2, ports: [80] },
      ],
    });
    expect(supervisors.map(({ id, ports }) => [id, ports])).toEqual([
      ['r1-001', [6700, 6701]],
      ['r1-002', [6700, 6701]],
      ['r1-003', [6700]],
      ['x-1', [80]],
      ['x-2', [80]],
    ]);
  });

  it('takes what a component does not say from the defaults of its topology', () => {
    const { original } = read({
      topologies: [
        {
          id: 't',
          workers: 3,
          ackers: 1,
          defaults: { cpuPercent: 10, onHeapMb: 128 },
          components: [{ ...spout, cpuPercent: 50 }],
        },
      ],
    });
    const { plan } = original.topologies[0]!;
    expect(plan.topologyWorkers).toBe(3);
    expect(plan.components.map(({ id, resources }) => [id, resources])).toEqual([
      ['__acker', { cpuPercent: 10, onHeapMb: 128, offHeapMb: 0 }],
      ['a', { cpuPercent: 50, onHeapMb: 128, offHeapMb: 0 }],
    ]);
  });

  it('leaves to the settings what an executor asks for, and the largest heap, where the file says nothing', () => {
    const { changed } = read({ topologies: [{ id: 't', ackers: 0, components: [spout] }] });
    const { snapshot } = planCluster(changed, { strategy: 'balanced', maxRounds: 1 });
    const [{ components, rules } = {}] = snapshot.topologies;
    expect(components![0]!.resources.onHeapMb).toBeGreaterThan(0);
    expect(rules!.workerMaxHeapMb).toBeGreaterThan(0);
  });

  it('reports all faults at once, each with its path, what was expected and what was found', () => {
    expect(
      faultsOf({
        supervisors: [
          { slot: 4 },
          { slots: 0 },
          { slots: -1 },
          { ports: [0, 70_000] },
          { slots: 2, cpuPercent: 0 },
        ],
        topologies: [
          {
            id: '',
            workers: 1.5,
            components: [{ ...spout, kind: 'sprout', parallelism: 1e12, onHeapMb: -1 }],
          },
        ],
        topologys: [],
      }),
    ).toEqual([
      'c.json: supervisors[0]: expected "slots", found the unknown key "slot"',
      'c.json: supervisors[1].slots: expected a whole number from 1 to 10000, found 0',
      'c.json: supervisors[2].slots: expected a whole number from 1 to 10000, found -1',
      'c.json: supervisors[3].ports[0]: expected a whole number from 1 to 65535, found 0',
      'c.json: supervisors[3].ports[1]: expected a whole number from 1 to 65535, found 70000',
      'c.json: supervisors[4].cpuPercent: expected a number above 0, at most 1000000000000, found 0',
      'c.json: topologies[0].id: expected a text of 1 to 200 characters without control characters, found ""',
      'c.json: topologies[0].workers: expected a whole number from 1 to 100000, or "max-parallelism", found 1.5',
      'c.json: topologies[0].components[0].kind: expected "spout" or "bolt", found "sprout"',
      'c.json: topologies[0].components[0].parallelism: expected a whole number from 1 to 1000000, found 1000000000000',
      'c.json: topologies[0].components[0].onHeapMb: expected a number from 0 to 1000000000000, found -1',
      'c.json: expected "topologies", found the unknown key "topologys"',
    ]);
  });

  it.each([
    [
      'a duplicate supervisor',
      {
        supervisors: [
          { id: 'm', slots: 1 },
          { id: 'm', slots: 1 },
        ],
      },
      'supervisors[1].id',
    ],
    ['slots and ports', { supervisors: [{ slots: 1, ports: [1] }] }, 'supervisors[0]'],
    ['a port twice', { supervisors: [{ ports: [1, 1] }] }, 'supervisors[0].ports'],
    [
      'too many machines',
      {
        supervisors: [
          { count: 60_000, slots: 1 },
          { count: 60_000, slots: 1 },
        ],
      },
      'supervisors[1].count',
    ],
    ['too many slots', { supervisors: [{ count: 100_000, slots: 10_000 }] }, 'supervisors[0].count'],
    [
      'a duplicate topology',
      {
        topologies: [
          { id: 't', components: [spout] },
          { id: 't', components: [spout] },
        ],
      },
      'topologies[1].id',
    ],
    ['no component', { topologies: [{ id: 't', components: [] }] }, 'topologies[0].components'],
    [
      'a duplicate component',
      { topologies: [{ id: 't', components: [spout, spout] }] },
      'topologies[0].components[1].id',
    ],
    [
      'an input from nowhere',
      { topologies: [{ id: 't', components: [{ ...spout, inputs: [{ from: 'b', grouping: 'all' }] }] }] },
      'topologies[0].components[0].inputs[0].from',
    ],
    [
      'co-location with another parallelism',
      {
        topologies: [
          {
            id: 't',
            components: [
              { ...spout, coLocationGroup: 'g' },
              { id: 'b', kind: 'bolt', parallelism: 3, coLocationGroup: 'g' },
            ],
          },
        ],
      },
      'topologies[0].components[1].parallelism',
    ],
    [
      'an unknown setting',
      { topologies: [{ id: 't', components: [spout], settings: { 'topology.worker': 1 } }] },
      'topologies[0].settings',
    ],
    ['not a list', { supervisors: {} }, 'supervisors'],
    ['not an object', { supervisors: [7] }, 'supervisors[0]'],
    ['neither components nor description', { topologies: [{ id: 't' }] }, 'topologies[0]'],
  ])('refuses %s and names its place', (_what, value, where) => {
    expect(faultsOf(value)).toEqual([expect.stringContaining(`c.json: ${where}: expected `)]);
  });

  it('says of a file with faults of shape what else is wrong with its sound entries', () => {
    const faults = faultsOf({
      supervisors: [{ id: 's', slots: 1 }, { slots: 0 }, { id: 's', slots: 1 }, { slots: 1, ports: [1] }],
      topologies: [
        {
          id: 't',
          components: [
            { id: 'spout', kind: 'sput', parallelism: 1 },
            { ...spout, kind: 'bolt', inputs: ['spout', 'sput'].map((from) => ({ from, grouping: 'all' })) },
            { ...spout, parallelism: 3 },
          ],
        },
        { id: 't', components: [spout] },
      ],
    });
    expect(faults).toEqual([
      'c.json: supervisors[1].slots: expected a whole number from 1 to 10000, found 0',
      'c.json: topologies[0].components[0].kind: expected "spout" or "bolt", found "sput"',
      'c.json: supervisors[2].id: expected an id of its own, found "s"',
      'c.json: supervisors[3]: expected either slots or ports, found both',
      'c.json: topologies[0].components[2].id: expected an id of its own, found "a"',
      'c.json: topologies[0].components[1].inputs[1].from: expected did you mean "spout"?, found "sput"',
      'c.json: topologies[1].id: expected an id of its own, found "t"',
    ]);
  });

  it('refuses a strategy that the cluster does not have, and a worker that starts in the future', () => {
    const worker = { supervisor: 's', port: 6700, executors: [[1, 1]] };
    const cluster = (rules: object, startedMs: number) => ({
      atMs: 1000,
      supervisors: [{ id: 's', slots: 1 }],
      topologies: [{ id: 't', components: [spout], rules, placement: [{ ...worker, startedMs }] }],
    });
    expect(faultsOf(cluster({ strategy: 'round-robin' }, 1000))).toEqual([]);
    expect(faultsOf(cluster({ strategy: 'roundrobin' }, 1001))).toEqual([
      'c.json: topologies[0].placement[0].startedMs: expected a time up to 1000 (atMs), found 1001',
      expect.stringMatching(/topologies\[0\].rules.strategy: .*did you mean "round-robin"/) as string,
    ]);
  });

  it('refuses a placement that contradicts the cluster', () => {
    const placement = [
      { supervisor: 'm', port: 6700, executors: [[1, 1]] },
      { supervisor: 'm', port: 6700, executors: [[1, 1]] },
      { supervisor: 'gone', port: 6700, executors: [[2, 2]] },
      { supervisor: 'm', port: 9, executors: [[9, 9]] },
    ];
    const value = {
      supervisors: [{ id: 'm', slots: 2 }],
      topologies: [{ id: 't', ackers: 0, components: [spout], placement }],
    };
    expect(faultsOf(value)).toEqual([
      'c.json: topologies[0].placement[1]: expected a slot of its own, found m:6700, which t holds',
      'c.json: topologies[0].placement[1].executors[0]: expected each executor once, found [1, 1]',
      'c.json: topologies[0].placement[2].supervisor: expected a supervisor of this cluster, found "gone"',
      'c.json: topologies[0].placement[3].port: expected a port of m, found 9',
      'c.json: topologies[0].placement[3].executors[0]: expected an executor of t: there are 2, found [9, 9]',
    ]);
  });

  it('weighs executors by what they were measured to use, where that is asked for', () => {
    const file = (load: string): unknown => ({
      settings: { 'load-balance.load': load },
      supervisors: [{ count: 2, slots: 3 }],
      topologies: [
        {
          id: 't',
          workers: 3,
          ackers: 0,
          components: [{ ...spout, parallelism: 3 }],
          measured: [
            [1, 0.8],
            [2, 0.4],
            [3, 0.4],
          ],
        },
      ],
    });
    const loads = (load: string): number[] =>
      planCluster(read(file(load)).changed, { strategy: 'balanced', maxRounds: 5 }).after.machines.map(
        (machine) => machine.load,
      );
    expect(loads('measured')).toEqual([0.8, 0.8]);
    expect(loads('declared')).toEqual([2, 1]);
    expect(faultsOf({ topologies: [{ id: 't', components: [spout], measured: [[1, 2]] }] })).toEqual([
      expect.stringContaining('topologies[0].measured[0]: expected the first task of an executor'),
    ]);
  });

  it('takes names in any script', () => {
    const { changed } = read({
      supervisors: [{ id: '机器-1', slots: 1 }],
      topologies: [{ id: 'слова', ackers: 0, components: [{ ...spout, id: 'מקור' }] }],
    });
    const plan = planCluster(changed, { strategy: 'balanced', maxRounds: 1 });
    expect(plan.after.machines).toMatchObject([{ id: '机器-1', executors: 2 }]);
  });

  it('never throws anything but faults, whatever it is given', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.record({ supervisors: fc.jsonValue(), topologies: fc.jsonValue() })),
        (value) => {
          faultsOf(value);
        },
      ),
      { seed: 99, numRuns: 500 },
    );
  });
});
