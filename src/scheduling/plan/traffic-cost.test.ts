import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, PlacedWorker } from '../cluster-snapshot.js';
import { trafficCost } from './traffic-cost.js';

const GROUPINGS = ['shuffle', 'local-or-shuffle', 'all', 'global', 'fields'] as const;
type Grouping = (typeof GROUPINGS)[number];

/** Senders are tasks 1 … a, receivers a + 1 … a + b; worker w of a task is on machine w mod 3, in rack w mod 2. */
function snapshotOf(a: number, b: number, grouping: Grouping, workerOf: readonly number[]): ClusterSnapshot {
  const workers = new Map<number, [number, number][]>();
  for (let task = 1; task <= a + b; task++) {
    const worker = workerOf[task % workerOf.length]!;
    workers.set(worker, [...(workers.get(worker) ?? []), [task, task]]);
  }
  return {
    supervisors: [0, 1, 2].map((id) => ({ id: `m${id}`, host: `m${id}`, ports: [], rack: `r${id % 2}` })),
    topologies: [
      {
        id: 't',
        workers: 1,
        executors: Array.from({ length: a + b }, (_, index) => ({
          range: [index + 1, index + 1] as const,
          component: index < a ? 'A' : 'B',
        })),
        components: [
          { id: 'A', kind: 'spout', resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 } },
          {
            id: 'B',
            kind: 'bolt',
            resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
            inputs: [{ from: 'A', grouping }],
          },
        ],
      },
    ],
    placement: new Map([
      [
        't',
        [...workers].map(
          ([worker, executors]): PlacedWorker => ({ supervisor: `m${worker % 3}`, port: worker, executors }),
        ),
      ],
    ]),
  };
}

/** The formula, pair by pair. */
function byDefinition({ placement }: ClusterSnapshot, a: number, b: number, grouping: Grouping) {
  const at = new Map<number, PlacedWorker>();
  for (const worker of placement.get('t')!) for (const [task] of worker.executors) at.set(task, worker);
  let [cost, rows] = [0, 0];
  for (let sender = 1; sender <= a; sender++) {
    const from = at.get(sender)!;
    const local = Array.from({ length: b }, (_, index) => a + 1 + index).filter(
      (task) => at.get(task)!.port === from.port,
    ).length;
    for (let receiver = a + 1; receiver <= a + b; receiver++) {
      const to = at.get(receiver)!;
      const isLocal = to.port === from.port;
      const rack = (one: PlacedWorker): number => Number(one.supervisor.slice(1)) % 2;
      const distance = isLocal ? 0 : to.supervisor === from.supervisor ? 1 : rack(to) === rack(from) ? 2 : 3;
      let share = 1 / b;
      if (grouping === 'all') share = 1;
      if (grouping === 'global') share = receiver === a + 1 ? 1 : 0;
      if (grouping === 'local-or-shuffle' && local > 0) share = isLocal ? 1 / local : 0;
      cost += share * distance;
      rows += share;
    }
  }
  return { cost, rows };
}

describe('trafficCost', () => {
  it('is the sum over pairs of executors that its formula says', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 6 }),
        fc.constantFrom(...GROUPINGS),
        fc.array(fc.nat(7), { minLength: 1, maxLength: 8 }),
        (a, b, grouping, workerOf) => {
          const snapshot = snapshotOf(a, b, grouping, workerOf);
          const expected = byDefinition(snapshot, a, b, grouping);
          const { cost, rows } = trafficCost(snapshot);
          expect(cost).toBeCloseTo(expected.cost, 9);
          expect(rows).toBeCloseTo(expected.rows, 9);
        },
      ),
      { seed: 713, numRuns: 300 },
    );
  });
});
