import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasCode } from '../base/index.js';
import { WorkingCluster } from './cluster.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import { sortSlots } from './strategies/even/sort-slots.js';

const snapshot: ClusterSnapshot = {
  supervisors: [
    { id: 'b', host: 'hb', ports: [2, 1] },
    { id: 'a', host: 'ha', ports: [1, 2, 3] },
  ],
  topologies: [
    {
      id: 't',
      workers: 2,
      executors: [
        { range: [3, 4], component: 'y' },
        { range: [1, 1], component: 'x' },
      ],
    },
    { id: 'u', workers: 1, executors: [{ range: [1, 1], component: 'x' }] },
  ],
  placement: new Map([['t', [{ supervisor: 'a', port: 1, executors: [[1, 1]] }]]]),
};

function codeOf(run: () => void): string {
  try {
    run();
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
  return 'nothing was thrown';
}

describe('the working cluster', () => {
  it('answers what is used, free and missing', () => {
    const cluster = new WorkingCluster(snapshot);
    expect(cluster.usedPorts('a')).toEqual([1]);
    expect(cluster.availablePorts('a')).toEqual([2, 3]);
    expect(cluster.availablePorts('b')).toEqual([1, 2]);
    expect(cluster.freeSlotCount).toBe(4);
    expect(cluster.unassignedExecutors('t')).toEqual([{ range: [3, 4], component: 'y' }]);
    expect(cluster.needsScheduling('t')).toBe(true);
    expect(cluster.assignedWorkers('u')).toBe(0);
  });

  it('refuses a slot that is held, an executor that has a slot, and an unknown topology', () => {
    const cluster = new WorkingCluster(snapshot);
    expect(codeOf(() => cluster.assign({ supervisor: 'a', port: 1 }, 'u', [[1, 1]]))).toBe('SLOT_OCCUPIED');
    expect(codeOf(() => cluster.assign({ supervisor: 'a', port: 2 }, 't', [[1, 1]]))).toBe(
      'EXECUTOR_ALREADY_ASSIGNED',
    );
    expect(codeOf(() => cluster.assign({ supervisor: 'a', port: 2 }, 'v', [[1, 1]]))).toBe(
      'TOPOLOGY_NOT_ALIVE',
    );
    expect(codeOf(() => cluster.extend({ supervisor: 'a', port: 1 }, 'u', [[1, 1]]))).toBe('SLOT_OCCUPIED');
    expect(codeOf(() => cluster.extend({ supervisor: 'a', port: 1 }, 't', [[1, 1]]))).toBe(
      'EXECUTOR_ALREADY_ASSIGNED',
    );
  });

  it('counts slots on a vanished supervisor as used, and frees them without offering them', () => {
    const cluster = new WorkingCluster({
      ...snapshot,
      placement: new Map([['t', [{ supervisor: 'gone', port: 9, executors: [[1, 1]] }]]]),
    });
    expect(cluster.usedPorts('gone')).toEqual([9]);
    expect(cluster.assignedWorkers('t')).toBe(1);
    cluster.freeSlot({ supervisor: 'gone', port: 9 });
    expect(cluster.usedPorts('gone')).toEqual([]);
    expect(cluster.freeSlotCount).toBe(5);
    cluster.freeSlot({ supervisor: 'never', port: 1 });
  });

  it('leaves out what conflicts when a placement is loaded', () => {
    const cluster = new WorkingCluster({
      ...snapshot,
      placement: new Map([
        ['u', [{ supervisor: 'a', port: 1, executors: [[1, 1]] }]],
        [
          't',
          [
            { supervisor: 'a', port: 1, executors: [[1, 1]] },
            { supervisor: 'b', port: 1, executors: [[1, 1]] },
          ],
        ],
        ['unknown', [{ supervisor: 'b', port: 2, executors: [[1, 1]] }]],
      ]),
    });
    expect(cluster.workersOf('t')).toEqual([{ supervisor: 'a', port: 1, executors: [[1, 1]] }]);
    expect(cluster.workersOf('u')).toEqual([]);
    expect(cluster.usedPorts('b')).toEqual([]);
  });

  it('offers nothing on a blacklisted host', () => {
    const cluster = new WorkingCluster({ ...snapshot, blacklistedHosts: new Set(['ha']) });
    expect(cluster.availablePorts('a')).toEqual([]);
    expect(cluster.isBlacklisted('a')).toBe(true);
    expect(cluster.isBlacklisted('never')).toBe(false);
    cluster.freeSlot({ supervisor: 'a', port: 1 });
    expect(cluster.freeSlotCount).toBe(2);
  });

  it('gives the first free slots in the order that sorting all of them gives, after any assigns and frees', () => {
    const action = fc.record({ machine: fc.nat(5), port: fc.nat(4), free: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(fc.nat(5), { minLength: 1, maxLength: 6 }),
        fc.array(action),
        fc.nat(12),
        (machines, actions, count) => {
          const cluster = new WorkingCluster({
            supervisors: machines.map((ports, index) => ({
              id: `s${index}`,
              host: `h${index}`,
              ports: Array.from({ length: ports }, (_, port) => port),
            })),
            topologies: [{ id: 't', workers: 1, executors: [] }],
            placement: new Map(),
          });
          let task = 1;
          for (const { machine, port, free } of actions) {
            const slot = { supervisor: `s${machine}`, port };
            cluster.firstFreeSlots(2);
            if (free) cluster.freeSlot(slot);
            else if (!cluster.usedPorts(slot.supervisor).includes(port))
              cluster.assign(slot, 't', [[task, task++]]);
          }
          const all = cluster
            .supervisorIds()
            .flatMap((supervisor) =>
              cluster.availablePorts(supervisor).map((port) => ({ supervisor, port })),
            );
          expect(cluster.freeSlotCount).toBe(all.length);
          expect(cluster.firstFreeSlots(count)).toEqual(sortSlots(all).slice(0, count));
          expect(cluster.firstFreeSlots(count)).toEqual(sortSlots(all).slice(0, count));
        },
      ),
      { seed: 11, numRuns: 300 },
    );
  });

  it('is an IsobarError that says what is missing when a topology is asked for that is not there', () => {
    try {
      new WorkingCluster(snapshot).assignedWorkers('never');
      expect.unreachable();
    } catch (error) {
      expect(hasCode(error, 'TOPOLOGY_NOT_ALIVE')).toBe(true);
    }
  });
});
