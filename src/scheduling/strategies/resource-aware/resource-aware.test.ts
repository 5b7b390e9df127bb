import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, ClusterTopology } from '../../cluster-snapshot.js';
import type { ClusterComponent, PlacementRules } from '../../resources.js';
import { resourceAwareStrategy, type ResourceAwareOptions } from './resource-aware.js';

const OPTIONS: ResourceAwareOptions = {
  asStorm: false,
  topologyOrder: 'default',
  guarantees: new Map(),
  minimumWorkerCpuPercent: 0,
  maxAttempts: 5,
  maxSearchStates: 10_000,
};
const place = resourceAwareStrategy(OPTIONS);
const placeAsStorm = resourceAwareStrategy({ ...OPTIONS, asStorm: true });

function supervisors(
  count: number,
  ports: number,
  cpuPercent: number,
  memoryMb: number,
): ClusterSnapshot['supervisors'] {
  return Array.from({ length: count }, (_, index) => ({
    id: `s${String(index).padStart(5, '0')}`,
    host: `h${String(index).padStart(5, '0')}`,
    rack: `r${index % 8}`,
    ports: Array.from({ length: ports }, (_unused, port) => 6700 + port),
    resources: { cpuPercent, memoryMb },
  }));
}

interface Part {
  readonly id: string;
  readonly executors: number;
  readonly cpu?: number;
  readonly heap?: number;
  readonly from?: string;
  readonly generic?: Record<string, number>;
}

function topology(
  id: string,
  parts: readonly Part[],
  rules: PlacementRules = {},
  priority = 10,
): ClusterTopology {
  let task = 0;
  return {
    id,
    workers: 1,
    owner: 'ann',
    priority,
    executors: parts.flatMap((part) =>
      Array.from({ length: part.executors }, () => {
        task++;
        return { range: [task, task] as const, component: part.id };
      }),
    ),
    components: parts.map(
      ({ id: component, from, cpu = 10, heap = 100, generic }): ClusterComponent => ({
        id: component,
        kind: from === undefined ? 'spout' : 'bolt',
        resources: {
          cpuPercent: cpu,
          onHeapMb: heap,
          offHeapMb: 0,
          ...(generic === undefined ? {} : { generic }),
        },
        inputs: from === undefined ? [] : [{ from, grouping: 'shuffle' }],
      }),
    ),
    rules,
  };
}

function fresh(
  machines: ClusterSnapshot['supervisors'],
  ...topologies: readonly ClusterTopology[]
): ClusterSnapshot {
  return { supervisors: machines, topologies, placement: new Map() };
}

