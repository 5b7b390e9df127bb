/** Rebalances as scheduling rounds decide them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS } from '../../base/index.js';
import type { Assignment, ExecutorRange } from '../assignment.js';
import { computeExecutors } from '../executors.js';
import { numberTasks } from '../numbering.js';
import type { TopologyPlan } from '../plan-topology.js';
import type { PendingRebalance, RoundSupervisor, RoundTopology, TopologyOutcome } from '../round-types.js';
import { schedulingRound } from '../scheduling-round.js';

type Counts = Readonly<Record<string, number>>;

/** `tasks` fixed, `executors` as they are wanted now. */
function planOf(workers: number, tasks: Counts, executors: Counts): TopologyPlan {
  const numbered = numberTasks(Object.entries(tasks));
  return {
    topologyWorkers: workers,
    tasks: numbered,
    executors: computeExecutors(numbered, new Map(Object.entries(executors))),
    components: [],
    ackers: 0,
    adjustments: [],
  };
}

function machines(count: number, ports: number): RoundSupervisor[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `s${index}`,
    host: `h${index}`,
    ports: Array.from({ length: ports }, (_unused, port) => 6700 + port),
  }));
}

function decide(
  plan: TopologyPlan,
  supervisors: readonly RoundSupervisor[],
  more: Partial<RoundTopology> = {},
  others: readonly RoundTopology[] = [],
): TopologyOutcome {
  const settings = { ...DEFAULT_SETTINGS };
  const topology = { id: 't', plan, settings, stored: undefined, lastHeartbeatMs: () => 2000, ...more };
  const { topologies } = schedulingRound({
    nowMs: 2000,
    supervisors,
    strategy: 'even',
    topologies: [topology, ...others],
  });
  return topologies.find(({ topologyId }) => topologyId === 't')!;
}

function assignmentOf(outcome: TopologyOutcome): Assignment {
  if (outcome.kind !== 'changed') throw new Error(`it is ${outcome.kind}, not changed`);
  return outcome.assignment;
}

const FEW: PendingRebalance = { revision: 1, placement: 'few-moves' };
const SCRATCH: PendingRebalance = { revision: 1, placement: 'from-scratch' };

function slotOfTasks({ slots }: Assignment): Map<number, string> {
  const found = new Map<number, string>();
  for (const { supervisor, port, executors } of slots) {
    for (const [first, last] of executors) {
      for (let task = first; task <= last; task++) found.set(task, `${supervisor}:${port}`);
    }
  }
  return found;
}

function movedTasks(before: Assignment, after: Assignment): number[] {
  const [old, now] = [slotOfTasks(before), slotOfTasks(after)];
  return [...old].filter(([task, slot]) => now.get(task) !== slot).map(([task]) => task);
}

function sizesOf({ slots }: Assignment): number[] {
  return slots.map(({ executors }) => executors.length).sort((a, b) => b - a);
}

function spread(numbers: readonly number[]): number {
  return Math.max(...numbers) - Math.min(...numbers);
}

