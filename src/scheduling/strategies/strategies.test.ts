import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../base/index.js';
import type { ClusterSnapshot, ClusterTopology, Placement } from '../cluster-snapshot.js';
import { validateAssignment } from '../validate-assignment.js';
import { STRATEGY_NAMES, strategyNamed } from './strategies.js';

const settings = compileSettings();

const snapshot: ClusterSnapshot = {
  supervisors: ['m1', 'm2'].map((id) => ({
    id,
    host: id,
    ports: [1, 2],
    resources: { cpuPercent: 400, memoryMb: 4096 },
  })),
  topologies: [
    {
      id: 't',
      workers: 2,
      executors: [1, 2].map((task) => ({ range: [task, task] as const, component: 'a' })),
      components: [{ id: 'a', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 128, offHeapMb: 0 } }],
      rules: { workerMaxHeapMb: 128, isolatedMachines: 2 },
    },
  ],
  placement: new Map(),
};

describe('strategies by name', () => {
  it.each(STRATEGY_NAMES)('%s places a topology that fits', (name) => {
    const { placement, unplaced, failures } = strategyNamed(name, settings)(snapshot);
    expect([...failures]).toEqual([]);
    expect([...unplaced]).toEqual([]);
    expect(placement.get('t')?.flatMap(({ executors }) => executors)).toHaveLength(2);
  });

  it('isolates a topology whose rules ask for machines', () => {
    expect(strategyNamed('isolation', settings)(snapshot).reservedHosts).toEqual(['m1', 'm2']);
  });

  it('refuses a name that no strategy has, with the closest one', () => {
    expect(() => strategyNamed('balance', settings)).toThrow(/did you mean "balanced"/);
  });

  it('refuses pools and isolated topologies that are no counts', () => {
    const withPool = compileSettings({ 'scheduling.user-pools': ['ann=many'] });
    expect(() => strategyNamed('multitenant', withPool)).toThrow(/expected name=count/);
    const withHosts = compileSettings({ 'isolation.scheduler.machines': { clicks: 2 } });
    expect(withHosts['scheduling.isolated-topologies']).toEqual(['clicks=2']);
    expect(() => strategyNamed('isolation', withHosts)).not.toThrow();
  });
});

/** What one strategy after the other must keep to: a cluster after some history, with everything that any of them looks at. */
const histories = fc
  .record({
    ports: fc.array(fc.nat(4), { minLength: 1, maxLength: 7 }),
    topologies: fc.array(
      fc.record({
        workers: fc.nat(6),
        sizes: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
        owner: fc.constantFrom('ann', 'bob', ''),
        machines: fc.constantFrom(undefined, undefined, 1, 2),
        memory: fc.constantFrom(64, 128, 512),
      }),
      { maxLength: 4 },
    ),
    kept: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
    lost: fc.nat(9),
    blacklisted: fc.nat(12),
  })
  .map(({ ports, topologies, kept, lost, blacklisted }) => {
    const supervisors = ports.map((count, index) => ({
      id: `s${index}`,
      host: `h${index % 4}`,
      rack: `r${index % 2}`,
      ports: Array.from({ length: count }, (_, port) => port),
      resources: { cpuPercent: 100, memoryMb: 1024 },
    }));
    const list = topologies.map(({ workers, sizes, owner, machines, memory }, index): ClusterTopology => {
      let task = 0;
      return {
        id: `t${index}`,
        workers,
        owner,
        executors: sizes.flatMap((size, component) =>
          Array.from({ length: size }, () => {
            task++;
            return { range: [task, task] as const, component: `c${component}` };
          }),
        ),
        components: sizes.map((_, component) => ({
          id: `c${component}`,
          kind: component === 0 ? ('spout' as const) : ('bolt' as const),
          resources: { cpuPercent: 10, onHeapMb: memory, offHeapMb: 0 },
          inputs: component === 0 ? [] : [{ from: `c${component - 1}`, grouping: 'shuffle' as const }],
        })),
        rules: machines === undefined ? {} : { isolatedMachines: machines },
      };
    });
    return { supervisors, topologies: list, kept, lost, blacklistedHosts: new Set([`h${blacklisted}`]) };
  });

/** Some workers, and all on one machine, are gone. */
function afterLosses(placement: Placement, kept: readonly boolean[], lost: number): Placement {
  let turn = 0;
  return new Map(
    [...placement].map(([id, workers]) => [
      id,
      workers.filter(({ supervisor }) => supervisor !== `s${lost}` && kept[turn++ % kept.length]!),
    ]),
  );
}

const MODES = [
  ['on', compileSettings()],
  ['off', compileSettings({ 'scheduling.compatibility': ['storm', 'flink'] })],
] as const;

describe.each(STRATEGY_NAMES)('the strategy %s', (name) => {
  it.each(MODES)(
    'is sound, fails for nobody and answers the same for any order and for copies, improvements %s',
    (_, own) => {
      fc.assert(
        fc.property(histories, ({ kept, lost, ...first }) => {
          const strategy = strategyNamed(name, own);
          const start = { ...first, placement: new Map() };
          const before = strategy(start);
          expect([...validateAssignment(start, before)]).toEqual([]);
          const later: ClusterSnapshot = {
            ...first,
            supervisors: first.supervisors.filter((_one, index) => index !== lost),
            placement: afterLosses(before.placement, kept, lost),
          };
          const after = strategy(later);
          expect([...validateAssignment(later, after)]).toEqual([]);
          expect([...after.failures]).toEqual([]);
          // What is kept of lists that were seen before changes nothing.
          expect(strategy(structuredClone(later)).placement).toEqual(after.placement);
          expect(strategy(later).placement).toEqual(after.placement);
          const turned = {
            ...later,
            supervisors: [...later.supervisors].reverse(),
            topologies: [...later.topologies].reverse(),
            placement: new Map([...later.placement].reverse()),
          };
          expect([...strategy(turned).placement].sort()).toEqual([...after.placement].sort());
        }),
        { seed: 21, numRuns: 60 },
      );
    },
  );
});

