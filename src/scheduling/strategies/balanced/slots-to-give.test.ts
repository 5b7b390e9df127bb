/** Slots are short: what becomes of topologies that have none, over several rounds. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterTopology, Placement, PlacedWorker } from '../../cluster-snapshot.js';
import { computeExecutors } from '../../executors.js';
import { fairShares } from '../../fair-shares.js';
import { numberTasks } from '../../numbering.js';
import { validateAssignment } from '../../validate-assignment.js';
import { ALL_BY_TASKS, clusterOf } from '../testing/balanced-cluster.js';
import { type BalancedOptions, balancedStrategy } from './balanced.js';

const seed = 20_268;
interface Part {
  readonly name: string;
  readonly count: number;
  readonly isMovable?: boolean;
  readonly group?: string;
  readonly bond?: string;
  readonly load?: number;
}

function topologyOf(id: string, parts: readonly Part[], workers: number): ClusterTopology {
  const entries = parts.map(({ name, count }) => [name, count] as const);
  return {
    id,
    workers,
    executors: computeExecutors(numberTasks(entries), new Map(entries)),
    components: parts.map(({ name, isMovable = true, group, bond, load }) => ({
      id: name,
      kind: name.startsWith('__') ? 'system' : 'bolt',
      resources: { cpuPercent: 0, onHeapMb: 0, offHeapMb: 0 },
      isMovable,
      ...(group === undefined ? {} : { slotSharingGroup: group }),
      ...(bond === undefined ? {} : { coLocationGroup: bond }),
      ...(load === undefined ? {} : { load }),
    })),
  };
}

/** What is left when machines have these numbers of slots; -1: the machine is gone. */
function surviving(placement: Placement, slots: readonly number[]): Placement {
  return new Map(
    [...placement].map(([id, workers]) => [
      id,
      workers.filter(({ supervisor, port }) => (slots[Number(supervisor.slice(1))] ?? -1) > port),
    ]),
  );
}

const counts = (placement: Placement, topologies: readonly ClusterTopology[]): number[] =>
  topologies.map(({ id }) => placement.get(id)?.length ?? 0);

function placesOf(placement: Placement): ReadonlyMap<string, string> {
  return new Map(
    [...placement].flatMap(([id, workers]) =>
      workers.flatMap(({ supervisor, port, executors }) =>
        executors.map(([first]) => [`${id} ${first}`, `${supervisor}:${port}`] as const),
      ),
    ),
  );
}

const big = topologyOf('big', [{ name: 'x', count: 6 }], 6);
const small = topologyOf('small', [{ name: 'y', count: 2 }], 2);

