import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../base/index.js';
import type { ClusterSnapshot, ClusterTopology, PlacedWorker } from '../cluster-snapshot.js';
import { validateAssignment } from '../validate-assignment.js';
import { checkChosenStrategy, inParts, installedStrategies } from './installed-strategies.js';
import { STRATEGY_NAMES, strategyNamed } from './strategies.js';
import type { Strategy } from './strategy.js';

const settings = compileSettings();
const modules = (...entries: readonly string[]): ReadonlyMap<string, string> =>
  installedStrategies(compileSettings({ 'scheduling.strategy-modules': entries }));

describe('installed strategies', () => {
  it('are modules by name', () => {
    expect([...modules('mine=/opt/a=b.mjs', 'other-2=/x.mjs')]).toEqual([
      ['mine', '/opt/a=b.mjs'],
      ['other-2', '/x.mjs'],
    ]);
  });

  it('are refused for names and paths that cannot be, all faults at once', () => {
    expect(() =>
      modules('Mine=/a.mjs', 'mine=a.mjs', 'even=/a.mjs', 'round-robin=/a.mjs', 'x=/a', 'x=/b', '/a'),
    ).toThrow(
      expect.objectContaining({
        code: 'SETTINGS_INVALID',
        details: { faults: expect.objectContaining({ length: 6 }) as object },
      }),
    );
  });

  it('may be the strategy of the cluster; another name is refused', () => {
    const mine = { 'scheduling.strategy-modules': ['mine=/a.mjs'], 'scheduling.strategy': 'mine' };
    expect(compileSettings(mine)['scheduling.strategy']).toBe('mine');
    expect(() => compileSettings({ ...mine, 'scheduling.strategy': 'yours' })).toThrow(
      /resource-aware, mine, found "yours"/,
    );
  });

  it('are what topologies may choose, besides the ways of resource-aware', () => {
    expect(() => checkChosenStrategy('mine', modules('mine=/a.mjs'))).not.toThrow();
    expect(() => checkChosenStrategy('round-robin', modules())).not.toThrow();
    expect(() => checkChosenStrategy('mien', modules('mine=/a.mjs'))).toThrow(/did you mean "mine"\?/);
  });
});

const topology = (id: string, executors: number, workers: number, strategy?: string): ClusterTopology => ({
  id,
  workers,
  executors: Array.from({ length: executors }, (_, index) => ({
    range: [index + 1, index + 1],
    component: 'a',
  })),
  components: [{ id: 'a', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 64, offHeapMb: 0 } }],
  ...(strategy === undefined ? {} : { rules: { strategy } }),
});

const clusters = fc
  .record({
    ports: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 }),
    topologies: fc.array(
      fc.tuple(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 4 }),
        fc.constantFrom(undefined, 'wrong', 'good'),
      ),
      { minLength: 1, maxLength: 5 },
    ),
  })
  .map(
    ({ ports, topologies }): ClusterSnapshot => ({
      supervisors: ports.map((count, index) => ({
        id: `s${index}`,
        host: `h${index}`,
        ports: Array.from({ length: count }, (_, port) => port),
        // For all of them: capacities are the matter of a test of their own.
        resources: { cpuPercent: 300, memoryMb: 2048 },
      })),
      topologies: topologies.map(([executors, workers, strategy], index) =>
        topology(`t${index}`, executors, workers, strategy),
      ),
      placement: new Map(),
    }),
  );

const INSTALLED = modules('wrong=/a.mjs', 'good=/b.mjs');
const even = strategyNamed('even', settings);

/** Claims every slot of the cluster for each of its topologies, whoever holds it. */
const thief =
  (whole: ClusterSnapshot): Strategy =>
  ({ topologies }) => {
    const slots = whole.supervisors.flatMap(({ id, ports }) =>
      ports.map((port) => ({ supervisor: id, port })),
    );
    const all = ({ executors }: ClusterTopology): PlacedWorker[] =>
      slots.map((slot, index) => ({
        ...slot,
        executors: index === 0 ? executors.map(({ range }) => range) : [],
      }));
    return {
      placement: new Map(topologies.map((one) => [one.id, all(one)])),
      unplaced: new Map(),
      failures: new Map(),
      steps: 0,
    };
  };

