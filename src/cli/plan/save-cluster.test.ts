import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planCluster, removeSupervisors } from '../../scheduling/index.js';
import { mergeDrafts } from './cluster-draft.js';
import { type GivenSettings, toImagined } from './imagine-cluster.js';
import { InputFaults } from './input-faults.js';
import { readClusterFile } from './read-cluster-file.js';
import { clusterFileOf } from './save-cluster.js';

const NOTHING_SET: GivenSettings = { all: {}, byTopology: new Map() };

function read(value: unknown, given = NOTHING_SET) {
  const faults = new InputFaults();
  const draft = readClusterFile(value, 'c.json', faults);
  faults.throwIfAny();
  const imagined = toImagined(mergeDrafts([draft!], faults), given, faults);
  faults.throwIfAny();
  return imagined!;
}

const anyComponent = fc.record(
  {
    parallelism: fc.integer({ min: 1, max: 5 }),
    tasks: fc.integer({ min: 1, max: 8 }),
    cpuPercent: fc.integer({ min: 0, max: 50 }),
    onHeapMb: fc.integer({ min: 0, max: 200 }),
    load: fc.integer({ min: 0, max: 4 }),
    stateful: fc.boolean(),
    movable: fc.boolean(),
  },
  { requiredKeys: ['parallelism'] },
);

const anyCluster = fc.record({
  settings: fc.constantFrom({}, { 'scheduling.moves-per-round': 9 }),
  supervisors: fc
    .array(fc.record({ slots: fc.integer({ min: 1, max: 4 }), rack: fc.constantFrom('r1', 'r2') }), {
      minLength: 1,
      maxLength: 4,
    })
    .map((all) => all.map((one) => ({ ...one, cpuPercent: 400, memoryMb: 4000 }))),
  topologies: fc
    .array(
      fc.record(
        {
          workers: fc.integer({ min: 1, max: 4 }),
          ackers: fc.integer({ min: 0, max: 3 }),
          priority: fc.integer({ min: 0, max: 9 }),
          workerMaxHeapMb: fc.constant(800),
          components: fc.array(anyComponent, { minLength: 1, maxLength: 3 }).map((all) =>
            all.map((one, index) => ({
              ...one,
              id: `c${index}`,
              kind: index === 0 ? 'spout' : 'bolt',
              ...(index === 0 ? {} : { inputs: [{ from: `c${index - 1}`, grouping: 'shuffle' }] }),
            })),
          ),
        },
        { requiredKeys: ['components'] },
      ),
      { maxLength: 3 },
    )
    .map((all) => all.map((one, index) => ({ ...one, id: `t${index}` }))),
});

describe('a saved cluster', () => {
  it('is read again as the cluster that was planned: nothing changes, whatever it is', () => {
    fc.assert(
      fc.property(anyCluster, fc.constantFrom('balanced', 'even', 'resource-aware'), (value, strategy) => {
        const { changed, drafts } = read(value);
        const options = { strategy, maxRounds: 50 };
        const plan = planCluster(changed, options);
        const saved: unknown = JSON.parse(JSON.stringify(clusterFileOf(plan, changed, drafts)));
        const again = planCluster(read(saved).changed, options);
        expect(again.moves).toEqual([]);
        expect(again.after).toEqual(plan.after);
        expect(again.topologies.map(({ plan: counts }) => counts.executors)).toEqual(
          plan.topologies.map(({ plan: counts }) => counts.executors),
        );
      }),
      { seed: 1_414, numRuns: 120 },
    );
  });

  it('keeps a number of workers that was given for what runs', () => {
    const value = {
      supervisors: [{ id: 'm', slots: 8 }],
      topologies: [{ id: 't', components: [{ id: 'a', kind: 'spout', parallelism: 4 }] }],
    };
    const first = read(value);
    const options = { strategy: 'balanced', maxRounds: 50 };
    const saved = clusterFileOf(planCluster(first.changed, options), first.changed, first.drafts);
    const wider = read(saved, { all: { 'topology.workers': '3' }, byTopology: new Map() });
    const plan = planCluster(wider.changed, options);
    expect(plan.after.workers).toBe(3);
    const kept = read(clusterFileOf(plan, wider.changed, wider.drafts));
    expect(planCluster(kept.changed, options)).toMatchObject({ moves: [], after: { workers: 3 } });
  });

  it('leaves out machines that were lost', () => {
    const { changed, drafts } = read({
      supervisors: [
        { id: 'm1', slots: 1 },
        { id: 'm2', slots: 1 },
      ],
    });
    const lost = removeSupervisors(changed, ['m2']);
    const plan = planCluster(lost, { strategy: 'balanced', maxRounds: 5 });
    expect(clusterFileOf(plan, lost, drafts).supervisors).toMatchObject([{ id: 'm1' }]);
  });
});
