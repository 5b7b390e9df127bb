/** Rounds whose strategy cheats: what comes out keeps to the rules whatever it returned, and who is not concerned is placed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../base/index.js';
import type { Assignment } from './assignment.js';
import { type ClusterSnapshot, type PlacedWorker, type Placement, slotKey } from './cluster-snapshot.js';
import type { RoundInput, RoundTopology } from './round-types.js';
import { schedulingRound } from './scheduling-round.js';
import { strategyNamed } from './strategies/strategies.js';
import type { SchedulingResult } from './strategies/strategy.js';
import { validateAssignment } from './validate-assignment.js';
import { validateCapacity } from './validate-capacity.js';

const settings = compileSettings();
const honest = strategyNamed('resource-aware', settings);
const MEMORY_MB = 1024;

type Cheat = (placement: Map<string, readonly PlacedWorker[]>, id: string) => void;

/** The first worker of a topology, changed. */
const first =
  (change: (worker: PlacedWorker, all: Placement) => readonly PlacedWorker[]): Cheat =>
  (placement, id) => {
    const [worker, ...others] = placement.get(id) ?? [];
    if (worker !== undefined) placement.set(id, [...change(worker, placement), ...others]);
  };

const CHEATS: Readonly<Record<string, Cheat>> = {
  'places an executor twice': first((worker) => [worker, { ...worker, port: 99 }]),
  'loses an executor': first((worker) => [{ ...worker, executors: worker.executors.slice(1) }]),
  'loses a topology': (placement, id) => placement.delete(id),
  'invents an executor': first((worker) => [{ ...worker, executors: [...worker.executors, [77, 77]] }]),
  'takes a slot of another': first((worker, all) => {
    const other = [...all.values()].flat().find((one) => slotKey(one) !== slotKey(worker));
    return [
      { ...worker, ...(other === undefined ? {} : { supervisor: other.supervisor, port: other.port }) },
    ];
  }),
  'takes a slot that is not offered': first((worker) => [{ ...worker, port: 98 }]),
  'takes a machine that is not there': first((worker) => [{ ...worker, supervisor: 'nowhere' }]),
  'opens a worker with nothing in it': first((worker) => [worker, { ...worker, port: 0, executors: [] }]),
  'fills one machine with everything': (placement, id) => {
    const workers = placement.get(id) ?? [];
    placement.set(
      id,
      workers.map((worker, port) => ({ ...worker, supervisor: 's0', port })),
    );
  },
};

const clusters = fc.record({
  machines: fc.integer({ min: 1, max: 5 }),
  sizes: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 5 }),
  cheated: fc.array(fc.tuple(fc.constantFrom(...Object.keys(CHEATS)), fc.nat(4)), { maxLength: 3 }),
});

function inputOf(machines: number, sizes: readonly number[]): Omit<RoundInput, 'strategy'> {
  return {
    nowMs: 1000,
    supervisors: Array.from({ length: machines }, (_, index) => ({
      id: `s${index}`,
      host: `s${index}`,
      ports: [0, 1, 2, 3],
      resources: { cpuPercent: 400, memoryMb: MEMORY_MB },
    })),
    topologies: sizes.map((size, index): RoundTopology => {
      const executors = Array.from({ length: size }, (_, task) => ({
        range: [task + 1, task + 1] as const,
        component: 'c',
      }));
      return {
        id: `t${index}`,
        settings,
        stored: undefined,
        lastHeartbeatMs: () => 1000,
        plan: {
          topologyWorkers: 2,
          executors,
          tasks: [{ component: 'c', first: 1, last: size }],
          components: [
            { id: 'c', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 128, offHeapMb: 0 } },
          ],
          ackers: 0,
          adjustments: [],
        },
      };
    }),
  };
}

/** Two rounds after each other: from nothing, and with what the first one stored; the strategy cheats in each. */
function play(
  { machines, sizes, cheated }: Parameters<Parameters<typeof clusters.map>[0]>[0],
  check: (
    snapshot: ClusterSnapshot,
    result: SchedulingResult,
    after: Placement,
    failed: ReadonlySet<string>,
  ) => void,
): void {
  const input = inputOf(machines, sizes);
  const strategy = (snapshot: ClusterSnapshot): SchedulingResult => {
    const result = honest(snapshot);
    const placement = new Map(result.placement);
    for (const [name, which] of cheated) CHEATS[name]!(placement, `t${which % sizes.length}`);
    return { ...result, placement };
  };
  const stored = new Map<string, Assignment>();
  for (let turn = 0; turn < 2; turn++) {
    const topologies = input.topologies.map((one) => ({ ...one, stored: stored.get(one.id) }));
    const { topologies: outcomes, decided } = schedulingRound({ ...input, topologies, strategy });
    for (const outcome of outcomes)
      if (outcome.kind === 'changed') stored.set(outcome.topologyId, outcome.assignment);
    const after = new Map([...stored].map(([id, { slots }]) => [id, slots] as const));
    const failed = outcomes.filter(({ kind }) => kind === 'failed').map(({ topologyId }) => topologyId);
    check(decided.snapshot, decided.result, after, new Set(failed));
  }
}

describe('a round whose strategy cheats', () => {
  it('stores nothing that breaks a rule, capacities included', () => {
    fc.assert(
      fc.property(clusters, (cluster) => {
        play(cluster, (snapshot, { unplaced }, after, failed) => {
          const sound = { ...snapshot, topologies: snapshot.topologies.filter(({ id }) => !failed.has(id)) };
          const placement = new Map([...after].filter(([id]) => !failed.has(id)));
          expect([...validateAssignment(sound, { placement, unplaced })]).toEqual([]);
          expect([...validateCapacity(snapshot, after)]).toEqual([]);
          const slots = [...after.values()].flat().map(slotKey);
          expect(new Set(slots).size).toBe(slots.length);
        });
      }),
      { seed: 31, numRuns: 400 },
    );
  });

  it('fails nobody who is honest and has nothing to do with it', () => {
    fc.assert(
      fc.property(clusters, (cluster) => {
        const guilty = new Set(cluster.cheated.map(([, which]) => `t${which % cluster.sizes.length}`));
        play(cluster, (_snapshot, { placement }, _after, failed) => {
          const machines = new Set(
            [...guilty].flatMap((id) => (placement.get(id) ?? []).map(({ supervisor }) => supervisor)),
          );
          for (const id of failed) {
            if (guilty.has(id)) continue;
            expect((placement.get(id) ?? []).some(({ supervisor }) => machines.has(supervisor))).toBe(true);
          }
        });
      }),
      { seed: 32, numRuns: 400 },
    );
  });

  it.each(Object.keys(CHEATS).filter((name) => !name.startsWith('fills')))(
    'is refused when it %s',
    (name) => {
      const failed: string[] = [];
      play({ machines: 5, sizes: [3, 3], cheated: [[name, 1]] }, (_snapshot, _result, _after, ids) => {
        failed.push(...ids);
      });
      expect(new Set(failed)).toContain('t1');
    },
  );

  it('is refused when it puts more on a machine than that offers', () => {
    const failed: string[] = [];
    const cheated: [string, number][] = [
      ['fills one machine with everything', 0],
      ['fills one machine with everything', 1],
    ];
    play({ machines: 2, sizes: [8, 2], cheated }, (_snapshot, _result, _after, ids) => failed.push(...ids));
    expect(failed.length).toBeGreaterThan(0);
  });
});
