/**
 * Balance over machines in full: places what has no machine, improves, and moves as little as possible to be no worse
 * than a fresh start on the same machines.
 */
import {
  type Assigned,
  type BalanceProblem,
  compareSpreads,
  machineLoads,
  movesOf,
  type Spread,
  spreadOf,
} from './balance-problem.js';
import { fewestMoves, largestLoadBound } from './lower-bound.js';
import { GroupsOnMachines } from './groups-on-machines.js';
import { levelMachines } from './level-machines.js';
import { placeGroups } from './place-groups.js';
import { searchFewestMoves } from './search-fewest-moves.js';

export interface BalanceOptions {
  /** Improve beyond the greedy pass by moves and swaps. */
  readonly improves: boolean;
  /** Groups that run may be moved at most; Infinity: as many as it takes. */
  readonly moveBudget: number;
  /**
   * Groups that run are moved only if that takes at least this part of the average load from the fullest machine, or gives it to the
   * emptiest; not given: whatever it gains.
   */
  readonly leastGain?: number;
}

export interface Balance {
  readonly assigned: Assigned;
  readonly spread: Spread;
  /** No assignment has a smaller largest load. */
  readonly lowerBound: number;
  /** Groups that ran and have another machine now, ascending. */
  readonly moves: readonly number[];
  /** No plan with this largest load has fewer moves. */
  readonly movesBound: number;
  /** What a plan without budget would reach. */
  readonly reachable: Spread;
}

/**
 * Cost: O(G log G + G log M) and the improvement, which stops at the lower bound or after a number of steps that is linear
 * in groups. Small cases are searched for the fewest moves.
 */
export function balanceGroups(
  problem: BalanceProblem,
  { improves, moveBudget, leastGain = 0 }: BalanceOptions,
): Balance {
  const lowerBound = largestLoadBound(problem);
  const placed = placeGroups(problem);
  const best = improves ? improved(problem, placed, lowerBound) : placed;
  const plan = leastGain > 0 ? worthItsMoves(problem, best, leastGain) : best;
  const isAffordable = movesOf(problem, plan).length <= moveBudget;
  const assigned = isAffordable ? plan : withinBudget(problem, placed, plan, moveBudget);
  const spread = spreadOf(machineLoads(problem, assigned));
  return {
    assigned,
    spread,
    lowerBound,
    moves: movesOf(problem, assigned),
    movesBound: fewestMoves(problem, spread.max),
    reachable: spreadOf(machineLoads(problem, plan)),
  };
}

/**
 * What runs stays if the plan does not gain enough over that; else it goes only as far as half of that gain from the plan, which
 * takes fewer moves.
 */
function worthItsMoves(problem: BalanceProblem, plan: Assigned, leastGain: number): Assigned {
  if (movesOf(problem, plan).length === 0) return plan;
  const still = withoutMoves(problem);
  const loads = machineLoads(problem, plan);
  const [now, then] = [spreadOf(machineLoads(problem, still)), spreadOf(loads)];
  const gain = (leastGain * loads.reduce((sum, load) => sum + load, 0)) / Math.max(1, loads.length);
  if (Math.max(now.max - then.max, then.min - now.min) < gain) return still;
  const state = new GroupsOnMachines(problem, still);
  const target = { max: then.max + gain / 2, min: then.min - gain / 2 };
  levelMachines(state, target, maxSteps(problem));
  const isReached = compareSpreads(state.spread, target) <= 0 && state.spread.min >= target.min;
  return isReached && movesOf(problem, state.assigned).length < movesOf(problem, plan).length
    ? state.assigned
    : plan;
}

/** Only what has no machine is placed, around what runs. */
function withoutMoves(problem: BalanceProblem): Assigned {
  const { loads, current, places } = problem;
  const open = [...current.keys()].filter((group) => current[group]! < 0);
  const left = Int32Array.from(places);
  for (const machine of current) if (machine >= 0) left[machine]!--;
  const around: BalanceProblem = {
    fixedLoads: machineLoads(problem, current),
    places: left,
    loads: Float64Array.from(open, (group) => loads[group]!),
    current: new Int32Array(open.length).fill(-1),
  };
  const placed = improved(around, placeGroups(around), largestLoadBound(around));
  const result = Int32Array.from(current);
  for (const [index, group] of open.entries()) result[group] = placed[index]!;
  return result;
}

function maxSteps({ loads }: BalanceProblem): number {
  return 2 * loads.length + 1000;
}

/** A start from nothing: the measure for what a restored balance has to reach. */
function fresh(problem: BalanceProblem, lowerBound: number): Assigned {
  const empty = new Int32Array(problem.current.length).fill(-1);
  const state = new GroupsOnMachines(problem, placeGroups(problem, empty));
  levelMachines(state, { max: lowerBound, min: averageOf(problem) }, maxSteps(problem));
  return state.assigned;
}

