/**
 * Groups on machines, as numbers: what balancing decides on. A machine carries a fixed load (what may not move) and has
 * places for groups that may; a group has a load and, if it runs already, a machine.
 */

export interface BalanceProblem {
  /** By machine: load that stays where it is. */
  readonly fixedLoads: Float64Array;
  /** By machine: places for groups, those of the groups that are there included. */
  readonly places: Int32Array;
  /** By group: finite, at least 0. */
  readonly loads: Float64Array;
  /** By group: the machine that it is on; -1: it has none yet. */
  readonly current: Int32Array;
}

/** By group: its machine; -1: there was no place left. */
export type Assigned = Int32Array;

/** How evenly machines are loaded: a smaller maximum is better, then a larger minimum. */
export interface Spread {
  readonly max: number;
  readonly min: number;
}

export function machineLoads({ fixedLoads, loads }: BalanceProblem, assigned: Assigned): Float64Array {
  const result = Float64Array.from(fixedLoads);
  for (let group = 0; group < assigned.length; group++) {
    const machine = assigned[group]!;
    if (machine >= 0) result[machine]! += loads[group]!;
  }
  return result;
}

export function spreadOf(loads: Float64Array): Spread {
  let max = loads.length === 0 ? 0 : -Infinity;
  let min = loads.length === 0 ? 0 : Infinity;
  for (const load of loads) {
    if (load > max) max = load;
    if (load < min) min = load;
  }
  return { max, min };
}

/** Below 0: `a` is better. Sums of fractions differ in their last digits, so what is nearly equal is equal. */
export function compareSpreads(a: Spread, b: Spread): number {
  if (!nearlyEqual(a.max, b.max)) return a.max - b.max;
  return nearlyEqual(a.min, b.min) ? 0 : b.min - a.min;
}

export function nearlyEqual(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
}

/** Groups on another machine than before; those that had none are not moves. */
export function movesOf({ current }: BalanceProblem, assigned: Assigned): number[] {
  const moved: number[] = [];
  for (let group = 0; group < assigned.length; group++) {
    const machine = assigned[group]!;
    if (current[group]! >= 0 && machine >= 0 && machine !== current[group]) moved.push(group);
  }
  return moved;
}
