import { describe, expect, it } from 'vitest';
import { compileSettings, hasCode, type RawSettings } from '../base/index.js';
import type { ComponentDescription, TopologyDescription } from '../topology/index.js';
import { type DesiredCounts, planTopology } from './plan-topology.js';

function component(id: string, parallelism: number, tasks: number | null = null): ComponentDescription {
  return {
    id,
    kind: 'bolt',
    parallelism,
    tasks,
    streams: [],
    inputs: [],
    subscriptions: [],
    stateful: false,
    movable: false,
    tickMs: null,
    manual: false,
    unordered: false,
  };
}

function plan(
  components: readonly ComponentDescription[],
  settings: RawSettings = {},
  desired?: DesiredCounts,
) {
  const description: TopologyDescription = {
    format: 1,
    name: 'clicks',
    settings: {},
    components,
    warnings: [],
  };
  return planTopology(description, compileSettings(settings), desired);
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof Error && 'code' in error
      ? `${String(error.code)}: ${error.message}`
      : String(error);
  }
  return 'nothing was thrown';
}

describe('planning a topology', () => {
  it('numbers tasks in name order, one acker per worker', () => {
    const { tasks, executors, ackers, topologyWorkers, adjustments } = plan(
      [component('words', 2), component('count', 2, 4)],
      { 'topology.workers': 2 },
    );
    expect(topologyWorkers).toBe(2);
    expect(ackers).toBe(2);
    expect(tasks).toEqual([
      { component: '__acker', first: 1, last: 2 },
      { component: 'count', first: 3, last: 6 },
      { component: 'words', first: 7, last: 8 },
    ]);
    expect(executors.map(({ range }) => range)).toEqual([
      [1, 1],
      [2, 2],
      [3, 4],
      [5, 6],
      [7, 7],
      [8, 8],
    ]);
    expect(adjustments).toEqual([]);
  });

  it('has no ackers when acking is off', () => {
    const { tasks, ackers } = plan([component('words', 1)], { 'topology.ackers': 0 });
    expect(ackers).toBe(0);
    expect(tasks).toEqual([{ component: 'words', first: 1, last: 1 }]);
  });

  it('gives topology.tasks to every component that sets none', () => {
    const { tasks } = plan([component('a', 1), component('b', 1, 2)], {
      'topology.tasks': 3,
      'topology.ackers': 0,
    });
    expect(tasks.map(({ first, last }) => last - first + 1)).toEqual([3, 2]);
  });

  it('reports every count that it adjusts', () => {
    const { adjustments } = plan([component('a', 8, 2), component('b', 6)], {
      'topology.max-task-parallelism': 4,
      'topology.workers': 9,
      'topology.ackers': 0,
    });
    expect(adjustments).toEqual([
      'Component "a" has 2 executors instead of 8, because it has 2 tasks.',
      'Component "b" has 4 tasks instead of 6, because topology.max-task-parallelism is 4.',
      'Component "b" has 4 executors instead of 6, because it has 4 tasks.',
      'topology.workers is 9, but there are 6 executors: at most 6 workers will run.',
    ]);
  });

  it.each([0, -1, 1.5, Number.NaN, 1_000_001, Number.POSITIVE_INFINITY])(
    'refuses the parallelism %s',
    (hint) => {
      expect(codeOf(() => plan([component('a', hint)]))).toMatch(
        /^PARALLELISM_ILLEGAL: Component "a" .* whole number/,
      );
      expect(codeOf(() => plan([component('a', 1, hint)]))).toMatch(
        /^PARALLELISM_ILLEGAL: Component "a" .* tasks/,
      );
    },
  );

  it('refuses a component that would never run', () => {
    expect(codeOf(() => plan([component('a', 1)], { 'topology.tasks': 0 }))).toMatch(
      /^PARALLELISM_ILLEGAL.*topology.tasks/,
    );
  });

  it('refuses more workers or executors than the limits allow, counting hints and not tasks', () => {
    expect(
      codeOf(() => plan([component('a', 1)], { 'topology.workers': 9, 'nimbus.slots-per-topology': 8 })),
    ).toBe('TOO_MANY_WORKERS: Topology "clicks" asks for 9 workers; nimbus.slots-per-topology allows 8.');
    expect(codeOf(() => plan([component('a', 9, 2)], { 'nimbus.executors-per-topology': 8 }))).toBe(
      'TOO_MANY_EXECUTORS: Topology "clicks" asks for 9 executors; nimbus.executors-per-topology allows 8.',
    );
    expect(plan([component('a', 8)], { 'nimbus.executors-per-topology': 8 }).executors).toHaveLength(9);
  });

  it('refuses a topology whose tasks would not fit into a daemon', () => {
    const many = Array.from({ length: 11 }, (_, index) => component(`c${index}`, 1_000_000));
    try {
      plan(many);
      expect.unreachable();
    } catch (error) {
      expect(hasCode(error, 'PARALLELISM_ILLEGAL')).toBe(true);
    }
  });
});