describe('resource-aware', () => {
  it('needs work that grows with the executors, not with their square', () => {
    const machines = supervisors(1000, 4, 400, 4096);
    for (const strategy of ['default', 'constraint-solver', 'round-robin']) {
      const stepsPerExecutor = [10, 100, 1000, 10_000].map((count) => {
        const parts = [
          { id: 'a', executors: count * 0.4 },
          { id: 'b', executors: count * 0.4, from: 'a', cpu: 25 },
          { id: 'c', executors: count * 0.2, from: 'b', heap: 300 },
        ];
        const { steps, unplaced } = place(fresh(machines, topology('t', parts, { strategy })));
        expect(unplaced.size).toBe(0);
        return steps / count;
      });
      const [, small = 0, medium = 0, large = 0] = stepsPerExecutor;
      expect([strategy, large <= 3 * Math.max(small, medium)]).toEqual([strategy, true]);
    }
  });

  it('stops a search at its bound and says what was reached', () => {
    // 30 executors of 26 % on ten machines of 100 %: three fit on each in theory, but memory leaves room for two.
    const machines = supervisors(10, 4, 100, 500);
    const parts = [
      { id: 'a', executors: 15, cpu: 26, heap: 170 },
      { id: 'b', executors: 14, cpu: 26, heap: 171, from: 'a' },
    ];
    const { outcomes, unplaced, steps } = place(
      fresh(machines, topology('t', parts, { maxSearchStates: 2000, workerMaxHeapMb: 400 })),
    );
    expect(outcomes.get('t')).toBe('not-enough-resources');
    expect(unplaced.get('t')?.executors).toHaveLength(29);
    expect(unplaced.get('t')?.shortage?.rule).toBe('memory');
    expect(steps).toBeLessThan(2000 * 10 * 20);
  });

  it('says what an executor needs, what there is, and which supervisor comes closest', () => {
    const machines = supervisors(2, 1, 100, 1000);
    const { unplaced } = place(
      fresh(machines, topology('t', [{ id: 'a', executors: 2, cpu: 30, heap: 600 }])),
    );
    expect(unplaced.get('t')?.shortage).toBeUndefined();
    const tooBig = place(fresh(machines, topology('t', [{ id: 'a', executors: 1, cpu: 150 }])));
    expect(tooBig.unplaced.get('t')?.shortage).toEqual({
      component: 'a',
      need: { cpuPercent: 150, memoryMb: 100, onHeapMb: 100, generic: {} },
      have: { cpuPercent: 200, memoryMb: 2000, generic: {} },
      best: { supervisor: 's00000', cpuPercent: 100, memoryMb: 1000, generic: {} },
      rule: 'cpu',
    });
    expect(tooBig.unplaced.get('t')?.reason).toContain('s00000 comes closest with 100 % of a core');
    const heap = place(
      fresh(machines, topology('t', [{ id: 'a', executors: 1, heap: 900 }], { workerMaxHeapMb: 800 })),
    );
    expect(heap.unplaced.get('t')?.shortage?.rule).toBe('worker-heap');
    const gpu = place(fresh(machines, topology('t', [{ id: 'a', executors: 1, generic: { gpu: 1 } }])));
    expect(gpu.outcomes.get('t')).toBe('not-enough-resources');
  });

  it('says of a topology that needs more than the whole cluster has what it needs, and what is free', () => {
    const reasonFor = (part: Omit<Part, 'id' | 'executors'>): string | undefined =>
      place(
        fresh(supervisors(2, 2, 100, 1000), topology('t', [{ id: 'a', executors: 3, ...part }])),
      ).unplaced.get('t')?.reason;
    expect(reasonFor({ cpu: 80 })).toBe(
      'has 3 executors without a slot. Together they need 240 % of a core; 200 % are free in all. Add supervisors, or stop another topology.',
    );
    expect(reasonFor({ heap: 700 })).toContain('Together they need 2100 MB; 2000 MB are free in all.');
  });

  it('reports a topology that cannot be read and places the others', () => {
    const broken = topology('bad', [{ id: 'a', executors: 1, cpu: Number.NaN }]);
    const { failures, placement } = place(
      fresh(supervisors(1, 2, 100, 1000), broken, topology('good', [{ id: 'a', executors: 2 }])),
    );
    expect([...failures.keys()]).toEqual(['bad']);
    expect(placement.get('good')).toHaveLength(1);
  });

  it('refuses a strategy that the cluster does not have, without touching the rest', () => {
    const odd = topology('odd', [{ id: 'a', executors: 1 }], { strategy: 'fastest' });
    const { outcomes, unplaced } = place(
      fresh(supervisors(1, 2, 100, 1000), odd, topology('good', [{ id: 'a', executors: 2 }])),
    );
    expect(outcomes.get('odd')).toBe('refused');
    expect(unplaced.get('odd')?.reason).toContain('"fastest"');
    expect(outcomes.get('good')).toBe('placed');
  });

  it('evicts the least important topology for a more important one, and nobody if that does not help', () => {
    const machines = supervisors(1, 4, 100, 1000);
    const small = topology('small', [{ id: 'a', executors: 1, cpu: 80 }], {}, 20);
    const first = place(fresh(machines, small));
    const urgent = topology('urgent', [{ id: 'a', executors: 1, cpu: 90 }], {}, 0);
    const after = place({ supervisors: machines, topologies: [small, urgent], placement: first.placement });
    expect([...after.evicted]).toEqual([['urgent', ['small']]]);
    expect(after.outcomes.get('small')).toBe('not-enough-resources');
    const huge = topology('huge', [{ id: 'a', executors: 1, cpu: 110 }], {}, 0);
    const vain = place({ supervisors: machines, topologies: [small, huge], placement: first.placement });
    expect([...vain.evicted]).toEqual([]);
    expect(vain.placement.get('small')).toEqual(first.placement.get('small'));
  });

  it('does not take a topology for placed whose only missing executor has no place, as Storm does', () => {
    const machines = supervisors(2, 1, 100, 1000);
    const half = topology('t', [{ id: 'a', executors: 1, cpu: 60 }], {}, 0);
    const other = topology('u', [{ id: 'a', executors: 1, cpu: 60 }], {}, 20);
    const third = topology('v', [{ id: 'a', executors: 1, cpu: 60 }], {}, 30);
    const full = place(fresh(machines, other, third));
    const snapshot = { supervisors: machines, topologies: [half, other, third], placement: full.placement };
    const storm = placeAsStorm(snapshot);
    expect([storm.outcomes.get('t'), storm.unplaced.get('t')?.executors.length]).toEqual(['placed', 1]);
    const { evicted, unplaced } = place(snapshot);
    expect([...evicted]).toEqual([['t', ['v']]]);
    expect([...unplaced.keys()]).toEqual(['v']);
  });

  it('prefers the first host by name among equal machines, whatever their ids are', () => {
    const hosts = ['h3', 'h1', 'h2'];
    const machines = supervisors(3, 1, 100, 1000).map((one, index) => ({
      ...one,
      host: hosts[index] ?? one.host,
      rack: 'r',
    }));
    const small = topology('t', [{ id: 'a', executors: 1 }]);
    expect(place(fresh(machines, small)).placement.get('t')?.[0]?.supervisor).toBe('s00001');
    // Shares that are equal although the machines are not: what one has more of memory, the other has of processor.
    const unlike = machines.slice(0, 2).map((one, index) => ({
      ...one,
      resources: index === 0 ? { cpuPercent: 200, memoryMb: 512 } : { cpuPercent: 100, memoryMb: 1024 },
    }));
    expect(place(fresh(unlike, small)).placement.get('t')?.[0]?.supervisor).toBe('s00001');
  });

  it('keeps one order of supervisors for all executors under default-old, as Storm does', () => {
    // At first the second has the larger smallest share; once the memory of the first is used up, the third has.
    const offers = [
      { ports: [1, 2], resources: { cpuPercent: 400, memoryMb: 4000 } },
      { ports: [1], resources: { cpuPercent: 100, memoryMb: 1000 } },
      { ports: [1], resources: { cpuPercent: 400, memoryMb: 250 } },
    ];
    const machines = offers.map((offer, index) => ({ id: `s${index}`, host: 'h', rack: 'r', ...offer }));
    const parts = [
      { id: 'a', executors: 1, heap: 3700 },
      { id: 'b', executors: 2, heap: 100, from: 'a' },
    ];
    const rules = { strategy: 'default-old', oneExecutorPerWorker: true, workerMaxHeapMb: 4000 };
    const placed = place(fresh(machines, topology('t', parts, rules))).placement.get('t');
    expect(placed?.map(({ supervisor }) => supervisor)).toEqual(['s0', 's0', 's1']);
  });
});
