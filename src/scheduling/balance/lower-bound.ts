/** A proof that no assignment can do better: the smallest largest load that the numbers allow. */
import { type BalanceProblem, nearlyEqual } from './balance-problem.js';

/**
 * The largest of: what a machine carries anyway; the average that filling from below needs; for each k the lightest k + 1 of as
 * many of the heaviest groups as make some machine take k + 1 of them.
 *
 * Whole loads have a whole bound. Cost: O(groups log groups + machines log machines).
 */
export function largestLoadBound({ fixedLoads, places, loads }: BalanceProblem): number {
  const fixed = Float64Array.from(fixedLoads).sort();
  const machines = fixed.length;
  if (machines === 0) return 0;
  const heaviest = Float64Array.from(loads).sort().reverse();
  const usable = Float64Array.from([...fixedLoads].filter((_, machine) => places[machine]! > 0)).sort();
  let bound = fixed[machines - 1]!;
  if (usable.length > 0) {
    bound = Math.max(bound, filled(usable, sum(loads)));
    bound = Math.max(bound, usable[0]! + (heaviest[0] ?? 0));
    // Of the k·m + 1 heaviest groups some machine holds k + 1, which weigh at least what the lightest k + 1 of them do.
    const sums = runningSums(heaviest);
    for (let k = 1; k * usable.length < heaviest.length; k++) {
      const end = k * usable.length + 1;
      bound = Math.max(bound, usable[0]! + sums[end]! - sums[end - k - 1]!);
    }
  }
  const isWhole = Number.isInteger;
  if (fixedLoads.every(isWhole) && loads.every(isWhole)) {
    const rounded = Math.round(bound);
    return nearlyEqual(rounded, bound) ? rounded : Math.ceil(bound);
  }
  return bound;
}

/** By count: what so many of the first values come to. */
function runningSums(values: Float64Array): Float64Array {
  const sums = new Float64Array(values.length + 1);
  for (let index = 0; index < values.length; index++) sums[index + 1] = sums[index]! + values[index]!;
  return sums;
}

/** The level that is reached when `total` is poured over machines of these loads (ascending). */
function filled(ascending: Float64Array, total: number): number {
  let below = 0;
  for (let count = 1; count <= ascending.length; count++) {
    below += ascending[count - 1]!;
    const level = (below + total) / count;
    if (count === ascending.length || level <= ascending[count]!) return level;
  }
  return 0;
}

function sum(values: Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/**
 * How many groups must leave the machines that are too full for `level`: on each as few of the heaviest as suffice.
 */
export function fewestMoves({ fixedLoads, loads, current }: BalanceProblem, level: number): number {
  const sums = new Float64Array(fixedLoads.length);
  for (let group = 0; group < current.length; group++)
    if (current[group]! >= 0) sums[current[group]!]! += loads[group]!;
  // Mostly few machines are too full: only their groups are put in order.
  const tooFull = new Map<number, number[]>();
  for (let machine = 0; machine < sums.length; machine++) {
    const excess = fixedLoads[machine]! + sums[machine]! - level;
    if (excess > 0 && !nearlyEqual(excess, 0)) tooFull.set(machine, []);
  }
  if (tooFull.size === 0) return 0;
  for (let group = 0; group < current.length; group++) tooFull.get(current[group]!)?.push(loads[group]!);
  let moves = 0;
  for (const [machine, own] of tooFull) {
    let excess = fixedLoads[machine]! + sums[machine]! - level;
    own.sort((a, b) => b - a);
    for (const load of own) {
      if (excess <= 0 || nearlyEqual(excess, 0)) break;
      excess -= load;
      moves++;
    }
  }
  return moves;
}
