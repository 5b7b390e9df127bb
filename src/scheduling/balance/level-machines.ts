/**
 * Brings the loads of machines nearer to each other by moves and swaps, each of which lowers the largest load or raises
 * the smallest one; stops at a target, since each move costs a restart.
 */
import { compareSpreads, nearlyEqual, type Spread } from './balance-problem.js';
import type { GroupsOnMachines } from './groups-on-machines.js';

/** How many other machines are looked at for each step: those that are farthest from the one to be relieved. */
const PARTNERS = 64;
/** How many groups of a machine are looked at for a swap. */
const CANDIDATES = 64;

/** Levels until `target` is reached, nothing helps any more, or `maxSteps` changes were made. */
export function levelMachines(state: GroupsOnMachines, target: Spread, maxSteps: number): void {
  const end = state.steps + maxSteps;
  while (state.steps < end) {
    const before = state.spread;
    if (compareSpreads(before, target) <= 0) return;
    const isTooFull = before.max > target.max && !nearlyEqual(before.max, target.max);
    if (!(isTooFull ? relieve(state, target) : feed(state, target))) return;
  }
}

/** Takes load from the fullest machine. */
function relieve(state: GroupsOnMachines, target: Spread): boolean {
  const from = state.fullest;
  const excess = state.loads[from]! - target.max;
  return exchange(state, from, state.emptiestMachines(PARTNERS), excess);
}

/** Gives load to the emptiest machine. */
function feed(state: GroupsOnMachines, target: Spread): boolean {
  const to = state.emptiest;
  const lack = target.min - state.loads[to]!;
  for (const from of state.fullestMachines(PARTNERS)) if (exchange(state, from, [to], lack)) return true;
  return false;
}

/**
 * Moves a group from `from` to one of `partners`, or swaps two, so that the larger load of both becomes smaller.
 * `wanted` is the amount that would do; the best step is the one that gets nearest to it from above, else the largest.
 */
function exchange(
  state: GroupsOnMachines,
  from: number,
  partners: readonly number[],
  wanted: number,
): boolean {
  const own = distinct(state, from);
  const high = state.loads[from]!;
  let best:
    | { readonly group: number; readonly to: number; readonly other: number; readonly amount: number }
    | undefined;
  const consider = (group: number, to: number, other: number, amount: number): void => {
    const low = state.loads[to]!;
    // Both ends must stay below what the fuller one has now.
    if (amount <= 0 || low + amount >= high || nearlyEqual(low + amount, high)) return;
    if (best === undefined || isBetter(amount, best.amount, wanted, other < 0, best.other < 0))
      best = { group, to, other, amount };
  };
  for (const to of partners) {
    if (to === from || state.loads[to]! >= high) continue;
    if (state.free[to]! > 0) for (const group of own) consider(group, to, -1, state.loadOf(group));
    if (best !== undefined && isEnough(best.amount, wanted)) break;
    for (const other of distinct(state, to)) {
      const back = state.loadOf(other);
      for (const group of own) consider(group, to, other, state.loadOf(group) - back);
    }
    if (best !== undefined && isEnough(best.amount, wanted)) break;
  }
  if (best === undefined) return false;
  const { group, to, other } = best;
  if (other < 0) state.put(group, to);
  else state.swap(group, other);
  return true;
}

function isEnough(amount: number, wanted: number): boolean {
  return amount > wanted || nearlyEqual(amount, wanted);
}

function isBetter(
  amount: number,
  best: number,
  wanted: number,
  isMove: boolean,
  isBestMove: boolean,
): boolean {
  const [enough, bestEnough] = [isEnough(amount, wanted), isEnough(best, wanted)];
  if (enough !== bestEnough) return enough;
  // A move stops one group, a swap two.
  if (enough && isMove !== isBestMove) return isMove;
  return enough ? amount < best : amount > best;
}

/** One group of each load on a machine, in order of load and number, so that the result does not depend on history. */
function distinct(state: GroupsOnMachines, machine: number): number[] {
  const sorted = [...state.groupsOf[machine]!].sort((a, b) => state.loadOf(a) - state.loadOf(b) || a - b);
  const result = sorted.filter(
    (group, index) => index === 0 || state.loadOf(sorted[index - 1]!) !== state.loadOf(group),
  );
  return result.slice(-CANDIDATES);
}