describe('a rebalance with few moves', () => {
  const tasks = { count: 8, lines: 2, split: 4 };
  const before = assignmentOf(decide(planOf(2, tasks, tasks), machines(2, 4)));

  it('gives more workers their share and leaves every other executor where it is', () => {
    const after = assignmentOf(
      decide(planOf(3, tasks, tasks), machines(2, 4), { stored: before, rebalance: FEW }),
    );
    expect(sizesOf(after)).toEqual([5, 5, 4]);
    expect(movedTasks(before, after)).toHaveLength(4);
    expect(after).toMatchObject({ version: 2, revision: 1 });
  });

  it('empties the emptiest worker when there are to be fewer, and starts nothing else anew', () => {
    const three = assignmentOf(
      decide(planOf(3, tasks, tasks), machines(1, 4), { stored: undefined, rebalance: FEW }),
    );
    const after = assignmentOf(
      decide(planOf(2, tasks, tasks), machines(1, 4), { stored: three, rebalance: FEW }),
    );
    expect(sizesOf(after)).toEqual([7, 7]);
    expect(movedTasks(three, after)).toHaveLength(4);
  });

  it('keeps tasks in their slot when executors are cut anew', () => {
    const fewer = { ...tasks, count: 2 };
    const after = assignmentOf(
      decide(planOf(2, tasks, fewer), machines(2, 4), { stored: before, rebalance: FEW }),
    );
    expect(sizesOf(after)).toEqual([4, 4]);
    // Each executor of four tasks gathers them out of two slots: half of them have to move, and nothing else does.
    expect(movedTasks(before, after)).toHaveLength(4);
    const again = assignmentOf(
      decide(planOf(2, tasks, tasks), machines(2, 4), {
        stored: after,
        rebalance: { ...FEW, revision: 2 },
      }),
    );
    expect(movedTasks(after, again)).toEqual([]);
  });

  it('is done when nothing has to change, and says so in the assignment', () => {
    const outcome = decide(planOf(2, tasks, tasks), machines(2, 4), { stored: before, rebalance: FEW });
    const after = assignmentOf(outcome);
    expect(after).toEqual({ ...before, version: 2, revision: 1 });
    expect(outcome).toMatchObject({ started: [] });
  });

  it('moves workers to a machine that has joined', () => {
    const alone = assignmentOf(decide(planOf(4, tasks, tasks), machines(1, 4)));
    const after = assignmentOf(
      decide(planOf(4, tasks, tasks), machines(2, 4), { stored: alone, rebalance: FEW }),
    );
    expect(after.slots.map(({ supervisor }) => supervisor)).toEqual(['s0', 's0', 's1', 's1']);
    expect(movedTasks(alone, after)).toHaveLength(6);
  });

  it('does what can be done where slots are missing, and goes on when there are more', () => {
    const two = assignmentOf(decide(planOf(2, tasks, tasks), machines(1, 2)));
    const waiting = decide(planOf(4, tasks, tasks), machines(1, 2), { stored: two, rebalance: FEW });
    expect(waiting.kind).toBe('unchanged');
    const grown = assignmentOf(
      decide(planOf(4, tasks, tasks), machines(1, 4), { stored: two, rebalance: FEW }),
    );
    expect(grown).toMatchObject({ version: 2, revision: 1 });
    expect(grown.slots).toHaveLength(4);
  });

  it('leaves workers alone whose supervisor is away', () => {
    const [, away] = before.slots;
    const present = machines(2, 4).slice(0, 1);
    const after = assignmentOf(decide(planOf(3, tasks, tasks), present, { stored: before, rebalance: FEW }));
    expect(after.slots.at(-1)).toEqual(away);
    expect(after.slots.map(({ supervisor }) => supervisor)).toEqual(['s0', 's0', 's1']);
  });

  it('replaces a dead worker in the same step', () => {
    const outcome = decide(planOf(3, tasks, tasks), machines(2, 4), {
      stored: before,
      rebalance: FEW,
      lastHeartbeatMs: (first) => (slotOfTasks(before).get(first) === 's1:6700' ? -1e6 : 2000),
    });
    const silent = decide(planOf(3, tasks, tasks), machines(2, 4), {
      stored: { ...before, slots: before.slots.map((slot) => ({ ...slot, startedMs: -1e6 })) },
      rebalance: FEW,
      lastHeartbeatMs: (first) => (slotOfTasks(before).get(first) === 's1:6700' ? -1e6 : 2000),
    });
    expect(outcome.dead).toHaveLength(0);
    expect(silent.dead).toHaveLength(7);
    const after = assignmentOf(silent);
    expect(after.slots.map(({ port }) => port)).not.toContain('s1:6700');
    expect(sizesOf(after)).toEqual([5, 5, 4]);
  });

  it('takes no slot of another topology', () => {
    const other: RoundTopology = {
      id: 'a',
      plan: planOf(2, { x: 2 }, { x: 2 }),
      settings: DEFAULT_SETTINGS,
      stored: undefined,
      lastHeartbeatMs: () => 2000,
    };
    const after = assignmentOf(
      decide(planOf(9, tasks, tasks), machines(2, 2), { stored: before, rebalance: FEW }, [other]),
    );
    expect(after.slots.length).toBeLessThanOrEqual(4);
  });

  it('stays balanced with nothing lost over any sequence of rebalances, and moves nothing the second time', () => {
    const step = fc.record({
      workers: fc.integer({ min: 1, max: 9 }),
      count: fc.integer({ min: 1, max: 8 }),
      lines: fc.integer({ min: 1, max: 2 }),
      split: fc.integer({ min: 1, max: 4 }),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { minLength: 1, maxLength: 6 }),
        (count, steps) => {
          const supervisors = machines(count, 4);
          let stored = assignmentOf(decide(planOf(2, tasks, tasks), supervisors));
          for (const [index, { workers, ...executors }] of steps.entries()) {
            const plan = planOf(workers, tasks, executors);
            const rebalance: PendingRebalance = { revision: index + 1, placement: 'few-moves' };
            const outcome = decide(plan, supervisors, { stored, rebalance });
            expect(decide(plan, supervisors, { stored, rebalance })).toEqual(outcome);
            if (outcome.kind === 'changed') stored = outcome.assignment;
            const placed = stored.slots.flatMap((slot) => slot.executors);
            const byFirst = (a: ExecutorRange, b: ExecutorRange): number => a[0] - b[0];
            expect([...placed].sort(byFirst)).toEqual(plan.executors.map(({ range }) => range));
            expect(spread(sizesOf(stored))).toBeLessThanOrEqual(1);
            const wanted = Math.min(workers, plan.executors.length, count * 4);
            expect(stored.slots).toHaveLength(wanted);
            const perMachine = supervisors.map(
              ({ id }) => stored.slots.filter(({ supervisor }) => supervisor === id).length,
            );
            expect(spread(perMachine)).toBeLessThanOrEqual(1);
            const again = decide(plan, supervisors, {
              stored,
              rebalance: { ...rebalance, revision: index + 100 },
            });
            if (again.kind === 'changed') expect(again.started).toEqual([]);
          }
        },
      ),
      { seed: 7, numRuns: 60 },
    );
  });
});

describe('a rebalance from scratch', () => {
  const tasks = { count: 3 };

  it('places everything as if it were new, its own slots being free', () => {
    const before = assignmentOf(decide(planOf(3, tasks, tasks), machines(1, 3)));
    const after = assignmentOf(
      decide(planOf(3, tasks, tasks), machines(3, 3), { stored: before, rebalance: SCRATCH }),
    );
    expect(after.slots.map(({ supervisor }) => supervisor)).toEqual(['s0', 's1', 's2']);
    expect(after).toMatchObject({ version: 2, revision: 1 });
  });

  it('happens once', () => {
    const before = assignmentOf(decide(planOf(3, tasks, tasks), machines(1, 3)));
    const after = assignmentOf(
      decide(planOf(3, tasks, tasks), machines(1, 3), { stored: before, rebalance: SCRATCH }),
    );
    expect(after).toEqual({ ...before, version: 2, revision: 1 });
    const later = decide(planOf(3, tasks, tasks), machines(3, 3), { stored: after });
    expect(later.kind).toBe('unchanged');
  });
});
