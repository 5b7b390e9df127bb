import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, PlacedWorker } from '../../cluster-snapshot.js';
import { validateAssignment } from '../../validate-assignment.js';
import { evenStrategy } from './even.js';

const storm = evenStrategy({ fillLiveWorkers: false });
const isobar = evenStrategy({ fillLiveWorkers: true });

function cluster(machines: number, ports: number): ClusterSnapshot['supervisors'] {
  return Array.from({ length: machines }, (_, index) => ({
    id: `s${String(index).padStart(4, '0')}`,
    host: `h${index}`,
    ports: Array.from({ length: ports }, (_unused, port) => 6700 + port),
  }));
}

function topology(id: string, workers: number, executors: number): ClusterSnapshot['topologies'][number] {
  return {
    id,
    workers,
    executors: Array.from({ length: executors }, (_, index) => ({
      range: [index + 1, index + 1],
      component: 'c',
    })),
  };
}

/** Random clusters after some history: a first placement of which workers, executors and machines have vanished. */
const histories = fc
  .record({
    machines: fc.array(fc.nat(4), { maxLength: 8 }),
    topologies: fc.array(fc.tuple(fc.nat(8), fc.nat(30)), { maxLength: 5 }),
    kept: fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
    lostMachine: fc.nat(8),
    blacklisted: fc.nat(16),
  })
  .map(({ machines, topologies, kept, lostMachine, blacklisted }): ClusterSnapshot => {
    const supervisors = machines.map((ports, index) => ({
      id: `s${index}`,
      host: `h${index % 5}`,
      ports: Array.from({ length: ports }, (_, port) => port),
    }));
    const first: ClusterSnapshot = {
      supervisors,
      topologies: topologies.map(([workers, executors], index) => topology(`t${index}`, workers, executors)),
      placement: new Map(),
    };
    let turn = 0;
    const survives = (): boolean => kept[turn++ % kept.length]!;
    const placement = [...storm(first).placement].map(([id, workers]): [string, PlacedWorker[]] => [
      id,
      workers
        .map((worker) => ({ ...worker, executors: worker.executors.filter(survives) }))
        .filter(({ executors }) => executors.length > 0),
    ]);
    return {
      ...first,
      supervisors: supervisors.filter((_, index) => index !== lostMachine),
      placement: new Map(placement),
      blacklistedHosts: new Set([`h${blacklisted}`]),
    };
  });

