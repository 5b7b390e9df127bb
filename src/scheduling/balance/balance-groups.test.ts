import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { balanceGroups } from './balance-groups.js';
import {
  type BalanceProblem,
  compareSpreads,
  machineLoads,
  movesOf,
  type Spread,
  spreadOf,
} from './balance-problem.js';

const seed = 20_264;

function problemOf(
  machines: readonly (readonly [fixed: number, places: number])[],
  groups: readonly (readonly [load: number, current: number])[],
): BalanceProblem {
  const free = machines.map(([, places]) => places);
  return {
    fixedLoads: Float64Array.from(machines, ([fixed]) => fixed),
    places: Int32Array.from(free),
    loads: Float64Array.from(groups, ([load]) => load),
    // A group beyond the places of its machine has none.
    current: Int32Array.from(groups, ([, current]) =>
      current >= 0 && current < machines.length && free[current]!-- > 0 ? current : -1,
    ),
  };
}

function anyProblem(machines: number, groups: number, maxLoad = 8): fc.Arbitrary<BalanceProblem> {
  return fc
    .tuple(
      fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: machines }),
      fc.array(fc.tuple(fc.integer({ min: 1, max: maxLoad }), fc.integer({ min: -1, max: machines - 1 })), {
        maxLength: groups,
      }),
    )
    .map(([places, items]) => problemOf(places, items));
}

const UNLIMITED = { improves: true, moveBudget: Infinity };

