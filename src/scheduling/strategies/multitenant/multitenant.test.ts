import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, ClusterTopology, Placement } from '../../cluster-snapshot.js';
import { validateAssignment } from '../../validate-assignment.js';
import { multitenantStrategy } from './multitenant.js';

function cluster(
  ports: readonly number[],
  topologies: readonly ClusterTopology[],
  placement: Placement = new Map(),
): ClusterSnapshot {
  return {
    supervisors: ports.map((count, index) => ({
      id: `s${index}`,
      host: `h${index}`,
      ports: Array.from({ length: count }, (_, port) => port),
    })),
    topologies,
    placement,
  };
}

function topology(
  id: string,
  owner: string,
  workers: number,
  executors: number,
  rules: ClusterTopology['rules'] = {},
): ClusterTopology {
  return {
    id,
    owner,
    workers,
    executors: Array.from({ length: executors }, (_, index) => ({
      range: [index + 1, index + 1],
      component: 'c',
    })),
    rules,
  };
}

const storm = multitenantStrategy({ userPools: new Map([['ann', 2]]), fillLiveWorkers: false });
const isobar = multitenantStrategy({ userPools: new Map([['ann', 2]]), fillLiveWorkers: true });

function machinesOf(placement: Placement, id: string): string[] {
  return [...new Set(placement.get(id)?.map(({ supervisor }) => supervisor))];
}

describe('multitenant', () => {
  it("keeps a user's machines free of others and others off them", () => {
    const { placement, unplaced } = storm(
      cluster([2, 2, 2], [topology('a', 'ann', 2, 4), topology('b', 'bob', 4, 4)]),
    );
    const [own, others] = [machinesOf(placement, 'a'), machinesOf(placement, 'b')];
    expect(own.some((machine) => others.includes(machine))).toBe(false);
    expect(unplaced.size).toBe(0);
  });

  it('gives a topology the machines of its own that it asks for, and stops the default pool there for them', () => {
    const running = storm(cluster([2, 2], [topology('b', 'bob', 4, 4)])).placement;
    const both = [topology('a', 'ann', 2, 2, { isolatedMachines: 1 }), topology('b', 'bob', 4, 4)];
    const { placement } = storm(cluster([2, 2], both, running));
    expect(machinesOf(placement, 'a')).toHaveLength(1);
    expect(machinesOf(placement, 'b')).not.toContain(machinesOf(placement, 'a')[0]);
  });

  it('says how many machines a pool is short of', () => {
    const { unplaced } = storm(cluster([1, 1, 1, 1], [topology('a', 'ann', 3, 3)]));
    expect(unplaced.get('a')?.reason).toMatch(/needs 1 more machine than the 2 of its user's pool/);
  });

  it('puts one executor of a component to spread on each machine and the rest into the last slot', () => {
    const { placement } = storm(
      cluster([1, 1, 1], [topology('b', 'bob', 3, 5, { spreadComponents: ['c'] })]),
    );
    expect(placement.get('b')?.map(({ executors }) => executors.length)).toEqual([1, 1, 3]);
  });

  const clusters = fc
    .record({
      ports: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 7 }),
      topologies: fc.array(
        fc.record({
          owner: fc.constantFrom('ann', 'bob'),
          workers: fc.integer({ min: 0, max: 6 }),
          executors: fc.nat(9),
          machines: fc.constantFrom(undefined, undefined, 1, 2, 4),
          spread: fc.boolean(),
        }),
        { maxLength: 5 },
      ),
      kept: fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
      lost: fc.nat(10),
    })
    .map(({ ports, topologies, kept, lost }) => {
      const list = topologies.map(({ owner, workers, executors, machines, spread }, index) =>
        topology(`t${index}`, owner, workers, executors, {
          ...(machines === undefined ? {} : { isolatedMachines: machines }),
          spreadComponents: spread ? ['c'] : [],
        }),
      );
      const first = storm(cluster(ports, list.slice(1))).placement;
      let turn = 0;
      const left = [...first].map(
        ([id, workers]) =>
          [
            id,
            workers.filter(({ supervisor }) => supervisor !== `s${lost}` && kept[turn++ % kept.length]!),
          ] as const,
      );
      return cluster(ports, list, new Map(left));
    });

  it.each([
    ['as Storm', storm],
    ["with Isobar's additions", isobar],
  ])('loses nothing and shares no slot, whatever the order of its input, %s', (_, strategy) => {
    fc.assert(
      fc.property(clusters, (snapshot) => {
        const result = strategy(snapshot);
        expect([...validateAssignment(snapshot, result)]).toEqual([]);
        expect([...result.failures]).toEqual([]);
        const turned = { ...snapshot, supervisors: [...snapshot.supervisors].reverse() };
        expect([
          ...strategy({ ...turned, topologies: [...snapshot.topologies].reverse() }).placement,
        ]).toEqual([...result.placement]);
      }),
      { seed: 8, numRuns: 300 },
    );
  });
});
