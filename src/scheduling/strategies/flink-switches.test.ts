import { describe, expect, it } from 'vitest';
import { compileSettings, type Settings } from '../../base/index.js';
import type { ClusterTopology, Placement } from '../cluster-snapshot.js';
import { strategyNamed } from './strategies.js';
import { clusterOf } from './testing/balanced-cluster.js';

interface Part {
  readonly id: string;
  readonly count?: number;
  readonly kind?: 'spout' | 'bolt';
  readonly load?: number;
  readonly from?: string;
}

const RESOURCES = { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 };

/** A worker for each executor, unless told otherwise. */
function topologyOf(id: string, parts: readonly Part[], workers?: number): ClusterTopology {
  let task = 0;
  const executors = parts.flatMap(({ id: component, count = 1 }) =>
    Array.from({ length: count }, () => {
      task++;
      return { range: [task, task] as const, component };
    }),
  );
  return {
    id,
    workers: workers ?? executors.length,
    executors,
    components: parts.map(({ id: component, kind = 'bolt', load, from }) => ({
      id: component,
      kind,
      resources: RESOURCES,
      // What holds nothing and reads from nobody is free to go anywhere.
      movable: true,
      inputs: from === undefined ? [] : [{ from, grouping: 'shuffle' as const }],
      ...(load === undefined ? {} : { load }),
    })),
    balance: { load: 'declared', sharing: 'task-balanced' },
  };
}

type Snapshot = ReturnType<typeof clusterOf>;

function placed(snapshot: Snapshot, settings: Settings): Placement {
  return strategyNamed('balanced', settings)(snapshot).placement;
}

/** By machine: the components of what runs there, one entry an executor. */
function contents({ topologies }: Snapshot, placement: Placement): ReadonlyMap<string, readonly string[]> {
  const held = new Map<string, string[]>();
  for (const { id, executors } of topologies) {
    for (const worker of placement.get(id) ?? []) {
      const list = held.get(worker.supervisor) ?? [];
      held.set(worker.supervisor, list);
      for (const [first] of worker.executors)
        list.push(executors.find(({ range }) => range[0] === first)!.component);
    }
  }
  return held;
}

function most(
  snapshot: Snapshot,
  placement: Placement,
  count: (components: readonly string[]) => number,
): number {
  return Math.max(...[...contents(snapshot, placement).values()].map(count));
}

const weights = topologyOf('t', [
  { id: 'a', load: 3 },
  { id: 'b', load: 3 },
  { id: 'c', load: 2 },
  { id: 'd', load: 2 },
  { id: 'e', load: 2 },
]);
const loads: Readonly<Record<string, number>> = { a: 3, b: 3, c: 2, d: 2, e: 2 };
const uneven = clusterOf([3, 3], [weights]);
const short = clusterOf(
  [4],
  ['a', 'b'].map((id) => topologyOf(id, [{ id: 'x', count: 8 }], 4)),
);
const classes = clusterOf(
  [2, 2],
  [topologyOf('t', [{ id: 's', kind: 'spout' }, { id: 'b' }, { id: 'r', kind: 'spout' }, { id: 'c' }])],
);
const neighbours = clusterOf(
  [3, 3],
  [topologyOf('t', [{ id: 'a' }, { id: 'b' }, { id: 'x' }, { id: 'c', from: 'a' }, { id: 'd', from: 'b' }])],
);
const components = clusterOf(
  [4, 4],
  [topologyOf('t', [{ id: 'h', load: 3 }, { id: 'a', count: 3 }, { id: 'b' }, { id: 'c' }])],
);
const others = clusterOf(
  [2, 2],
  ['a', 'b'].map((id) => topologyOf(id, [{ id: 'x' }])),
);
const returned = clusterOf(
  [4, 4],
  [topologyOf('t', [{ id: 'x', count: 4 }])],
  new Map([
    [
      't',
      [1, 2, 3, 4].map((task) => ({
        supervisor: 'm0',
        port: task - 1,
        executors: [[task, task] as const],
      })),
    ],
  ]),
);