describe('improvements', () => {
  const workersOf = (placement: Placement, id: string): number => placement.get(id)?.length ?? 0;
  const machine = (id: string, ports: number): ClusterSnapshot['supervisors'][number] => ({
    id,
    host: id,
    ports: Array.from({ length: ports }, (_, port) => port),
  });
  const plain = (id: string, workers: number, executors: number): ClusterTopology => ({
    id,
    workers,
    executors: Array.from({ length: executors }, (_, index) => ({
      range: [index + 1, index + 1],
      component: 'c',
    })),
  });
  const asStorm = compileSettings({ 'scheduling.compatibility': ['storm'] });

  it.each(['even', 'default'])(
    'share slots that are short among topologies under %s; Storm gives them to the first',
    (name) => {
      const short = {
        supervisors: [machine('m', 4)],
        topologies: [plain('a', 4, 8), plain('b', 4, 8)],
        placement: new Map(),
      };
      const fair = strategyNamed(name, settings)(short);
      expect([workersOf(fair.placement, 'a'), workersOf(fair.placement, 'b')]).toEqual([2, 2]);
      const first = strategyNamed(name, asStorm)(short);
      expect([workersOf(first.placement, 'a'), workersOf(first.placement, 'b')]).toEqual([4, 0]);
      const switched = compileSettings({ 'scheduling.fair-shares': false });
      expect([...strategyNamed(name, switched)(short).placement]).toEqual([...first.placement]);
    },
  );

  it('move only what was lost under default; Storm stops workers of an uneven size, too', () => {
    const start = {
      supervisors: [machine('m', 3), machine('n', 1)],
      topologies: [plain('t', 4, 9)],
      placement: new Map(),
    };
    const { placement } = strategyNamed('default', asStorm)(start);
    const lost = {
      ...start,
      supervisors: [machine('m', 3)],
      placement: new Map([['t', placement.get('t')!.filter(({ supervisor }) => supervisor === 'm')]]),
    };
    const changed = (own: typeof settings): number =>
      lost.placement
        .get('t')!
        .flatMap(({ port, executors }) => executors.map(([first]) => ({ port, first })))
        .filter(({ port, first }) => {
          const now = strategyNamed('default', own)(lost).placement.get('t')!;
          return !now.some((one) => one.port === port && one.executors.some(([task]) => task === first));
        }).length;
    expect(changed(settings)).toBe(0);
    expect(changed(asStorm)).toBeGreaterThan(0);
  });

  it('let others run on where an isolated topology lacks hosts; Storm stops them', () => {
    const both = {
      supervisors: [machine('m', 1)],
      topologies: [{ ...plain('a', 2, 2), rules: { isolatedMachines: 1 } }, plain('b', 1, 1)],
      placement: new Map([['b', [{ supervisor: 'm', port: 0, executors: [[1, 1] as const] }]]]),
    };
    expect(workersOf(strategyNamed('isolation', asStorm)(both).placement, 'b')).toBe(0);
    expect(workersOf(strategyNamed('isolation', settings)(both).placement, 'b')).toBe(1);
  });

  it('place round robin beside other topologies; Storm wants machines that nobody else is on', () => {
    const both = {
      supervisors: [{ ...machine('m', 4), resources: { cpuPercent: 400, memoryMb: 4096 } }],
      topologies: ['a', 'b'].map(
        (id): ClusterTopology => ({
          ...plain(id, 1, 2),
          owner: 'ann',
          components: [{ id: 'c', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 64, offHeapMb: 0 } }],
          rules: { strategy: 'round-robin' },
        }),
      ),
      placement: new Map(),
    };
    expect(strategyNamed('resource-aware', settings)(both).unplaced.size).toBe(0);
    expect([...strategyNamed('resource-aware', asStorm)(both).unplaced.keys()]).toEqual(['b']);
  });

  it('open nothing where the wanted workers were lowered or are negative; Storm throws there', () => {
    for (const workers of [-3, 0, 1]) {
      const lowered = {
        supervisors: [machine('m', 4)],
        topologies: [plain('t', workers, 3)],
        placement: new Map([
          ['t', [1, 2].map((task) => ({ supervisor: 'm', port: task, executors: [[task, task] as const] }))],
        ]),
      };
      for (const name of ['even', 'default']) {
        const { failures, placement } = strategyNamed(name, asStorm)(lowered);
        expect(failures.size).toBe(0);
        expect(workersOf(placement, 't')).toBeLessThanOrEqual(2);
      }
    }
  });

  it('level beyond the greedy pass under balanced, and restore a lost balance; Flink does neither', () => {
    const start = {
      supervisors: [machine('m', 4), machine('n', 4)],
      topologies: [plain('t', 4, 4)],
      placement: new Map(),
    };
    const skewed = {
      ...start,
      placement: new Map([
        [
          't',
          [0, 1, 2, 3].map((port) => ({ supervisor: 'm', port, executors: [[port + 1, port + 1] as const] })),
        ],
      ]),
    };
    const onM = (own: typeof settings): number =>
      strategyNamed(
        'balanced',
        own,
      )(skewed)
        .placement.get('t')!
        .filter(({ supervisor }) => supervisor === 'm').length;
    expect(onM(settings)).toBe(2);
    expect(onM(compileSettings({ 'load-balance.improvement': false }))).toBe(4);
    expect(onM(compileSettings({ 'scheduling.compatibility': ['flink'] }))).toBe(4);
  });
});
