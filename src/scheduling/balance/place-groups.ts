/** Gives groups without a machine the least loaded one, the heaviest group first (R. L. Graham, 1969). */
import { heaviestFirst, LoadHeap } from '../slot-matching/index.js';
import { type Assigned, type BalanceProblem, machineLoads } from './balance-problem.js';

/** Groups for which there is no place stay at -1. Ties: the lower machine number. Cost: O(G log G + G log M). */
export function placeGroups(problem: BalanceProblem, start: Assigned = problem.current): Assigned {
  const assigned = Int32Array.from(start);
  const loads = machineLoads(problem, assigned);
  const free = Int32Array.from(problem.places);
  const open: number[] = [];
  for (const [group, machine] of assigned.entries()) {
    if (machine >= 0) free[machine]!--;
    else open.push(group);
  }
  const heap = new LoadHeap({ loads, ties: Float64Array.from(loads.keys()) });
  for (const [machine, places] of free.entries()) if (places > 0) heap.add(machine);
  for (const index of heaviestFirst(Float64Array.from(open, (group) => problem.loads[group]!))) {
    const group = open[index]!;
    const machine = heap.first;
    if (machine < 0) break;
    assigned[group] = machine;
    loads[machine]! += problem.loads[group]!;
    if (--free[machine]! === 0) heap.remove(machine);
    else heap.changed(machine);
  }
  return assigned;
}
