import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterTopology } from '../cluster-snapshot.js';
import type { LoadSource } from '../resources.js';
import { executorLoads, typicalLoad } from './executor-loads.js';

const NOTHING = { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 };

/** Two executors of `a` with tasks 1–2 and 3, one of `b` with task 4, an acker with task 5. */
function topologyOf(load: LoadSource, measured?: ClusterTopology['measured']): ClusterTopology {
  return {
    id: 't',
    workers: 1,
    executors: [
      { range: [1, 2], component: 'a' },
      { range: [3, 3], component: 'a' },
      { range: [4, 4], component: 'b' },
      { range: [5, 5], component: '__acker' },
    ],
    components: [
      { id: 'a', kind: 'spout', resources: { ...NOTHING, cpuPercent: 30 } },
      { id: 'b', kind: 'bolt', resources: { ...NOTHING, cpuPercent: 80 }, load: 4 },
      { id: '__acker', kind: 'system', resources: { ...NOTHING, cpuPercent: 10 } },
    ],
    balance: { load },
    ...(measured === undefined ? {} : { measured }),
  };
}

const loads = (topology: ClusterTopology): number[] => [1, 3, 4, 5].map(executorLoads(topology));

describe('the load of an executor', () => {
  it.each([
    ['executors', [1, 1, 1, 0]],
    ['tasks', [2, 1, 1, 0]],
    ['declared', [1, 1, 4, 0]],
    ['resources', [30, 30, 80, 0]],
    ['measured', [1, 1, 4, 0]],
  ] as const)('comes from %s', (source, expected) => {
    expect(loads(topologyOf(source))).toEqual(expected);
  });

  it('is what was measured, else what its component, its topology or the cluster measures', () => {
    const typical = 0.5;
    const of = (byTask: readonly (readonly [number, number])[]): number[] =>
      loads(topologyOf('measured', { byTask: new Map(byTask), typical }));
    expect(of([])).toEqual([0.5, 0.5, 2, 0]);
    expect(of([[1, 0.8]])).toEqual([0.8, 0.8, 3.2, 0]);
    expect(
      of([
        [1, 0.8],
        [3, 0.2],
        [4, 0.4],
      ]),
    ).toEqual([0.8, 0.2, 0.4, 0]);
    const cluster = [topologyOf('measured')].map((one) => ({ ...one, byTask: new Map([[4, 0.6]]) }));
    expect(typicalLoad(cluster)).toBeCloseTo(0.15);
    expect(typicalLoad([])).toBe(1);
  });

  it('of one that is cut otherwise than planned is that of the executor with its first task', () => {
    expect(executorLoads(topologyOf('tasks'))(2)).toBe(2);
    expect(executorLoads(topologyOf('tasks'))(6)).toBe(0);
  });

  it('is a number from 0 for every source and whatever was measured', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<LoadSource>('executors', 'tasks', 'declared', 'resources', 'measured'),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.double({ min: 0, max: 1, noNaN: true }))),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (source, measured, typical) => {
          for (const load of loads(topologyOf(source, { byTask: new Map(measured), typical }))) {
            expect(Number.isFinite(load)).toBe(true);
            expect(load).toBeGreaterThanOrEqual(0);
          }
        },
      ),
      { seed: 20_267, numRuns: 300 },
    );
  });
});