/** No machine can have more than this and every other one at least as much. */
function averageOf({ fixedLoads, loads }: BalanceProblem): number {
  let total = 0;
  for (const load of fixedLoads) total += load;
  for (const load of loads) total += load;
  const average = total / Math.max(1, fixedLoads.length);
  return fixedLoads.every(Number.isInteger) && loads.every(Number.isInteger) ? Math.floor(average) : average;
}

/** From what runs to the spread of a fresh start; if steps do not lead there, that start with machines renamed. */
function improved(problem: BalanceProblem, placed: Assigned, lowerBound: number): Assigned {
  const start = fresh(problem, lowerBound);
  const target = spreadOf(machineLoads(problem, start));
  const state = new GroupsOnMachines(problem, placed);
  levelMachines(state, target, maxSteps(problem));
  const candidates = [state.assigned];
  // A start from nothing might leave out what runs, where there are not enough places for all.
  const isWhole = start.every((machine) => machine >= 0);
  if (isWhole && compareSpreads(state.spread, target) > 0) candidates.push(keepingMost(problem, start));
  const searched = searchFewestMoves(problem, placed, bestOf(problem, candidates));
  return searched ?? bestOf(problem, candidates);
}

function bestOf(problem: BalanceProblem, candidates: readonly Assigned[]): Assigned {
  const judged = candidates.map((assigned) => ({
    assigned,
    spread: spreadOf(machineLoads(problem, assigned)),
    moves: movesOf(problem, assigned).length,
  }));
  judged.sort((a, b) => compareSpreads(a.spread, b.spread) || a.moves - b.moves);
  return judged[0]!.assigned;
}

/** Groups of equal load are interchangeable: each stays where it is if the plan has one like it there. */
function keepingMost({ loads, current }: BalanceProblem, plan: Assigned): Assigned {
  const result = new Int32Array(plan.length).fill(-1);
  const wanted = new Map<string, number>();
  const key = (machine: number, load: number): string => `${machine}/${load}`;
  for (const [group, machine] of plan.entries()) {
    if (machine < 0) continue;
    const name = key(machine, loads[group]!);
    wanted.set(name, (wanted.get(name) ?? 0) + 1);
  }
  for (const [group, machine] of current.entries()) {
    const name = key(machine, loads[group]!);
    const count = wanted.get(name) ?? 0;
    if (machine < 0 || count === 0) continue;
    result[group] = machine;
    wanted.set(name, count - 1);
  }
  const rest = new Map<number, number[]>();
  for (const [name, count] of wanted) {
    const [machine, load] = name.split('/').map(Number);
    const list = rest.get(load!) ?? [];
    for (let index = 0; index < count; index++) list.push(machine!);
    rest.set(load!, list);
  }
  for (const group of result.keys()) {
    if (result[group]! >= 0) continue;
    result[group] = rest.get(loads[group]!)?.pop() ?? -1;
  }
  return result;
}

/**
 * The part of a plan that the budget allows, the fullest machines first. Each group of moves that is taken leaves no machine
 * with more groups than places, so exchanges are taken whole. What is left of the plan is shorter next time.
 */
function withinBudget(
  problem: BalanceProblem,
  placed: Assigned,
  plan: Assigned,
  moveBudget: number,
): Assigned {
  const state = new GroupsOnMachines(problem, placed);
  const open = new Set([...plan.keys()].filter((group) => plan[group] !== placed[group]));
  let left = moveBudget;
  for (;;) {
    const chain = nextChain(problem, state, plan, open, left);
    if (chain === undefined) return state.assigned;
    // From the end, so that each place is free when it is taken; in a cycle the first group waits without a place.
    for (const group of chain.reverse()) state.put(group, plan[group]!);
    for (const group of chain) open.delete(group);
    left -= chain.filter((group) => problem.current[group]! >= 0).length;
  }
}

/** Groups to move together: each takes the place of the next one, the last one a free place or that of the first. */
function nextChain(
  { current }: BalanceProblem,
  state: GroupsOnMachines,
  plan: Assigned,
  open: ReadonlySet<number>,
  budget: number,
): number[] | undefined {
  const starts = [...open].sort(
    (a, b) => state.loads[state.assigned[b]!]! - state.loads[state.assigned[a]!]! || a - b,
  );
  for (const start of starts) {
    const chain = [start];
    const origin = state.assigned[start]!;
    let to = plan[start]!;
    while (state.free[to]! === 0 && to !== origin) {
      const next = state.groupsOf[to]!.filter((group) => open.has(group) && !chain.includes(group)).sort(
        (a, b) => a - b,
      )[0];
      if (next === undefined) break;
      chain.push(next);
      to = plan[next]!;
    }
    const isClosed = state.free[to]! > 0 || to === origin;
    if (isClosed && chain.filter((group) => current[group]! >= 0).length <= budget) return chain;
  }
  return undefined;
}