const SWITCHES: readonly (readonly [
  setting: string,
  off: unknown,
  what: string,
  measure: (settings: Settings) => unknown,
  on: unknown,
  without: unknown,
])[] = [
  [
    'load-balance.improvement',
    false,
    'the largest load beyond the greedy pass',
    (settings) =>
      most(uneven, placed(uneven, settings), (ids) => ids.reduce((sum, id) => sum + loads[id]!, 0)),
    6,
    7,
  ],
  [
    'scheduling.fair-shares',
    false,
    'workers of two topologies where slots are short',
    (settings) => ['a', 'b'].map((id) => placed(short, settings).get(id)?.length ?? 0),
    [2, 2],
    [4, 0],
  ],
  [
    'load-balance.classes',
    [],
    'sources on one machine',
    (settings) =>
      most(classes, placed(classes, settings), (ids) => ids.filter((id) => 'sr'.includes(id)).length),
    1,
    2,
  ],
  [
    'load-balance.spread-components',
    false,
    'executors of one component on one machine',
    (settings) =>
      most(components, placed(components, settings), (ids) => ids.filter((id) => id === 'a').length),
    2,
    3,
  ],
  [
    'load-balance.keep-neighbours',
    false,
    'machines that hold both ends of a stream',
    (settings) =>
      [...contents(neighbours, placed(neighbours, settings)).values()].filter((ids) =>
        ['ac', 'bd'].some(([from, to]) => ids.includes(from!) && ids.includes(to!)),
      ).length,
    2,
    0,
  ],
  [
    'load-balance.all-topologies',
    false,
    'executors of all topologies on one machine',
    (settings) => most(others, placed(others, settings), (ids) => ids.length),
    1,
    2,
  ],
  [
    'scheduling.moves-per-round',
    0,
    'executors on the machine that has most, after one returned',
    (settings) => most(returned, placed(returned, settings), (ids) => ids.length),
    2,
    4,
  ],
];

describe('what goes beyond Flink under `balanced`', () => {
  it.each(SWITCHES)(
    'is on by default, has a switch, and is off under compatibility with Flink: %s',
    (setting, off, _what, measure, on, without) => {
      expect(measure(compileSettings())).toEqual(on);
      expect(measure(compileSettings({ [setting]: off }))).toEqual(without);
      expect(measure(compileSettings({ 'scheduling.compatibility': ['flink'] }))).toEqual(without);
    },
  );

  it('keeps one budget of moves where each topology is spread as if it were alone', () => {
    const [topology, placement] = [returned.topologies[0]!, returned.placement.get('t')!];
    const both = clusterOf(
      [8, 8],
      ['t', 'u'].map((id) => ({ ...topology, id })),
      new Map([
        ['t', placement],
        ['u', placement.map((worker) => ({ ...worker, port: worker.port + 4 }))],
      ]),
    );
    const settings = compileSettings({
      'load-balance.all-topologies': false,
      'scheduling.moves-per-round': 1,
    });
    const after = placed(both, settings);
    const moved = ['t', 'u'].flatMap((id) => after.get(id)!.filter(({ supervisor }) => supervisor === 'm1'));
    expect(moved).toHaveLength(1);
  });

  it('moves nothing for a small gain where loads are measured, and for any where they are declared', () => {
    const worker = (supervisor: string, task: number) => ({
      supervisor,
      port: task,
      executors: [[task, task] as const],
    });
    const four = topologyOf('t', [
      { id: 'a', load: 0.3 },
      { id: 'b', load: 0.3 },
      { id: 'c', load: 0.25 },
      { id: 'd', load: 0.25 },
    ]);
    const workers = [worker('m0', 1), worker('m0', 2), worker('m1', 3), worker('m1', 4)];
    const byTask = new Map([0.3, 0.3, 0.25, 0.25].map((load, index) => [index + 1, load]));
    const movesBy = (load: 'declared' | 'measured'): number => {
      const topology = { ...four, balance: { ...four.balance, load }, measured: { byTask, typical: 1 } };
      const snapshot = clusterOf([8, 8], [topology], new Map([['t', workers]]));
      const after = placed(snapshot, compileSettings({ 'load-balance.load': load })).get('t')!;
      return workers.filter(
        ({ supervisor, executors }) =>
          !after.some(
            (one) =>
              one.supervisor === supervisor && one.executors.some(([first]) => first === executors[0]![0]),
          ),
      ).length;
    };
    expect([movesBy('declared'), movesBy('measured')]).toEqual([2, 0]);
  });
});
