/** Small cases are searched in full: the fewest moves that reach the best spread. */
import {
  type Assigned,
  type BalanceProblem,
  compareSpreads,
  machineLoads,
  movesOf,
  type Spread,
  spreadOf,
} from './balance-problem.js';

/** Assignments that are looked at, at most; a case with more of them is not small. */
const MAX_ASSIGNMENTS = 20_000;

/**
 * The best assignment by spread, then by moves; undefined where the case is too large to be searched. Among equals the
 * given one, then the first found.
 */
export function searchFewestMoves(
  problem: BalanceProblem,
  placed: Assigned,
  known: Assigned,
): Assigned | undefined {
  const { loads, places, fixedLoads } = problem;
  const machines = fixedLoads.length;
  if (loads.length * Math.log(Math.max(1, machines)) > Math.log(MAX_ASSIGNMENTS)) return undefined;
  const groups = [...placed.keys()].filter((group) => placed[group]! >= 0);
  if (groups.length !== loads.length) return undefined;
  let best = known;
  let bestSpread = spreadOf(machineLoads(problem, known));
  let bestMoves = movesOf(problem, known).length;
  const free = Int32Array.from(places);
  const sums = Float64Array.from(fixedLoads);
  const assigned = new Int32Array(loads.length).fill(-1);
  // At most MAX_ASSIGNMENTS leaves, so the depth is at most that of their logarithm.
  const visit = (index: number, moves: number): void => {
    if (index === groups.length) {
      const spread: Spread = spreadOf(sums);
      const order = compareSpreads(spread, bestSpread);
      if (order > 0 || (order === 0 && moves >= bestMoves)) return;
      best = Int32Array.from(assigned);
      bestSpread = spread;
      bestMoves = moves;
      return;
    }
    const group = groups[index]!;
    for (let machine = 0; machine < machines; machine++) {
      if (free[machine]! === 0) continue;
      free[machine]!--;
      sums[machine]! += loads[group]!;
      assigned[group] = machine;
      const before = problem.current[group]!;
      visit(index + 1, moves + (before >= 0 && before !== machine ? 1 : 0));
      assigned[group] = -1;
      sums[machine]! -= loads[group]!;
      free[machine]!++;
    }
  };
  visit(0, 0);
  return best;
}
