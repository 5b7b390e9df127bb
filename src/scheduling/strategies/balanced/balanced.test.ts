import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, ClusterTopology, PlacedWorker } from '../../cluster-snapshot.js';
import { computeExecutors } from '../../executors.js';
import { numberTasks } from '../../numbering.js';
import type { LoadBalanceMode } from '../../resources.js';
import { trafficCost } from '../../plan/traffic-cost.js';
import { validateAssignment } from '../../validate-assignment.js';
import { ALL_BY_TASKS, clusterOf } from '../testing/balanced-cluster.js';
import { type BalancedOptions, balancedStrategy } from './balanced.js';

const seed = 20_265;
function topologyOf(
  id: string,
  counts: Readonly<Record<string, number>>,
  more: Partial<ClusterTopology> = {},
): ClusterTopology {
  const entries = Object.entries(counts);
  const executors = computeExecutors(numberTasks(entries), new Map(entries));
  const names = Object.keys(counts);
  return {
    id,
    workers: Math.max(...entries.map(([, count]) => count)),
    executors,
    components: names.map((name, index) => ({
      id: name,
      kind: index === 0 ? 'spout' : 'bolt',
      resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
      inputs: index === 0 ? [] : [{ from: names[index - 1]!, grouping: 'shuffle' }],
    })),
    ...more,
  };
}

function executorsPerMachine(workers: readonly PlacedWorker[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { supervisor, executors } of workers)
    counts[supervisor] = (counts[supervisor] ?? 0) + executors.length;
  return counts;
}

const pipeline = topologyOf('t', { source: 2, map: 4, sink: 6 });

