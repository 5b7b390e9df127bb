import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../base/index.js';
import type { Assignment } from '../assignment.js';
import { computeExecutors } from '../executors.js';
import { numberTasks } from '../numbering.js';
import type { RoundTopology, TopologyOutcome } from '../round-types.js';
import { schedulingRound } from '../scheduling-round.js';
import { strategyNamed } from '../strategies/strategies.js';
import { validateCapacity } from '../validate-capacity.js';

const settings = compileSettings({ 'scheduling.strategy': 'resource-aware' });
const strategy = strategyNamed('resource-aware', settings);

function topology(cpuPercent: number, heapMb: number, count: number, workers: number): RoundTopology {
  const tasks = numberTasks([['a', count]]);
  const resources = { cpuPercent, onHeapMb: heapMb, offHeapMb: 0 };
  return {
    id: 't',
    settings,
    stored: undefined,
    lastHeartbeatMs: () => 1000,
    plan: {
      topologyWorkers: workers,
      tasks,
      executors: computeExecutors(tasks, new Map([['a', count]])),
      components: [{ id: 'a', kind: 'spout', resources }],
      ackers: 0,
      adjustments: [],
    },
  };
}

function round(one: RoundTopology): ReturnType<typeof schedulingRound> {
  const supervisors = ['a', 'b', 'c'].map((id) => ({
    id,
    host: id,
    ports: [1, 2, 3, 4],
    resources: { cpuPercent: 400, memoryMb: 4000 },
  }));
  return schedulingRound({ nowMs: 1000, supervisors, strategy, topologies: [one] });
}

function assignmentOf(outcome: TopologyOutcome | undefined): Assignment | undefined {
  return outcome?.kind === 'changed' ? outcome.assignment : undefined;
}

describe('a rebalance under resource-aware', () => {
  it('leaves no machine with more than it offers where requests grow, and places all that fits', () => {
    const stored = assignmentOf(round(topology(50, 64, 8, 2)).topologies[0]);
    expect(stored?.slots.every(({ supervisor }) => supervisor === 'a')).toBe(true);
    const grown = {
      ...topology(120, 64, 8, 4),
      stored,
      rebalance: { revision: 1, placement: 'few-moves' },
    } as const;
    const { topologies } = round(grown);
    const slots = assignmentOf(topologies[0])!.slots;
    const executors = (id: string): number =>
      slots.filter(({ supervisor }) => supervisor === id).reduce((sum, one) => sum + one.executors.length, 0);
    expect(['a', 'b', 'c'].map(executors).sort()).toEqual([2, 3, 3]);
  });

  it('never goes beyond a machine or a heap, whatever grows', () => {
    const amounts = fc.record({
      cpu: fc.integer({ min: 1, max: 200 }),
      heap: fc.integer({ min: 1, max: 600 }),
      workers: fc.integer({ min: 1, max: 8 }),
    });
    fc.assert(
      fc.property(amounts, amounts, fc.integer({ min: 1, max: 14 }), (before, after, count) => {
        const stored = assignmentOf(
          round(topology(before.cpu, before.heap, count, before.workers)).topologies[0],
        );
        const grown: RoundTopology = {
          ...topology(after.cpu, after.heap, count, after.workers),
          ...(stored === undefined ? {} : { stored }),
          rebalance: { revision: 1, placement: 'few-moves' },
        };
        const { topologies, decided } = round(grown);
        const slots = assignmentOf(topologies[0])?.slots ?? stored?.slots ?? [];
        const fromNothing = { ...decided.snapshot, placement: new Map() };
        expect([...validateCapacity(fromNothing, new Map([['t', slots]]))]).toEqual([]);
      }),
      { seed: 61, numRuns: 300 },
    );
  });
});
