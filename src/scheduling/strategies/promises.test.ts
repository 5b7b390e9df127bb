/** What the improvements over Storm and Flink promise, as invariants over generated clusters: each holds for every strategy named with it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../base/index.js';
import type { ClusterSnapshot, ClusterTopology, Placement } from '../cluster-snapshot.js';
import { slotsWanted } from './balanced/slot-groups.js';
import { strategyNamed } from './strategies.js';

const settings = compileSettings();
const SLOTS = 3;

interface Drawn {
  readonly machines: number;
  readonly sizes: readonly (readonly [workers: number, executors: number])[];
}

const clusters = fc.record({
  machines: fc.integer({ min: 1, max: 6 }),
  sizes: fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 9 })), {
    minLength: 1,
    maxLength: 5,
  }),
});

function snapshotOf({ machines, sizes }: Drawn): ClusterSnapshot {
  return {
    supervisors: Array.from({ length: machines }, (_, index) => ({
      id: `s${index}`,
      host: `h${index}`,
      ports: Array.from({ length: SLOTS }, (_port, port) => port),
      resources: { cpuPercent: 400, memoryMb: 4096 },
    })),
    topologies: sizes.map(
      ([workers, executors], index): ClusterTopology => ({
        id: `t${index}`,
        owner: 'ann',
        workers,
        executors: Array.from({ length: executors }, (_, task) => ({
          range: [task + 1, task + 1],
          component: 'c',
        })),
        components: [{ id: 'c', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 64, offHeapMb: 0 } }],
      }),
    ),
    placement: new Map(),
  };
}

/** Where each executor is. */
function placesOf(placement: Placement): ReadonlyMap<string, string> {
  return new Map(
    [...placement].flatMap(([id, workers]) =>
      workers.flatMap(({ supervisor, port, executors }) =>
        executors.map(([first]) => [`${id}/${first}`, `${supervisor}:${port}`] as const),
      ),
    ),
  );
}

function withoutMachine(snapshot: ClusterSnapshot, lost: string): ClusterSnapshot {
  return {
    ...snapshot,
    supervisors: snapshot.supervisors.filter(({ id }) => id !== lost),
    placement: new Map(
      [...snapshot.placement].map(([id, workers]) => [
        id,
        workers.filter(({ supervisor }) => supervisor !== lost),
      ]),
    ),
  };
}

const workersOf = (placement: Placement, id: string): number => placement.get(id)?.length ?? 0;

describe('what improvements promise', () => {
  it.each(['balanced', 'even', 'default'])(
    'under %s nobody has two workers more than another one that wants more',
    (name) => {
      fc.assert(
        fc.property(clusters, (drawn) => {
          const snapshot = snapshotOf(drawn);
          const { placement } = strategyNamed(name, settings)(snapshot);
          const counts = snapshot.topologies.map((topology) => ({
            has: workersOf(placement, topology.id),
            wants: slotsWanted(topology),
          }));
          for (const poor of counts) {
            if (poor.has >= poor.wants) continue;
            for (const rich of counts) expect(rich.has).toBeLessThanOrEqual(poor.has + 1);
          }
        }),
        { seed: 51, numRuns: 200 },
      );
    },
  );

  it.each(['balanced', 'even', 'default', 'isolation', 'multitenant'])(
    'under %s no executor lacks a slot while its topology has a worker',
    (name) => {
      fc.assert(
        fc.property(clusters, fc.nat(5), (drawn, lost) => {
          const strategy = strategyNamed(name, settings);
          const start = snapshotOf(drawn);
          const later = withoutMachine({ ...start, placement: strategy(start).placement }, `s${lost}`);
          const { placement, unplaced } = strategy(later);
          for (const id of unplaced.keys()) expect(workersOf(placement, id)).toBe(0);
        }),
        { seed: 52, numRuns: 200 },
      );
    },
  );

  it.each(['even', 'default', 'multitenant', 'resource-aware'])(
    'under %s only what was on a lost machine moves',
    (name) => {
      fc.assert(
        fc.property(clusters, fc.nat(5), (drawn, lost) => {
          const strategy = strategyNamed(name, settings);
          const start = snapshotOf(drawn);
          const later = withoutMachine({ ...start, placement: strategy(start).placement }, `s${lost}`);
          const now = placesOf(strategy(later).placement);
          for (const [executor, place] of placesOf(later.placement)) expect(now.get(executor)).toBe(place);
        }),
        { seed: 53, numRuns: 200 },
      );
    },
  );

  it('under balanced a machine that joins gets its share by at most so many moves as that has workers', () => {
    fc.assert(
      fc.property(clusters, ({ machines, sizes }) => {
        // Workers that weigh the same: what a share is can be counted.
        const drawn = { machines, sizes: sizes.map(([workers]) => [workers, workers] as const) };
        const strategy = strategyNamed('balanced', settings);
        const start = snapshotOf(drawn);
        const { placement, unplaced } = strategy(start);
        // Where slots are short, the new ones are taken by who lacks some.
        fc.pre(unplaced.size === 0);
        fc.pre(start.topologies.every((one) => workersOf(placement, one.id) >= slotsWanted(one)));
        const joined = snapshotOf({ ...drawn, machines: drawn.machines + 1 });
        const after = strategy({ ...joined, placement }).placement;
        const now = placesOf(after);
        const moved = new Set(
          [...placesOf(placement)]
            .filter(([executor, place]) => now.get(executor) !== place)
            .map(([, place]) => place),
        );
        const workers = [...placement.values()].flat().length;
        expect(moved.size).toBeLessThanOrEqual(Math.min(SLOTS, Math.ceil(workers / (drawn.machines + 1))));
        const onNew = [...after.values()]
          .flat()
          .filter(({ supervisor }) => supervisor === `s${drawn.machines}`);
        if (workers > drawn.machines) expect(onNew.length).toBeGreaterThan(0);
      }),
      { seed: 54, numRuns: 200 },
    );
  });

  it.each(['balanced', 'even', 'default', 'isolation', 'multitenant', 'resource-aware'])(
    'under %s a round after a few others changes nothing, whatever was lost',
    (name) => {
      fc.assert(
        fc.property(clusters, fc.nat(5), (drawn, lost) => {
          const strategy = strategyNamed(name, settings);
          const start = snapshotOf(drawn);
          let later = withoutMachine({ ...start, placement: strategy(start).placement }, `s${lost}`);
          for (let round = 0; round < 6; round++) later = { ...later, placement: strategy(later).placement };
          expect([...strategy(later).placement]).toEqual([...later.placement]);
        }),
        { seed: 55, numRuns: 100 },
      );
    },
  );
});