describe('the strategy balanced', () => {
  it('spreads 2, 4 and 6 executors evenly over three machines where Flink without balance does not', () => {
    const cluster = clusterOf([3, 3, 3], [pipeline]);
    const placed = (mode: LoadBalanceMode): number[] =>
      Object.values(
        executorsPerMachine(balancedStrategy({ ...ALL_BY_TASKS, mode })(cluster).placement.get('t')!),
      ).sort();
    expect(placed('tasks')).toEqual([4, 4, 4]);
    expect(placed('none')).toEqual([4, 8]);
  });

  it('sees the load of all topologies, and where that is off spreads each as if it were alone', () => {
    const counts = fc.record({
      a: fc.integer({ min: 1, max: 3 }),
      b: fc.integer({ min: 1, max: 5 }),
      c: fc.integer({ min: 1, max: 7 }),
    });
    const cases = fc.tuple(
      fc.array(counts, { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 2, maxLength: 4 }),
    );
    const alone: BalancedOptions = { ...ALL_BY_TASKS, seesAllTopologies: false };
    const sorted = (loads: Readonly<Record<string, number>>): readonly number[] =>
      Object.values(loads).sort((x, y) => y - x);
    fc.assert(
      fc.property(cases, ([all, others]) => {
        const topologies = all.map((one, index) => topologyOf(`t${index}`, one));
        // Slots enough that nobody is in another one's way.
        const bare = clusterOf(
          others.map(() => 30),
          topologies,
        );
        const supervisors = bare.supervisors.map((one, index) => ({ ...one, otherLoad: others[index]! }));
        const cluster = { ...bare, supervisors };
        const largest = (options: BalancedOptions): number => {
          const { placement } = balancedStrategy(options)(cluster);
          const loads = Object.fromEntries(others.map((load, index) => [`m${index}`, load]));
          for (const workers of placement.values())
            for (const [machine, count] of Object.entries(executorsPerMachine(workers)))
              loads[machine] = loads[machine]! + count;
          return Math.max(...Object.values(loads));
        };
        expect(largest(ALL_BY_TASKS)).toBeLessThanOrEqual(largest(alone));
        const together = balancedStrategy(alone)(cluster);
        for (const topology of topologies) {
          const own = balancedStrategy(alone)(
            clusterOf(
              others.map(() => 30),
              [topology],
            ),
          );
          expect(sorted(executorsPerMachine(together.placement.get(topology.id)!))).toEqual(
            sorted(executorsPerMachine(own.placement.get(topology.id)!)),
          );
        }
      }),
      { seed, numRuns: 300 },
    );
  });

  it('gives parallelism 1, 2 and 3 two executors on each of three machines', () => {
    const small = topologyOf('t', { a: 1, b: 2, c: 3 });
    const { placement } = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, 3], [small]));
    expect(executorsPerMachine(placement.get('t')!)).toEqual({ m0: 2, m1: 2, m2: 2 });
  });

  it('goes to 6/6 when a machine is lost and back to 4/4/4 by two moves when it returns', () => {
    const first = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, 3], [pipeline])).placement.get('t')!;
    const left = first.filter(({ supervisor }) => supervisor !== 'm2');
    const lost = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, -1], [pipeline], new Map([['t', left]])));
    expect(executorsPerMachine(lost.placement.get('t')!)).toEqual({ m0: 6, m1: 6 });
    const back = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, 3], [pipeline], lost.placement));
    expect(executorsPerMachine(back.placement.get('t')!)).toEqual({ m0: 4, m1: 4, m2: 4 });
    expect(back.notes?.join(' ')).toContain('2 running workers move; at least 2 must');
    const again = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, 3], [pipeline], back.placement));
    expect(again.placement).toEqual(back.placement);
  });

  describe('a topology that was placed on fewer slots than it wants', () => {
    const fixedSource = {
      ...pipeline,
      components: pipeline.components!.map((one) => ({ ...one, isMovable: one.kind === 'bolt' })),
    };
    /** Rounds until nothing changes; resolves to the placement, and to how many rounds changed something. */
    function untilRest(
      slots: readonly number[],
      topology: ClusterTopology,
      placement: ClusterSnapshot['placement'],
      options = ALL_BY_TASKS,
    ): { readonly workers: readonly PlacedWorker[]; readonly rounds: number } {
      let workers = placement.get(topology.id) ?? [];
      for (let rounds = 0; ; rounds++) {
        const next = balancedStrategy(options)(
          clusterOf(slots, [topology], new Map([[topology.id, workers]])),
        );
        expect(next.unplaced.size).toBe(0);
        const found = next.placement.get(topology.id)!;
        if (JSON.stringify(found) === JSON.stringify(workers)) return { workers, rounds };
        workers = found;
        if (rounds > 20) throw new Error('does not come to rest');
      }
    }

    it.each([1, 3])('spreads over all that it wants when they come, from %d slots', (few) => {
      const before = balancedStrategy(ALL_BY_TASKS)(clusterOf([few, -1, -1], [fixedSource]));
      expect(before.placement.get('t')).toHaveLength(few);
      const { workers } = untilRest([3, 3, 3], fixedSource, before.placement);
      expect(executorsPerMachine(workers)).toEqual({ m0: 4, m1: 4, m2: 4 });
      expect(workers).toHaveLength(6);
      expect(workers.map(({ executors }) => executors.length)).toEqual([2, 2, 2, 2, 2, 2]);
      // Its sources are where they were.
      const sources = new Set(
        fixedSource.executors.filter(({ component }) => component === 'source').map(({ range }) => range[0]),
      );
      const placesOf = (all: readonly PlacedWorker[]): string[] =>
        all.flatMap(({ supervisor, port, executors }) =>
          executors
            .filter(([first]) => sources.has(first))
            .map(([first]) => `${first} ${supervisor}:${port}`),
        );
      expect(placesOf(workers)).toEqual(placesOf(before.placement.get('t')!));
    });

    it('takes no slot that another topology needs, and goes no further than its budget in a round', () => {
      const before = balancedStrategy(ALL_BY_TASKS)(clusterOf([1, -1], [fixedSource]));
      const other = topologyOf('u', { x: 2 });
      const { placement } = balancedStrategy(ALL_BY_TASKS)(
        clusterOf([1, 3], [fixedSource, other], before.placement),
      );
      expect([placement.get('t')!.length, placement.get('u')!.length]).toEqual([2, 2]);
      const { rounds } = untilRest([3, 3, 3], fixedSource, before.placement, {
        ...ALL_BY_TASKS,
        moveBudget: 2,
      });
      expect(rounds).toBeGreaterThan(2);
    });

    it('stays as it is where nothing may move by itself', () => {
      const before = balancedStrategy(ALL_BY_TASKS)(clusterOf([2, -1], [fixedSource]));
      const still = balancedStrategy({ ...ALL_BY_TASKS, moveBudget: 0 });
      expect(still(clusterOf([2, 4], [fixedSource], before.placement)).placement).toEqual(before.placement);
    });
  });

  it('never moves what may not move, and balances around it', () => {
    const stateful = {
      ...pipeline,
      components: pipeline.components!.map((one) => ({ ...one, isMovable: false })),
    };
    const first = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [stateful])).placement;
    const later = balancedStrategy(ALL_BY_TASKS)(
      clusterOf([3, 3, 3], [stateful, topologyOf('u', { x: 3 })], first),
    );
    expect(later.placement.get('t')).toEqual(first.get('t'));
    expect(executorsPerMachine(later.placement.get('u')!)).toEqual({ m2: 3 });
    expect(later.notes).toContain(
      '6 running workers may not move, because of state or sources that are not movable; if all could, the bound would be 5.',
    );
  });

  it('counts the load of all topologies', () => {
    const heavy = topologyOf('a', { x: 6 }, { workers: 2, balance: {} });
    const { placement } = balancedStrategy(ALL_BY_TASKS)(
      clusterOf([4, 4, 4], [heavy, topologyOf('b', { y: 3 })]),
    );
    expect(executorsPerMachine(placement.get('b')!)).toEqual({ m2: 3 });
  });

  it('weighs executors as they are declared', () => {
    const base = topologyOf('t', { heavy: 1, light: 3 });
    const weighted = {
      ...base,
      workers: 4,
      balance: {},
      components: base.components!.map((one) => ({
        ...one,
        slotSharingGroup: one.id,
        load: one.id === 'heavy' ? 3 : 1,
      })),
    };
    const { placement } = balancedStrategy(ALL_BY_TASKS)(clusterOf([4, 4], [weighted]));
    expect(Object.values(executorsPerMachine(placement.get('t')!)).sort()).toEqual([1, 3]);
  });

  it('lets no topology take all slots when they are short', () => {
    const topologies = ['a', 'b', 'c'].map((id) => topologyOf(id, { x: 8 }));
    const { placement, unplaced } = balancedStrategy(ALL_BY_TASKS)(clusterOf([4, 4], topologies));
    expect(topologies.map(({ id }) => placement.get(id)!.length)).toEqual([3, 3, 2]);
    expect(unplaced.size).toBe(0);
  });

  const anyTopology = fc.tuple(
    fc.dictionary(fc.constantFrom('a', 'b', 'c', '__acker'), fc.integer({ min: 1, max: 6 }), { minKeys: 1 }),
    fc.integer({ min: 1, max: 5 }),
    fc.constantFrom<LoadBalanceMode>('none', 'slots', 'tasks', 'min-resources'),
    fc.boolean(),
  );
  const anyCluster = fc.tuple(
    fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 }),
    fc.array(anyTopology, { minLength: 1, maxLength: 3 }),
  );

  it('returns sound placements, keeps what runs, and forgets no executor while there is a slot', () => {
    fc.assert(
      fc.property(
        anyCluster,
        fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 5 }),
        ([slots, specs], later) => {
          const topologies = specs.map(([counts, workers, mode, usesMaxParallelism], index) =>
            topologyOf(`t${index}`, counts, {
              ...(usesMaxParallelism ? {} : { workers }),
              balance: { mode },
            }),
          );
          const first = clusterOf(slots, topologies);
          const result = balancedStrategy(ALL_BY_TASKS)(first);
          check(first, result);
          // Machines go, come and change; what was on a lost machine is lost.
          const machines = later.length === 0 ? slots : later;
          const alive = new Map(
            [...result.placement].map(([id, workers]) => [
              id,
              workers.filter(({ supervisor, port }) => (machines[Number(supervisor.slice(1))] ?? -1) > port),
            ]),
          );
          const second = clusterOf(machines, topologies, alive);
          const next = balancedStrategy({ ...ALL_BY_TASKS, moveBudget: 0 })(second);
          check(second, next);
          for (const [id, workers] of alive) {
            for (const worker of workers) {
              const now = next.placement
                .get(id)!
                .find((one) => one.supervisor === worker.supervisor && one.port === worker.port);
              expect(now?.executors).toEqual(expect.arrayContaining([...worker.executors]));
            }
          }
          check(second, balancedStrategy(ALL_BY_TASKS)(second));
        },
      ),
      { seed, numRuns: 300 },
    );
  });

  describe('among placements that are equally even', () => {
    const PLAIN: BalancedOptions = {
      ...ALL_BY_TASKS,
      classes: [],
      spreadsComponents: false,
      keepsNeighbours: false,
    };
    const CLASSES: BalancedOptions = { ...PLAIN, classes: ['sources', 'stateful', 'stateless'] };
    const SPREAD: BalancedOptions = { ...PLAIN, spreadsComponents: true };
    const NEAR: BalancedOptions = { ...PLAIN, keepsNeighbours: true };

    it('takes one in which a component is on different machines', () => {
      // Two workers of one kind and two of another, on two machines that have something already.
      const groups = (id: string): ClusterTopology => ({
        ...topologyOf(id, { x: 2, y: 2 }),
        workers: 4,
        components: ['x', 'y'].map((name) => ({
          id: name,
          kind: 'bolt',
          resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
          slotSharingGroup: name,
        })),
      });
      const other = topologyOf('a', { z: 1 });
      const cluster = clusterOf([3, 3], [other, groups('t')]);
      const spread = balancedStrategy(SPREAD)(cluster);
      expect(squares(cluster.topologies, spread.placement)).toBe(5);
      expect(machineLoads(cluster, spread.placement)).toEqual(
        machineLoads(cluster, balancedStrategy(PLAIN)(cluster).placement),
      );
    });

    it('takes one in which sources are on different machines, whichever component they are of', () => {
      const names = ['s1', 's2', 'b1', 'b2'];
      const mixed: ClusterTopology = {
        ...topologyOf('t', { s1: 1, s2: 1, b1: 1, b2: 1 }),
        workers: 4,
        components: names.map((name) => ({
          id: name,
          kind: name.startsWith('s') ? 'spout' : 'bolt',
          isStateful: name === 'b1',
          resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
          slotSharingGroup: name,
        })),
      };
      const cluster = clusterOf([3, 3], [topologyOf('a', { z: 1 }), mixed, topologyOf('u', { z: 1 })]);
      const sources = mixed.executors.filter(({ component }) => component.startsWith('s'));
      const machinesOf = (options: BalancedOptions): Set<string | undefined> => {
        const workers = balancedStrategy(options)(cluster).placement.get('t')!;
        return new Set(
          sources.map(
            ({ range }) =>
              workers.find(({ executors }) => executors.some(([first]) => first === range[0]))?.supervisor,
          ),
        );
      };
      expect(machinesOf(CLASSES).size).toBe(2);
    });

    it('costs neither load nor moves, at the start or when machines go and come, and is never worse in what it is for', () => {
      fc.assert(
        fc.property(
          anyCluster,
          fc.array(fc.integer({ min: -1, max: 4 }), { minLength: 1, maxLength: 5 }),
          ([slots, specs], later) => {
            const topologies = specs.map(([counts, workers, , usesMaxParallelism], index) =>
              topologyOf(`t${index}`, counts, {
                ...(usesMaxParallelism ? {} : { workers }),
                balance: { mode: 'tasks' },
              }),
            );
            fc.pre(later.some((count) => count >= 0));
            const start = clusterOf(slots, topologies);
            const first = balancedStrategy(PLAIN)(start).placement;
            const alive = new Map(
              [...first].map(([id, workers]) => [
                id,
                workers.filter(({ supervisor, port }) => (later[Number(supervisor.slice(1))] ?? -1) > port),
              ]),
            );
            // Where slots are short, executors join workers afterwards.
            const wanted = topologies.reduce((sum, { workers }) => sum + workers, 0);
            const isShort = ({ supervisors }: ClusterSnapshot): boolean =>
              supervisors.reduce((sum, { ports }) => sum + ports.length, 0) < wanted;
            const second = clusterOf(later, topologies, alive);
            for (const cluster of isShort(start) ? [] : [start, ...(isShort(second) ? [] : [second])]) {
              const plain = balancedStrategy(PLAIN)(cluster);
              const loads = machineLoads(cluster, plain.placement);
              for (const options of [CLASSES, SPREAD, NEAR, ALL_BY_TASKS]) {
                const own = balancedStrategy(options)(cluster);
                check(cluster, own);
                const ownLoads = machineLoads(cluster, own.placement);
                expect(ownLoads.at(-1)).toBeLessThanOrEqual(loads.at(-1)!);
                expect(ownLoads[0]).toBeGreaterThanOrEqual(loads[0]!);
                expect(movedExecutors(cluster.placement, own.placement)).toBeLessThanOrEqual(
                  movedExecutors(cluster.placement, plain.placement),
                );
              }
              const spread = squares(topologies, balancedStrategy(SPREAD)(cluster).placement);
              expect(spread).toBeLessThanOrEqual(squares(topologies, plain.placement));
              const byClass = classSquares(topologies, balancedStrategy(CLASSES)(cluster).placement);
              expect(byClass).toBeLessThanOrEqual(classSquares(topologies, plain.placement));
              const full = balancedStrategy(ALL_BY_TASKS)(cluster).placement;
              expect(classSquares(topologies, full)).toBeLessThanOrEqual(byClass);
              const near = { ...cluster, placement: balancedStrategy(NEAR)(cluster).placement };
              const cost = trafficCost({ ...cluster, placement: plain.placement }).cost;
              expect(trafficCost(near).cost).toBeLessThanOrEqual(cost + 1e-9);
            }
          },
        ),
        { seed, numRuns: 300 },
      );
    });
  });

  it('comes to rest as even as a fresh start, after any sequence of lost, added and returned machines', () => {
    const anySlots = fc.array(fc.integer({ min: -1, max: 4 }), { minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 6 }), { minKeys: 1 }),
        fc.array(anySlots, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 4 }),
        (counts, sequence, moveBudget) => {
          const topology = topologyOf('t', counts);
          const options = { ...ALL_BY_TASKS, moveBudget };
          const isEnough = (slots: readonly number[]): boolean =>
            slots.reduce((sum, count) => sum + Math.max(0, count), 0) >= topology.workers;
          let placement: ClusterSnapshot['placement'] = new Map();
          for (const slots of sequence) {
            if (!isEnough(slots)) continue;
            const alive = (placement.get('t') ?? []).filter(
              ({ supervisor, port }) => (slots[Number(supervisor.slice(1))] ?? -1) > port,
            );
            placement = new Map([['t', alive]]);
            const seen = new Set<string>();
            for (let round = 0; ; round++) {
              const cluster = clusterOf(slots, [topology], placement);
              const next = balancedStrategy(options)(cluster);
              check(cluster, next);
              const key = JSON.stringify(next.placement.get('t'));
              if (seen.has(key)) break;
              seen.add(key);
              expect(round).toBeLessThan(60);
              placement = next.placement;
            }
            const cluster = clusterOf(slots, [topology], placement);
            const fresh = balancedStrategy({ ...ALL_BY_TASKS, moveBudget: Infinity })(
              clusterOf(slots, [topology]),
            );
            const [loads, best] = [machineLoads(cluster, placement), machineLoads(cluster, fresh.placement)];
            if (moveBudget >= 4) expect(loads.at(-1)).toBe(best.at(-1));
            else expect(loads.at(-1)).toBeLessThanOrEqual(best.at(-1)! + 1);
          }
        },
      ),
      { seed, numRuns: 200 },
    );
  });

  it('does not depend on the order of its input', () => {
    fc.assert(
      fc.property(anyCluster, ([slots, specs]) => {
        const topologies = specs.map(([counts, workers, mode], index) =>
          topologyOf(`t${index}`, counts, { workers, balance: { mode } }),
        );
        const cluster = clusterOf(slots, topologies);
        const turned = {
          ...cluster,
          supervisors: [...cluster.supervisors].reverse(),
          topologies: topologies
            .map((one) => ({ ...one, executors: [...one.executors].reverse() }))
            .reverse(),
        };
        expect(balancedStrategy(ALL_BY_TASKS)(turned).placement).toEqual(
          balancedStrategy(ALL_BY_TASKS)(cluster).placement,
        );
      }),
      { seed, numRuns: 300 },
    );
  });
});

