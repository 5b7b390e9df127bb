/** What the resource-aware strategy promises, on random clusters: those that the differential test gives to Storm as well. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ClusterSnapshot,
  type ResourceAwareOptions,
  type ResourceAwareResult,
  resourceAwareStrategy,
  validateAssignment,
  validateCapacity,
} from '../../src/scheduling/index.js';
import { freshInputs, laterInputs } from '../../tools/differential/resource-cases.js';
import { resourceAwareSchema, toResourceSnapshot } from '../../tools/vectors/operations/storm-topology.js';

const ISOBAR: ResourceAwareOptions = {
  asStorm: false,
  topologyOrder: 'default',
  guarantees: new Map(),
  minimumWorkerCpuPercent: 0,
  maxAttempts: 5,
  maxSearchStates: 300,
};
const STORM: ResourceAwareOptions = { ...ISOBAR, asStorm: true, minimumWorkerCpuPercent: 20 };

const snapshots = fc
  .oneof(freshInputs, laterInputs)
  .map((input) => toResourceSnapshot(resourceAwareSchema.parse(input)));

/** Both modes, each with its faults. */
function forAll(
  check: (snapshot: ClusterSnapshot, result: ResourceAwareResult, options: ResourceAwareOptions) => void,
): void {
  for (const options of [ISOBAR, STORM]) {
    fc.assert(
      fc.property(snapshots, (snapshot) => {
        check(snapshot, resourceAwareStrategy(options)(snapshot), options);
      }),
      { numRuns: 150, seed: 20_240_601 },
    );
  }
}

describe('resource-aware', () => {
  it('places no executor twice, loses none, and shares no slot', () => {
    forAll((snapshot, result) => {
      expect([...result.failures.values()]).toEqual([]);
      expect([...validateAssignment(snapshot, result)]).toEqual([]);
    });
  });

  it('never goes beyond what a supervisor offers or a worker may have', () => {
    forAll((snapshot, { placement }, { minimumWorkerCpuPercent }) => {
      expect([
        ...validateCapacity(snapshot, placement, { minimumCpuPercent: minimumWorkerCpuPercent }),
      ]).toEqual([]);
    });
  });

  it('gives the same result whatever the order of its input', () => {
    forAll((snapshot, result, options) => {
      const reversed = <T>(items: readonly T[]): T[] => [...items].reverse();
      const other = resourceAwareStrategy(options)({
        ...snapshot,
        supervisors: reversed(snapshot.supervisors).map((one) => ({ ...one, ports: reversed(one.ports) })),
        topologies: reversed(snapshot.topologies).map((one) => ({
          ...one,
          executors: reversed(one.executors),
          components: reversed(one.components ?? []),
        })),
        placement: new Map(reversed([...snapshot.placement]).map(([id, workers]) => [id, reversed(workers)])),
      });
      expect(new Map([...other.placement].sort())).toEqual(new Map([...result.placement].sort()));
      expect(other.order).toEqual(result.order);
      expect(new Map([...other.unplaced].sort())).toEqual(new Map([...result.unplaced].sort()));
    });
  });

  it('leaves alone what runs, unless it was evicted for a topology that was then placed', () => {
    forAll((snapshot, { placement, evicted, outcomes }) => {
      const losers = new Set([...evicted.values()].flat());
      for (const winner of evicted.keys()) expect(outcomes.get(winner)).toBe('placed');
      for (const [id, workers] of snapshot.placement) {
        if (!losers.has(id)) expect(placement.get(id) ?? []).toEqual(expect.arrayContaining([...workers]));
      }
    });
  });

  it('changes nothing in a second round', () => {
    fc.assert(
      fc.property(snapshots, (snapshot) => {
        const first = resourceAwareStrategy(ISOBAR)(snapshot);
        if (first.unplaced.size > 0) return;
        const second = resourceAwareStrategy(ISOBAR)({ ...snapshot, placement: first.placement });
        expect(second.placement).toEqual(first.placement);
      }),
      { numRuns: 200, seed: 7 },
    );
  });

  it('explains each executor without a place: what it needs, what there is, and the rule that keeps it out', () => {
    forAll((_snapshot, { unplaced, outcomes }) => {
      for (const [id, { reason, shortage }] of unplaced) {
        expect(reason).toMatch(/\.$/);
        if (outcomes.get(id) === 'not-enough-resources') expect(shortage).toBeDefined();
      }
    });
  });
});
