import { describe, expect, it } from 'vitest';
import { toIsobarError } from '../../base/index.js';
import { planCluster } from '../../scheduling/index.js';
import { mergeDrafts } from './cluster-draft.js';
import { toImagined } from './imagine-cluster.js';
import { InputFaults } from './input-faults.js';
import { readStormAnswers, stormAnswersIn } from './read-storm-answers.js';

const ID = 'words-1-1700000000';

const supervisors = {
  supervisors: [1, 2].map((number) => ({
    id: `sup-${number}`,
    host: `node${number}`,
    uptimeSeconds: 60,
    slotsTotal: 2,
    totalMem: 4096,
    totalCpu: 400,
    version: '2.8.3',
  })),
  schedulerDisplayResource: true,
};

const worker = (port: number, componentNumTasks: object) => {
  return { supervisorId: 'sup-1', host: 'node1', port, topologyId: ID, componentNumTasks };
};
const asked = { requestedMemOnHeap: 128, requestedMemOffHeap: 0, requestedCpu: 10, emitted: 0 };

const topology = {
  id: ID,
  name: 'words',
  owner: 'ann',
  workersTotal: 2,
  workers: [worker(6700, { spout: 1, split: 2, __acker: 1 }), worker(6701, { split: 2, __acker: 1 })],
  spouts: [{ spoutId: 'spout', executors: 1, tasks: 1, ...asked }],
  bolts: [{ boltId: 'split', executors: 4, tasks: 4, ...asked }],
  configuration: { 'topology.workers': 2, 'topology.acker.executors': null, 'topology.priority': 7 },
};

const graph = {
  spout: { ':type': 'spout', ':inputs': [] },
  split: {
    ':type': 'bolt',
    ':inputs': [{ ':component': 'spout', ':stream': 'default', ':grouping': 'shuffle' }],
  },
};

function read(...values: readonly unknown[]) {
  const faults = new InputFaults();
  const answers = values.flatMap((value, index) => stormAnswersIn(value, `${index}.json`));
  const draft = readStormAnswers(answers, faults);
  faults.throwIfAny();
  const merged = mergeDrafts([draft], faults);
  const imagined = toImagined(merged, { all: {}, byTopology: new Map() }, faults);
  faults.throwIfAny();
  return { draft, original: imagined!.original };
}

describe('answers of a Storm UI', () => {
  it('are a cluster with what runs there, resources and edges', () => {
    const { draft, original } = read(supervisors, topology, graph);
    expect(draft.supervisors.map(({ id, host, ports, resources }) => [id, host, ports, resources])).toEqual([
      ['sup-1', 'node1', [6700, 6701], { cpuPercent: 400, memoryMb: 4096 }],
      ['sup-2', 'node2', [6700, 6701], { cpuPercent: 400, memoryMb: 4096 }],
    ]);
    const [words] = original.topologies;
    expect(words).toMatchObject({ id: ID, facts: { name: 'words', owner: 'ann', priority: 7 } });
    expect(words!.plan).toMatchObject({ topologyWorkers: 2, ackers: 2 });
    expect(words!.stored?.slots.map(({ port, executors }) => [port, executors])).toEqual([
      [
        6700,
        [
          [1, 1],
          [3, 3],
          [4, 4],
          [7, 7],
        ],
      ],
      [
        6701,
        [
          [2, 2],
          [5, 5],
          [6, 6],
        ],
      ],
    ]);
    const { moves, before, after } = planCluster(original, { strategy: 'balanced', maxRounds: 5 });
    expect(before.traffic).toEqual({ cost: 0.5, rows: 1 });
    expect(after.machineLoad).toMatchObject({ max: 3, min: 2 });
    expect(moves.map(({ from, to }) => [from?.supervisor, to?.supervisor])).toEqual([['sup-1', 'sup-2']]);
  });

  it('say by component pages which executor is where', () => {
    const page = {
      id: 'split',
      topologyId: ID,
      componentType: 'bolt',
      executorStats: [
        { id: '[3-3]', host: 'node1', port: 6701 },
        { id: '[4-4]', host: 'node1', port: 6701 },
        { id: '[5-5]', host: 'node1', port: 6700 },
        { id: '[6-6]', host: 'node1', port: 6700 },
      ],
    };
    const slots = read(supervisors, topology, graph, page).original.topologies[0]!.stored!.slots;
    expect(slots.map(({ executors }) => executors)).toEqual([
      [
        [1, 1],
        [5, 5],
        [6, 6],
        [7, 7],
      ],
      [
        [2, 2],
        [3, 3],
        [4, 4],
      ],
    ]);
  });

  it('can stand in one file by their paths, and a topology without page is told', () => {
    const { draft } = read({
      '/api/v1/supervisor/summary': supervisors,
      [`/api/v1/topology/${ID}`]: topology,
      [`/api/v1/topology/${ID}/visualization`]: graph,
      '/api/v1/topology/summary': {
        topologies: [
          { id: ID, workersTotal: 2 },
          { id: 'other', workersTotal: 1 },
        ],
      },
      '/api/v1/cluster/summary': { stormVersion: '2.8.3', supervisors: 2 },
    });
    expect(draft.topologies.map(({ id }) => id)).toEqual([ID]);
    expect(draft.notes.join('\n')).toContain('1 topology is listed without their page');
  });

  it('are refused where a field has another type, with its path', () => {
    const broken = { ...topology, bolts: [{ boltId: 'split', executors: '4', tasks: -1 }] };
    expect(() => read(supervisors, broken)).toThrow(
      /1\.json: bolts\[0\]\.executors: expected a whole number .*found "4"[^]*bolts\[0\]\.tasks/,
    );
    try {
      read(supervisors, broken);
    } catch (error) {
      expect(toIsobarError(error).code).toBe('CLUSTER_INVALID');
    }
  });

  it('are told from our own cluster files', () => {
    expect(stormAnswersIn({ supervisors: [{ slots: 1 }], topologies: [] }, 'c.json')).toEqual([]);
    expect(stormAnswersIn({}, 'c.json')).toEqual([]);
    expect(stormAnswersIn([], 'c.json')).toEqual([]);
  });
});