describe('a topology without any worker, where all slots are in use', () => {
  it('gets one slot of a topology that has more than its share, by moving one worker', () => {
    const before: Placement = new Map([
      ['big', balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [big])).placement.get('big')!],
    ]);
    const result = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [big, small], before));
    expect(counts(result.placement, [big, small])).toEqual([5, 1]);
    expect(result.unplaced.size).toBe(0);
    expect(result.notes).toContain(
      'Topology "big" has more than its share of the slots and gives up 1 worker.',
    );
    const [old, now] = [placesOf(before), placesOf(result.placement)];
    expect([...old].filter(([executor, place]) => now.get(executor) !== place)).toHaveLength(1);
    const again = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [big, small], result.placement));
    expect(again.placement).toEqual(result.placement);
  });

  it('waits for a slot that is about to become free, and takes no other one', () => {
    const before = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 2], [big])).placement;
    const cluster = clusterOf([3, 2], [big, small], before);
    const seen = {
      ...cluster,
      supervisors: cluster.supervisors.map((one) => (one.id === 'm1' ? { ...one, soonFree: 1 } : one)),
    };
    const result = balancedStrategy(ALL_BY_TASKS)(seen);
    expect(result.placement.get('big')).toEqual(before.get('big'));
    expect(result.unplaced.get('small')?.reason).toBe('needs a slot; 0 are free. 1 is about to become free.');
  });

  it.each([
    ['nothing of it may move', { isMovable: false }, {}],
    ['nothing moves by itself', {}, { moveBudget: 0 }],
    ['slots are not to be shared', {}, { fairShares: false }],
  ])('gets none where %s', (_, part, options: Partial<BalancedOptions>) => {
    const fixed = topologyOf('big', [{ name: 'x', count: 6, ...part }], 6);
    const before = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [fixed])).placement;
    const { placement, unplaced } = balancedStrategy({ ...ALL_BY_TASKS, ...options })(
      clusterOf([3, 3], [fixed, small], before),
    );
    expect(counts(placement, [fixed, small])).toEqual([6, 0]);
    expect(unplaced.get('small')?.executors).toHaveLength(2);
  });

  it('is told why nobody gives a slot', () => {
    const fixed = topologyOf('big', [{ name: 'x', count: 6, isMovable: false }], 6);
    const before = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [fixed])).placement;
    const { unplaced } = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3], [fixed, small], before));
    expect(unplaced.get('small')?.reason).toContain(
      'Topologies that have more than their share keep their workers, because of state or sources that are not movable.',
    );
  });

  it('gets its own back when there are slots again, and so does who gave one', () => {
    let placement = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, 2], [big, small])).placement;
    expect(counts(placement, [big, small])).toEqual([6, 2]);
    // All that `small` has is gone.
    placement = new Map([['big', placement.get('big')!]]);
    placement = balancedStrategy(ALL_BY_TASKS)(
      clusterOf([3, 3, 0], [big, small], surviving(placement, [3, 3, 0])),
    ).placement;
    expect(placement.get('small')!.length).toBeGreaterThan(0);
    for (let round = 0; round < 5; round++)
      placement = balancedStrategy(ALL_BY_TASKS)(clusterOf([3, 3, 2], [big, small], placement)).placement;
    expect(counts(placement, [big, small])).toEqual([6, 2]);
  });

  const anyPart = fc.record({
    count: fc.integer({ min: 1, max: 5 }),
    isMovable: fc.boolean(),
    group: fc.constantFrom(undefined, 'g'),
    load: fc.constantFrom(0, 1, 1, 3),
  });
  const anyTopology = fc.tuple(
    fc.array(anyPart, { minLength: 1, maxLength: 3 }),
    fc.integer({ min: 1, max: 6 }),
  );
  const anySlots = fc.array(fc.integer({ min: -1, max: 3 }), { minLength: 2, maxLength: 4 });

  it('is left over only where nobody can give; nothing flaps, nothing is stopped, nobody is left with less than its share', () => {
    let ended = 0;
    fc.assert(
      fc.property(
        fc.array(anyTopology, { minLength: 2, maxLength: 4 }),
        fc.array(anySlots, { minLength: 2, maxLength: 4 }),
        fc.constantFrom(1, 2, 8),
        (specs, sequence, moveBudget) => {
          const topologies = specs.map(([parts, workers], index) =>
            topologyOf(
              `t${index}`,
              parts.map((part, place) => ({ name: `c${place}`, ...part }) as Part),
              workers,
            ),
          );
          const options = { ...ALL_BY_TASKS, moveBudget };
          let placement: Placement = new Map();
          for (const slots of sequence) {
            placement = surviving(placement, slots);
            const seen = new Set<string>();
            for (let round = 0; ; round++) {
              const cluster = clusterOf(slots, topologies, placement);
              const result = balancedStrategy(options)(cluster);
              expect([...result.failures]).toEqual([]);
              expect([...validateAssignment(cluster, result)]).toEqual([]);
              // What runs goes on, and of it no more workers than allowed are moved.
              const [old, now] = [placesOf(placement), placesOf(result.placement)];
              const left = new Set<string>();
              for (const [executor, place] of old) {
                expect(now.has(executor)).toBe(true);
                if (now.get(executor) !== place) left.add(`${executor.split(' ')[0]} ${place}`);
              }
              expect(left.size).toBeLessThanOrEqual(moveBudget);
              const key = JSON.stringify([...result.placement]);
              if (key === JSON.stringify([...placement])) break;
              expect(seen.has(key)).toBe(false);
              seen.add(key);
              expect(round).toBeLessThan(60);
              placement = result.placement;
            }
            const without = topologies.filter(({ id }) => (placement.get(id)?.length ?? 0) === 0);
            ended += without.length;
            for (const { id } of without) expect(canGive(slots, topologies, placement, id)).toBe(false);
          }
        },
      ),
      { seed, numRuns: 120 },
    );
    // The cases hold both kinds.
    expect(ended).toBeGreaterThan(20);
  });
});

/** Could another topology, which has more than its share, do without one of its workers so that this one, which has a share, gets a slot? */
function canGive(
  slots: readonly number[],
  topologies: readonly ClusterTopology[],
  placement: Placement,
  id: string,
): boolean {
  const all = slots.reduce((sum, count) => sum + Math.max(0, count), 0);
  const used = [...placement.values()].reduce((sum, workers) => sum + workers.length, 0);
  const shares = fairShares(
    topologies.map((one) => [one.id, wantedOf(one)]),
    all,
  );
  if (shares.get(id) === 0) return false;
  if (used < all) return true;
  return topologies.some((one) => {
    const workers = placement.get(one.id) ?? [];
    if (workers.length <= Math.max(1, shares.get(one.id)!)) return false;
    return workers.some((worker) => isFree(one, worker, workers));
  });
}

function wantedOf(topology: ClusterTopology): number {
  const all = Array.from({ length: 40 }, () => 1);
  return balancedStrategy(ALL_BY_TASKS)(clusterOf(all, [topology])).placement.get(topology.id)!.length;
}

/** May all that the worker has move, and is there another one for each sharing group of it? */
function isFree(topology: ClusterTopology, worker: PlacedWorker, workers: readonly PlacedWorker[]): boolean {
  const componentOf = (first: number): string =>
    topology.executors.find(({ range }) => range[0] === first)!.component;
  const partOf = (first: number): NonNullable<ClusterTopology['components']>[number] =>
    topology.components!.find((one) => one.id === componentOf(first))!;
  const groupOf = (first: number): string => partOf(first).slotSharingGroup ?? 'default';
  return worker.executors.every(
    ([first]) =>
      partOf(first).isMovable !== false &&
      workers.some(
        (other) => other !== worker && other.executors.some(([one]) => groupOf(one) === groupOf(first)),
      ),
  );
}