describe('even', () => {
  it('spreads a fresh topology to within one executor per worker and one worker per equal machine', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 4 }),
        fc.nat(60),
        fc.nat(90),
        (m, p, w, e) => {
          const { placement } = isobar({
            supervisors: cluster(m, p),
            topologies: [topology('t', w, e)],
            placement: new Map(),
          });
          const workers = placement.get('t') ?? [];
          expect(workers.length).toBe(Math.min(w, e, m * p));
          if (workers.length === 0) return;
          const loads = workers.map(({ executors }) => executors.length);
          expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
          const perMachine = cluster(m, p).map(
            ({ id }) => workers.filter(({ supervisor }) => supervisor === id).length,
          );
          expect(Math.max(...perMachine) - Math.min(...perMachine)).toBeLessThanOrEqual(1);
        },
      ),
      { seed: 1 },
    );
  });

  it.each([
    ['as Storm', storm],
    ["with Isobar's additions", isobar],
  ])('is sound, loses nothing and leaves live workers where they are, %s', (_, strategy) => {
    fc.assert(
      fc.property(histories, (snapshot) => {
        const result = strategy(snapshot);
        expect([...validateAssignment(snapshot, result)]).toEqual([]);
        expect(result.failures.size).toBe(0);
        for (const [id, workers] of snapshot.placement) {
          for (const before of workers) {
            const after = result.placement
              .get(id)
              ?.find(({ supervisor, port }) => supervisor === before.supervisor && port === before.port);
            expect(after?.executors).toEqual(expect.arrayContaining([...before.executors]));
            if (strategy === storm) expect(after?.executors).toEqual(before.executors);
          }
        }
      }),
      { seed: 2, numRuns: 300 },
    );
  });

  it('gives the same result for the same snapshot in any order', () => {
    fc.assert(
      fc.property(histories, (snapshot) => {
        const turned: ClusterSnapshot = {
          ...snapshot,
          supervisors: [...snapshot.supervisors]
            .reverse()
            .map((one) => ({ ...one, ports: [...one.ports].reverse() })),
          topologies: [...snapshot.topologies]
            .reverse()
            .map((one) => ({ ...one, executors: [...one.executors].reverse() })),
          placement: new Map([...snapshot.placement].reverse()),
        };
        const text = (of: ClusterSnapshot): string => {
          const { placement, unplaced } = isobar(of);
          return JSON.stringify([[...placement], [...unplaced].sort()]);
        };
        expect(text(turned)).toBe(text(snapshot));
      }),
      { seed: 3 },
    );
  });

  it('leaves executors unplaced only where no worker of their topology may take them', () => {
    fc.assert(
      fc.property(histories, (snapshot) => {
        const { placement, unplaced } = isobar(snapshot);
        for (const [id, { executors, reason }] of unplaced) {
          expect(executors.length).toBeGreaterThan(0);
          expect(reason).not.toBe('');
          const usable = (placement.get(id) ?? []).filter(({ supervisor, port }) =>
            snapshot.supervisors.some(
              (one) =>
                one.id === supervisor &&
                one.ports.includes(port) &&
                !snapshot.blacklistedHosts!.has(one.host),
            ),
          );
          expect(usable).toEqual([]);
        }
      }),
      { seed: 4 },
    );
  });

  it('lets executors join the least loaded live worker where Storm leaves them without a slot', () => {
    const snapshot: ClusterSnapshot = {
      supervisors: cluster(1, 3),
      topologies: [topology('t', 2, 5)],
      placement: new Map([
        [
          't',
          [
            {
              supervisor: 's0000',
              port: 6700,
              executors: [
                [1, 1],
                [3, 3],
              ],
            },
            { supervisor: 's0000', port: 6701, executors: [[2, 2]] },
          ],
        ],
      ]),
    };
    expect(
      storm(snapshot)
        .unplaced.get('t')
        ?.executors.map(({ range }) => range[0]),
    ).toEqual([4, 5]);
    expect(isobar(snapshot).placement.get('t')).toEqual([
      {
        supervisor: 's0000',
        port: 6700,
        executors: [
          [1, 1],
          [3, 3],
          [5, 5],
        ],
      },
      {
        supervisor: 's0000',
        port: 6701,
        executors: [
          [2, 2],
          [4, 4],
        ],
      },
    ]);
  });

  it('says what a topology without slots needs', () => {
    const snapshot = { supervisors: [], topologies: [topology('t', 3, 5)], placement: new Map() };
    expect(isobar(snapshot).unplaced.get('t')?.reason).toMatch(/^needs 3 slots; 0 are free\. /);
  });

  it('opens nothing where more workers live than are wanted', () => {
    const workers: PlacedWorker[] = [1, 2, 3].map((task) => ({
      supervisor: 's0000',
      port: 6699 + task,
      executors: [[task, task]],
    }));
    const snapshot = {
      supervisors: cluster(2, 4),
      topologies: [topology('t', 2, 4)],
      placement: new Map([['t', workers]]),
    };
    expect(storm(snapshot).placement.get('t')).toEqual(workers);
  });

  it('does work that grows with the executors, not with their square', () => {
    const stepsOf = (executors: number, machines: number): number => {
      const topologies = Array.from({ length: Math.ceil(executors / 1000) }, (_, index) =>
        topology(`t${String(index).padStart(3, '0')}`, 50, Math.min(1000, executors)),
      );
      const { steps, unplaced } = isobar({
        supervisors: cluster(machines, 10),
        topologies,
        placement: new Map(),
      });
      expect(unplaced.size).toBe(0);
      return steps;
    };
    for (const executors of [1, 10, 100, 1000, 10_000, 60_000]) {
      // One step per executor and slot, and a logarithm of the machines per slot and machine.
      const machines = Math.max(10, Math.ceil(executors / 30));
      const slots = 50 * Math.ceil(executors / 1000);
      const bound = 2 * executors + (6 * slots + 2 * machines) * (Math.log2(machines) + 2);
      expect(stepsOf(executors, machines)).toBeLessThanOrEqual(bound);
    }
  });
});
