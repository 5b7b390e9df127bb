import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, ClusterTopology } from '../../cluster-snapshot.js';
import { rememberingLast } from './known-question.js';

const topology: ClusterTopology = {
  id: 't',
  workers: 2,
  executors: [1, 2].map((task) => ({ range: [task, task], component: 'a' })),
  components: [],
  balance: { mode: 'tasks', load: 'measured' },
  measured: { byTask: new Map([[1, 0.5]]), typical: 0.5 },
};
const snapshot: ClusterSnapshot = {
  supervisors: [{ id: 's', host: 'h', rack: 'r', ports: [1, 2], otherLoad: 3 }],
  topologies: [topology],
  placement: new Map([['t', [{ supervisor: 's', port: 1, executors: [[1, 1]] }]]]),
  blacklistedHosts: new Set(['b']),
};
const [supervisor] = snapshot.supervisors;

/** How often the strategy itself is asked. */
function asked(...snapshots: readonly ClusterSnapshot[]): number {
  let count = 0;
  const strategy = rememberingLast(({ placement }) => {
    count++;
    return { placement, unplaced: new Map(), failures: new Map(), steps: 0 };
  });
  for (const one of snapshots) expect(strategy(one).placement).toEqual(one.placement);
  return count;
}

describe('a question that was asked before', () => {
  it('is not thought about again, though its objects are made anew and its topologies are older', () => {
    const again: ClusterSnapshot = {
      ...snapshot,
      supervisors: snapshot.supervisors.map((one) => ({
        ...one,
        ports: [...one.ports],
        resources: { cpuPercent: 1, memoryMb: 1 },
      })),
      topologies: [
        {
          ...topology,
          uptimeMs: 5,
          rules: { strategy: 'default' },
          balance: { ...topology.balance },
          measured: { byTask: new Map([[1, 0.5]]), typical: 0.5 },
        },
      ],
      placement: new Map(snapshot.placement),
      blacklistedHosts: new Set(['b']),
    };
    expect(asked(snapshot, again, snapshot)).toBe(1);
  });

  it.each<readonly [string, Partial<ClusterSnapshot>]>([
    ['a machine more', { supervisors: [supervisor!, { ...supervisor!, id: 's2' }] }],
    ['another host', { supervisors: [{ ...supervisor!, host: 'h2' }] }],
    ['another rack', { supervisors: [{ ...supervisor!, rack: 'r2' }] }],
    ['slots that are about to be free', { supervisors: [{ ...supervisor!, soonFree: 1 }] }],
    ['slots that are spoken for', { spokenFor: 1 }],
    ['other ports', { supervisors: [{ ...supervisor!, ports: [1, 3] }] }],
    ['another load of others', { supervisors: [{ ...supervisor!, otherLoad: 4 }] }],
    ['no topology', { topologies: [] }],
    ['other workers', { topologies: [{ ...topology, workers: 3 }] }],
    [
      'other executors',
      { topologies: [{ ...topology, executors: topology.executors.map((one) => ({ ...one })) }] },
    ],
    [
      'other components',
      {
        topologies: [
          {
            ...topology,
            components: [{ id: 'a', kind: 'spout', resources: { cpuPercent: 1, onHeapMb: 1, offHeapMb: 1 } }],
          },
        ],
      },
    ],
    ['another mode', { topologies: [{ ...topology, balance: { ...topology.balance, mode: 'slots' } }] }],
    ['another load', { topologies: [{ ...topology, balance: { ...topology.balance, load: 'tasks' } }] }],
    [
      'other sharing',
      { topologies: [{ ...topology, balance: { ...topology.balance, sharing: 'task-balanced' } }] },
    ],
    [
      'another measured load',
      { topologies: [{ ...topology, measured: { byTask: new Map([[1, 0.6]]), typical: 0.5 } }] },
    ],
    [
      'another typical load',
      { topologies: [{ ...topology, measured: { byTask: new Map([[1, 0.5]]), typical: 0.6 } }] },
    ],
    ['another placement', { placement: new Map([['t', []]]) }],
    ['nothing placed', { placement: new Map() }],
    ['another blacklist', { blacklistedHosts: new Set(['c']) }],
    ['a part to place', { scheduleOnly: new Set(['t']) }],
  ])('is another one with %s', (_, change) => {
    expect(asked(snapshot, { ...snapshot, ...change })).toBe(2);
  });
});
