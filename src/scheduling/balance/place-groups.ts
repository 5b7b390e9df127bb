/** Gives groups without a machine the least loaded one, the heaviest group first (R. L. Graham, 1969). */
import { heaviestFirst, leastLoaded } from '../slot-matching/index.js';
import { type Assigned, type BalanceProblem, machineLoads } from './balance-problem.js';

/** Groups for which there is no place stay at -1. Ties: the lower machine number. Cost: O(G log G + G log M). */
export function placeGroups(problem: BalanceProblem, start: Assigned = problem.current): Assigned {
  const assigned = Int32Array.from(start);
  const free = Int32Array.from(problem.places);
  const open: number[] = [];
  for (let group = 0; group < assigned.length; group++) {
    const machine = assigned[group]!;
    if (machine >= 0) free[machine]!--;
    else open.push(group);
  }
  if (open.length === 0) return assigned;
  const loads = machineLoads(problem, assigned);
  const openLoads = new Float64Array(open.length);
  for (let index = 0; index < open.length; index++) openLoads[index] = problem.loads[open[index]!]!;
  const ties = Float64Array.from(loads.keys());
  const withPlace = [...free.keys()].filter((machine) => free[machine]! > 0);
  const queue = leastLoaded(loads, ties, withPlace, openLoads);
  for (const index of heaviestFirst(openLoads)) {
    const machine = queue.first;
    if (machine < 0) break;
    assigned[open[index]!] = machine;
    loads[machine]! += openLoads[index]!;
    if (--free[machine]! === 0) queue.shift();
    else queue.grown();
  }
  return assigned;
}
