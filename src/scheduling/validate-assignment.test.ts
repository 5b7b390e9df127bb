import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, PlacedWorker } from './cluster-snapshot.js';
import { validateAssignment } from './validate-assignment.js';

const executors = [1, 2].map((task) => ({ range: [task, task] as const, component: 'c' }));
const snapshot: ClusterSnapshot = {
  supervisors: [
    { id: 'a', host: 'ha', ports: [1, 2] },
    { id: 'b', host: 'hb', ports: [1] },
  ],
  topologies: [
    { id: 't', workers: 1, executors },
    { id: 'u', workers: 1, executors },
  ],
  placement: new Map([['u', [worker('away', 7, 1, 2)]]]),
  blacklistedHosts: new Set(['hb']),
};

function worker(supervisor: string, port: number, ...tasks: number[]): PlacedWorker {
  return { supervisor, port, executors: tasks.map((task) => [task, task] as const) };
}

function faultsOf(t: readonly PlacedWorker[], u: readonly PlacedWorker[] = [worker('away', 7, 1, 2)]) {
  return Object.fromEntries(
    validateAssignment(snapshot, {
      placement: new Map([
        ['t', t],
        ['u', u],
      ]),
      unplaced: new Map(),
    }),
  );
}

describe('validating what a strategy returned', () => {
  it('accepts a sound placement, kept workers on a supervisor that is away included', () => {
    expect(faultsOf([worker('a', 1, 1, 2)])).toEqual({});
  });

  it('finds executors that are lost, doubled or unknown', () => {
    expect(faultsOf([worker('a', 1, 1)])).toEqual({ t: ['executor 2-2 is lost'] });
    expect(faultsOf([worker('a', 1, 1, 2), worker('a', 2, 2)])).toEqual({
      t: ['executor 2-2 has two slots'],
    });
    expect(faultsOf([worker('a', 1, 1, 2, 3)])).toEqual({ t: ['executor 3-3 does not exist'] });
  });

  it('accepts a lost executor that is reported, and refuses one that is reported and placed', () => {
    const placement = new Map([
      ['t', [worker('a', 1, 1)]],
      ['u', [worker('away', 7, 1, 2)]],
    ]);
    const unplaced = (index: number) => new Map([['t', { executors: [executors[index]!], reason: 'x' }]]);
    expect(validateAssignment(snapshot, { placement, unplaced: unplaced(1) }).size).toBe(0);
    expect(validateAssignment(snapshot, { placement, unplaced: unplaced(0) }).get('t')).toHaveLength(2);
  });

  it('refuses slots that do not exist, are blacklisted or empty', () => {
    expect(faultsOf([worker('a', 9, 1, 2)])).toEqual({ t: ['slot a:9 is not offered'] });
    expect(faultsOf([worker('b', 1, 1, 2)])).toEqual({ t: ['slot b:1 is not offered'] });
    expect(faultsOf([worker('a', 1, 1, 2), worker('a', 2)])).toEqual({
      t: ['the worker in slot a:2 has no executor'],
    });
  });

  it('sides with the topology that had a shared slot before', () => {
    expect(faultsOf([worker('away', 7, 1, 2)])).toMatchObject({
      t: ['slot away:7 is not offered', 'slot away:7 is shared with u'],
    });
    expect(Object.keys(faultsOf([worker('a', 1, 1, 2)], [worker('a', 1, 1, 2)]))).toEqual(['u']);
  });

  it('finds whoever was given a slot that a faulty topology will keep', () => {
    const kept = { ...snapshot, placement: new Map([['u', [worker('a', 1, 1, 2)]]]) };
    const placement = new Map([
      ['t', [worker('a', 1, 1, 2)]],
      ['u', [worker('a', 9, 1, 2)]],
    ]);
    expect([...validateAssignment(kept, { placement, unplaced: new Map() }).keys()].sort()).toEqual([
      't',
      'u',
    ]);
  });

  it('refuses topologies that are not in the snapshot', () => {
    const placement = new Map([['x', [worker('a', 1, 1)]]]);
    expect(
      validateAssignment({ ...snapshot, topologies: [] }, { placement, unplaced: new Map() }).get('x'),
    ).toBeDefined();
  });
});