describe('balancing groups over machines', () => {
  it('finds 6/6 where the greedy pass stops at 7/5, and proves it', () => {
    const problem = problemOf(
      [
        [0, 3],
        [0, 3],
      ],
      [3, 3, 2, 2, 2].map((load) => [load, -1] as const),
    );
    const { spread, lowerBound } = balanceGroups(problem, UNLIMITED);
    expect({ spread, lowerBound }).toEqual({ spread: { max: 6, min: 6 }, lowerBound: 6 });
    expect(balanceGroups(problem, { improves: false, moveBudget: 0 }).spread).toEqual({ max: 7, min: 5 });
  });

  it('proves that 7 is the least where four workers of 4, 4, 4 and 3 meet three machines', () => {
    const problem = problemOf(
      [
        [0, 3],
        [0, 3],
        [0, 3],
      ],
      [4, 4, 4, 3, 1, 1].map((load) => [load, -1] as const),
    );
    const { spread, lowerBound } = balanceGroups(problem, UNLIMITED);
    expect({ max: spread.max, lowerBound }).toEqual({ max: 7, lowerBound: 7 });
  });

  it('claims no bound that a placement is below, and mostly one that some placement reaches', () => {
    let reached = 0;
    fc.assert(
      fc.property(anyProblem(3, 6), (problem) => {
        const places = problem.places.reduce((sum, count) => sum + count, 0);
        fc.pre(places >= problem.loads.length);
        const { lowerBound } = balanceGroups(problem, UNLIMITED);
        const { max } = exhaustive(problem).spread;
        expect(lowerBound).toBeLessThanOrEqual(max + 1e-9);
        if (lowerBound === max) reached++;
      }),
      { seed, numRuns: 500 },
    );
    expect(reached).toBeGreaterThan(400);
  });

  it('gives a machine that returns its share by the fewest moves', () => {
    const six = [0, 0, 0, 1, 1, 1].map((machine) => [2, machine] as const);
    const { spread, moves, movesBound } = balanceGroups(
      problemOf(
        [
          [0, 3],
          [0, 3],
          [0, 3],
        ],
        six,
      ),
      UNLIMITED,
    );
    expect(spread).toEqual({ max: 4, min: 4 });
    expect([moves.length, movesBound]).toEqual([2, 2]);
  });

  it('keeps every place, every group and every bound', () => {
    fc.assert(
      fc.property(anyProblem(6, 16), fc.nat(6), (problem, moveBudget) => {
        const { assigned, spread, lowerBound, moves, movesBound } = balanceGroups(problem, {
          improves: true,
          moveBudget,
        });
        const held = new Int32Array(problem.places.length);
        for (const machine of assigned) if (machine >= 0) held[machine] = (held[machine] ?? 0) + 1;
        for (const [machine, count] of held.entries())
          expect(count).toBeLessThanOrEqual(problem.places[machine]!);
        const places = problem.places.reduce((sum, count) => sum + count, 0);
        expect(assigned.filter((machine) => machine >= 0)).toHaveLength(Math.min(places, assigned.length));
        // What runs is somewhere.
        for (const [group, machine] of problem.current.entries())
          if (machine >= 0) expect(assigned[group]).toBeGreaterThanOrEqual(0);
        expect(moves).toEqual(movesOf(problem, assigned));
        expect(moves.length).toBeLessThanOrEqual(moveBudget);
        expect(spread).toEqual(spreadOf(machineLoads(problem, assigned)));
        if (places >= assigned.length) {
          expect(spread.max).toBeGreaterThanOrEqual(lowerBound - 1e-9);
          const isAllPlaced = problem.current.every((machine) => machine >= 0);
          if (isAllPlaced) expect(moves.length).toBeGreaterThanOrEqual(movesBound);
        }
      }),
      { seed, numRuns: 2000 },
    );
  });

  it('is never worse than a fresh start on the same machines', () => {
    fc.assert(
      fc.property(anyProblem(6, 16), (problem) => {
        // A start from nothing could leave out what runs.
        fc.pre(problem.places.reduce((sum, count) => sum + count, 0) >= problem.loads.length);
        const fresh = { ...problem, current: new Int32Array(problem.current.length).fill(-1) };
        const { spread } = balanceGroups(problem, UNLIMITED);
        expect(compareSpreads(spread, balanceGroups(fresh, UNLIMITED).spread)).toBeLessThanOrEqual(0);
      }),
      { seed, numRuns: 2000 },
    );
  });

  it('is as even as can be with as few moves as can be, on cases small enough to search', () => {
    fc.assert(
      fc.property(anyProblem(3, 6), (problem) => {
        const places = problem.places.reduce((sum, count) => sum + count, 0);
        fc.pre(places >= problem.loads.length);
        const { spread, moves } = balanceGroups(problem, UNLIMITED);
        const best = exhaustive(problem);
        expect({ spread, moves: moves.length }).toEqual(best);
      }),
      { seed, numRuns: 500 },
    );
  });

  it('gets to what it can reach in rounds of few moves each, if an exchange over all machines fits in one', () => {
    fc.assert(
      fc.property(anyProblem(4, 12), fc.integer({ min: 4, max: 6 }), (problem, moveBudget) => {
        let current = balanceGroups(problem, { improves: false, moveBudget: 0 }).assigned;
        const goal = balanceGroups({ ...problem, current }, UNLIMITED).spread;
        for (let round = 0; round < 40; round++)
          current = balanceGroups({ ...problem, current }, { improves: true, moveBudget }).assigned;
        expect(compareSpreads(spreadOf(machineLoads(problem, current)), goal)).toBeLessThanOrEqual(0);
      }),
      { seed, numRuns: 500 },
    );
  });

  it('leaves what runs where it is for less than the least gain, and else reaches the balance to within half of it', () => {
    fc.assert(
      fc.property(anyProblem(6, 16), (problem) => {
        const leastGain = 0.2;
        const free = balanceGroups(problem, UNLIMITED);
        const careful = balanceGroups(problem, { ...UNLIMITED, leastGain });
        expect(careful.moves.length).toBeLessThanOrEqual(free.moves.length);
        const loads = machineLoads(problem, free.assigned);
        const gain = (leastGain * loads.reduce((sum, load) => sum + load, 0)) / loads.length;
        if (careful.moves.length > 0)
          expect(careful.spread.max).toBeLessThanOrEqual(free.spread.max + gain / 2 + 1e-9);
        else expect(careful.spread.max).toBeLessThan(free.spread.max + gain + 1e-9);
        const again = balanceGroups({ ...problem, current: careful.assigned }, { ...UNLIMITED, leastGain });
        expect(again.moves).toEqual([]);
      }),
      { seed, numRuns: 1000 },
    );
  });

  it('does nothing more once it is done', () => {
    fc.assert(
      fc.property(anyProblem(6, 16), (problem) => {
        const { assigned } = balanceGroups(problem, UNLIMITED);
        expect(balanceGroups({ ...problem, current: assigned }, UNLIMITED).moves).toEqual([]);
      }),
      { seed, numRuns: 1000 },
    );
  });
});

/** The best spread and the fewest moves for it, by trying everything. */
function exhaustive(problem: BalanceProblem): { spread: Spread; moves: number } {
  let best: { spread: Spread; moves: number } | undefined;
  const assigned = new Int32Array(problem.loads.length);
  const free = Int32Array.from(problem.places);
  const visit = (group: number): void => {
    if (group === assigned.length) {
      const spread = spreadOf(machineLoads(problem, assigned));
      const moves = movesOf(problem, assigned).length;
      const order = best === undefined ? -1 : compareSpreads(spread, best.spread);
      if (best === undefined || order < 0 || (order === 0 && moves < best.moves)) best = { spread, moves };
      return;
    }
    for (const machine of free.keys()) {
      if (free[machine] === 0) continue;
      free[machine]!--;
      assigned[group] = machine;
      visit(group + 1);
      free[machine]!++;
    }
  };
  visit(0);
  return best ?? { spread: { max: 0, min: 0 }, moves: 0 };
}