describe('the plan after a rebalance', () => {
  const components = [component('constructor', 2, 8), component('lines', 1, 4)];
  const submitted = plan(components, { 'topology.workers': 2 });

  it('has the counts that were asked for and the tasks that were submitted, ackers included', () => {
    const rebalanced = plan(
      components,
      { 'topology.workers': 2 },
      { workers: 5, executors: { constructor: 4, __acker: 1 } },
    );
    expect(rebalanced.tasks).toEqual(submitted.tasks);
    expect(rebalanced).toMatchObject({ topologyWorkers: 5, ackers: 2, adjustments: [] });
    const count = (id: string) => rebalanced.executors.filter((one) => one.component === id).length;
    expect([count('constructor'), count('lines'), count('__acker')]).toEqual([4, 1, 1]);
  });

  it('says what will be where more executors than tasks were asked for', () => {
    const rebalanced = plan(components, {}, { workers: 20, executors: { lines: 99, __acker: 3 } });
    expect(rebalanced.adjustments).toEqual([
      'Component "lines" has 4 executors instead of 99, because it has 4 tasks.',
      'Component "__acker" has 1 executor instead of 3, because it has 1 task.',
      'The workers wanted are 20, but there are 7 executors: at most 7 workers will run.',
    ]);
  });

  it('keeps to the limits of the cluster', () => {
    const limits = { 'nimbus.slots-per-topology': 3, 'nimbus.executors-per-topology': 8 };
    expect(codeOf(() => plan(components, limits, { workers: 4, executors: {} }))).toMatch(
      /^TOO_MANY_WORKERS/,
    );
    expect(codeOf(() => plan(components, limits, { executors: { lines: 99 } }))).toMatch(
      /^TOO_MANY_EXECUTORS/,
    );
  });

  it('has the resources that it gives of a component, by either name, and no others change', () => {
    const components = [component('lines', 2), component('count', 2)];
    const of = (amounts: Readonly<Record<string, number>>, id: string) =>
      plan(components, {}, { executors: {}, resources: { count: amounts } }).components.find(
        (one) => one.id === id,
      )?.resources;
    const before = of({}, 'count');
    expect(of({ cpu: 50, 'off-heap': 7 }, 'count')).toEqual({ ...before, cpuPercent: 50, offHeapMb: 7 });
    expect(of({ 'onheap.memory.mb': 99, gpu: 1 }, 'count')).toEqual({ ...before, onHeapMb: 99 });
    expect(of({ cpu: 50 }, 'lines')).toEqual(before);
  });
});

describe('the workers of max-parallelism', () => {
  const workers = (components: readonly ComponentDescription[]): number =>
    plan(components, { 'topology.workers': 'max-parallelism' }).topologyWorkers;

  it('are as many as the largest parallelism, capped by tasks', () => {
    expect(workers([component('a', 2), component('b', 6), component('c', 4)])).toBe(6);
    expect(workers([component('a', 9, 3)])).toBe(3);
  });

  it('are the sum over slot sharing groups', () => {
    const own = { slotSharingGroup: 'own' };
    expect(
      workers([component('a', 2), { ...component('b', 6), ...own }, { ...component('c', 4), ...own }]),
    ).toBe(8);
  });
});