/** Puts all executors of all its topologies on the first machine with enough slots, whatever that offers, and says that it heeds it. */
const greedy =
  (keepsCapacity: boolean): Strategy =>
  ({ supervisors, topologies }) => {
    const first = supervisors.find(({ ports }) => ports.length >= topologies.length);
    const placed = topologies.map(({ id, executors }, index): [string, PlacedWorker[]] => [
      id,
      first === undefined
        ? []
        : [
            {
              supervisor: first.id,
              port: first.ports[index]!,
              executors: executors.map(({ range }) => range),
            },
          ],
    ]);
    const unplaced = topologies.map(
      ({ id, executors }) => [id, { executors, reason: 'has no slot' }] as const,
    );
    return {
      placement: new Map(placed),
      unplaced: new Map(first === undefined ? unplaced : []),
      failures: new Map(),
      keepsCapacity,
      steps: 0,
    };
  };

const broken: Strategy = () => {
  throw new Error('broken');
};

describe.each(STRATEGY_NAMES)('%s beside installed strategies', (own) => {
  const ask =
    (wrong: Strategy): ((name: string) => Strategy) =>
    (name) =>
      name === 'wrong' ? wrong : name === 'good' ? even : strategyNamed(name, settings);

  it('shares the cluster: every topology is decided by its own, and the whole is sound and settles', () => {
    fc.assert(
      fc.property(clusters, (snapshot) => {
        const strategy = inParts(own, INSTALLED, ask(even));
        const first = strategy(snapshot);
        expect([...first.failures]).toEqual([]);
        expect([...validateAssignment(snapshot, first)]).toEqual([]);
        const later = { ...snapshot, placement: first.placement };
        const second = strategy(later);
        expect([...validateAssignment(later, second)]).toEqual([]);
        for (const { id, rules } of snapshot.topologies) {
          if (rules?.strategy !== undefined)
            expect(second.placement.get(id)).toEqual(first.placement.get(id));
        }
      }),
      { seed: 11, numRuns: 60 },
    );
  });

  it.each([
    ['throws', () => broken],
    ['claims what others have', thief],
  ] as const)('is not touched by one that %s: its own are placed as without it', (_, wrong) => {
    fc.assert(
      fc.property(clusters, (snapshot) => {
        const result = inParts(own, INSTALLED, ask(wrong(snapshot)))(snapshot);
        const faulty = [...validateAssignment(snapshot, result).keys()];
        expect(faulty.filter((id) => !result.failures.has(id))).toEqual([]);
        const isWrong = ({ rules }: ClusterTopology): boolean => rules?.strategy === 'wrong';
        const others = snapshot.topologies.filter((one) => !isWrong(one));
        const without = inParts(own, INSTALLED, ask(broken))({ ...snapshot, topologies: others });
        for (const { id } of others) expect(result.placement.get(id)).toEqual(without.placement.get(id));
        for (const { id } of others) expect(result.failures.has(id)).toBe(false);
        if (wrong === thief) return;
        expect([...result.failures.keys()]).toEqual(snapshot.topologies.filter(isWrong).map(({ id }) => id));
      }),
      { seed: 12, numRuns: 60 },
    );
  });
});

describe('an installed strategy that overfills machines', () => {
  const machine = { ports: [1, 2], resources: { cpuPercent: 100, memoryMb: 256 } };
  const snapshot: ClusterSnapshot = {
    supervisors: ['a', 'b'].map((id) => ({ ...machine, id, host: id })),
    // Of 64 MB each: the first machine has room for 4.
    topologies: [topology('big', 5, 1, 'wrong'), topology('other', 2, 1)],
    placement: new Map(),
  };
  const ask =
    (own: Strategy): ((name: string) => Strategy) =>
    (name) =>
      name === 'wrong' ? own : strategyNamed(name, settings);

  it.each([
    ['promises to keep to capacities', 'balanced', greedy(true)],
    ['is beside resource-aware, whose topologies count on what is left', 'resource-aware', greedy(false)],
  ] as const)('is refused where it %s, and the others are placed', (_, own, strategy) => {
    const { placement, failures } = inParts(own, INSTALLED, ask(strategy))(snapshot);
    expect([...failures.keys()]).toEqual(['big']);
    expect(String(failures.get('big'))).toMatch(/supervisor a offers \d+ MB, of which 320 are used/);
    expect(placement.has('big')).toBe(false);
    expect(placement.get('other')?.flatMap(({ executors }) => executors)).toHaveLength(2);
  });

  it('is not refused where nobody has promised anything', () => {
    const { placement, failures } = inParts('balanced', INSTALLED, ask(greedy(false)))(snapshot);
    expect([...failures]).toEqual([]);
    expect(placement.get('big')).toHaveLength(1);
  });
});