function check(cluster: ClusterSnapshot, result: ReturnType<ReturnType<typeof balancedStrategy>>): void {
  expect([...result.failures]).toEqual([]);
  expect([...validateAssignment(cluster, result)]).toEqual([]);
  const total = cluster.supervisors.reduce((sum, { ports }) => sum + ports.length, 0);
  const isEnough = total >= cluster.topologies.length;
  if (isEnough && cluster.placement.size === 0) expect(result.unplaced.size).toBe(0);
}

/** Ascending. */
function machineLoads(
  { supervisors, topologies }: ClusterSnapshot,
  placement: ClusterSnapshot['placement'],
): readonly number[] {
  const loads = new Map(supervisors.map(({ id }) => [id, 0]));
  for (const { id } of topologies)
    for (const { supervisor, executors } of placement.get(id) ?? [])
      loads.set(supervisor, (loads.get(supervisor) ?? 0) + executors.length);
  return [...loads.values()].sort((a, b) => a - b);
}

/** The sum over components and machines of the square of how many executors are there. */
function squares(topologies: readonly ClusterTopology[], placement: ClusterSnapshot['placement']): number {
  let sum = 0;
  for (const { id, executors } of topologies) {
    const componentOf = new Map(executors.map(({ range, component }) => [range[0], component]));
    const counts = new Map<string, number>();
    for (const worker of placement.get(id) ?? []) {
      for (const [first] of worker.executors) {
        const component = componentOf.get(first) ?? '';
        const key = `${component} ${worker.supervisor}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
    for (const count of counts.values()) sum += count * count;
  }
  return sum;
}

/** The sum over machines and over sources and other components of the square of how many executors are there. */
function classSquares(
  topologies: readonly ClusterTopology[],
  placement: ClusterSnapshot['placement'],
): number {
  const counts = new Map<string, number>();
  for (const { id, executors, components = [] } of topologies) {
    const kinds = new Map(components.map(({ id: name, kind }) => [name, kind]));
    const kindOf = new Map(executors.map(({ range, component }) => [range[0], kinds.get(component)]));
    for (const worker of placement.get(id) ?? []) {
      for (const [first] of worker.executors) {
        const key = `${kindOf.get(first) ?? ''} ${worker.supervisor}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
  }
  return [...counts.values()].reduce((sum, count) => sum + count * count, 0);
}

function movedExecutors(before: ClusterSnapshot['placement'], after: ClusterSnapshot['placement']): number {
  const placesOf = (placement: ClusterSnapshot['placement']): ReadonlyMap<string, string> =>
    new Map(
      [...placement].flatMap(([id, workers]) =>
        workers.flatMap(({ supervisor, port, executors }) =>
          executors.map(([first]) => [`${id} ${first}`, `${supervisor}:${port}`] as const),
        ),
      ),
    );
  const now = placesOf(after);
  return [...placesOf(before)].filter(([executor, place]) => now.get(executor) !== place).length;
}
