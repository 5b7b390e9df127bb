import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, ClusterTopology } from '../../cluster-snapshot.js';
import { computeExecutors } from '../../executors.js';
import { numberTasks } from '../../numbering.js';
import { validateAssignment } from '../../validate-assignment.js';
import { defaultStrategy } from '../default/default.js';
import type { SchedulingResult, Strategy } from '../strategy.js';
import { isolationStrategy } from './isolation.js';

const seed = 20_266;

function topologyOf(id: string, workers: number, executors: number): ClusterTopology {
  const counts = new Map([['c', executors]]);
  return { id, workers, executors: computeExecutors(numberTasks([...counts]), counts) };
}

function clusterOf(
  ports: readonly number[],
  topologies: readonly ClusterTopology[],
  placement: ClusterSnapshot['placement'] = new Map(),
): ClusterSnapshot {
  return {
    supervisors: ports.map((count, index) => ({
      id: `s${index}`,
      host: `h${index % 4}`,
      ports: Array.from({ length: count }, (_, port) => port),
    })),
    topologies,
    placement,
  };
}

function isolated(machines: Readonly<Record<string, number>>, clearsOthersOnFailure = false): Strategy {
  return isolationStrategy({
    fillLiveWorkers: true,
    clearsOthersOnFailure,
    machines: new Map(Object.entries(machines)),
  });
}

const anyCase = fc.tuple(
  fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 6 }),
  fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 1, max: 8 })), {
    minLength: 1,
    maxLength: 4,
  }),
  fc.dictionary(fc.constantFrom('t0', 't1', 't2'), fc.integer({ min: 1, max: 3 })),
);

function hostsOf(cluster: ClusterSnapshot, result: SchedulingResult, id: string): Set<string> {
  const host = new Map(cluster.supervisors.map((one) => [one.id, one.host]));
  return new Set((result.placement.get(id) ?? []).map(({ supervisor }) => host.get(supervisor) ?? ''));
}

describe('the strategy isolation', () => {
  it('shares no host of an isolated topology with anybody, round after round, and then changes nothing', () => {
    fc.assert(
      fc.property(anyCase, ([ports, specs, machines]) => {
        const topologies = specs.map(([workers, executors], index) =>
          topologyOf(`t${index}`, workers, executors),
        );
        const schedule = isolated(machines);
        const first = clusterOf(ports, topologies);
        const result = schedule(first);
        expect([...validateAssignment(first, result)]).toEqual([]);
        for (const { id } of topologies) {
          if (!(id in machines)) continue;
          for (const other of topologies) {
            if (other.id === id) continue;
            const shared = [...hostsOf(first, result, id)].filter((host) =>
              hostsOf(first, result, other.id).has(host),
            );
            expect(shared).toEqual([]);
          }
        }
        const again = schedule(clusterOf(ports, topologies, result.placement));
        const isShort = topologies.some(({ id }) => id in machines && result.unplaced.has(id));
        if (!isShort && result.unplaced.size === 0) expect(again.placement).toEqual(result.placement);
      }),
      { seed, numRuns: 500 },
    );
  });

  it('leaves the others in peace when an isolated topology does not get its hosts, unlike Storm', () => {
    const other = topologyOf('other', 1, 2);
    const placement = new Map([
      [
        'other',
        [
          {
            supervisor: 's0',
            port: 0,
            executors: [
              [1, 1],
              [2, 2],
            ] as const,
          },
        ],
      ],
    ]);
    const cluster = clusterOf([2, 2], [topologyOf('iso', 6, 6), other], placement);
    expect(isolated({ iso: 2 })(cluster).placement.get('other')).toEqual(placement.get('other'));
    expect(isolated({ iso: 2 }, true)(cluster).placement.has('other')).toBe(false);
  });
});

describe('an isolated topology on a supervisor that is away', () => {
  const one = topologyOf('t', 1, 3);
  const away = (executors: readonly (readonly [number, number])[]): ClusterSnapshot =>
    clusterOf([2], [one], new Map([['t', [{ supervisor: 'away', port: 1, executors }]]]));

  it('is placed as a whole on a host of its own where a part of it is missing', () => {
    const { placement, reservedHosts, failures } = isolated({ t: 1 })(away([[1, 1]]));
    expect([...failures]).toEqual([]);
    expect(placement.get('t')).toEqual([
      {
        supervisor: 's0',
        port: 0,
        executors: [
          [1, 1],
          [2, 2],
          [3, 3],
        ],
      },
    ]);
    expect(reservedHosts).toEqual(['h0']);
  });

  it('stays there where nothing is missing', () => {
    const whole = away([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    expect(isolated({ t: 1 })(whole).placement).toEqual(whole.placement);
  });
});

describe('the strategy default', () => {
  it('returns sound placements, and no topology is larger than it wants to be', () => {
    fc.assert(
      fc.property(
        anyCase,
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 6 }),
        ([ports, specs], later) => {
          const topologies = specs.map(([workers, executors], index) =>
            topologyOf(`t${index}`, workers, executors),
          );
          const schedule = defaultStrategy({ fillLiveWorkers: true });
          const first = clusterOf(ports, topologies);
          const result = schedule(first);
          expect([...validateAssignment(first, result)]).toEqual([]);
          const second = clusterOf(later, topologies, result.placement);
          const next = schedule(second);
          expect([...validateAssignment(second, next)]).toEqual([]);
          for (const { id, workers, executors } of topologies)
            expect((result.placement.get(id) ?? []).length).toBeLessThanOrEqual(
              Math.min(workers, executors.length),
            );
        },
      ),
      { seed, numRuns: 500 },
    );
  });
});
