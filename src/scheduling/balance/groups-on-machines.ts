/** An assignment under change, with machines ordered by load from both ends. */
import { LoadHeap } from '../slot-matching/index.js';
import type { Assigned, BalanceProblem, Spread } from './balance-problem.js';
import { machineLoads } from './balance-problem.js';

export class GroupsOnMachines {
  readonly assigned: Assigned;
  readonly loads: Float64Array;
  readonly free: Int32Array;
  /** By machine: its groups, in no order. */
  readonly groupsOf: readonly number[][];
  readonly #problem: BalanceProblem;
  readonly #negated: Float64Array;
  readonly #fullest: LoadHeap;
  readonly #emptiest: LoadHeap;
  /** Changes so far. */
  steps = 0;

  constructor(problem: BalanceProblem, assigned: Assigned) {
    this.#problem = problem;
    this.assigned = Int32Array.from(assigned);
    this.loads = machineLoads(problem, assigned);
    this.free = Int32Array.from(problem.places);
    this.groupsOf = Array.from(this.loads, () => []);
    for (let group = 0; group < assigned.length; group++) {
      const machine = assigned[group]!;
      if (machine < 0) continue;
      this.groupsOf[machine]!.push(group);
      this.free[machine]!--;
    }
    this.#negated = this.loads.map((load) => -load);
    const ties = Float64Array.from(this.loads.keys());
    this.#fullest = new LoadHeap({ loads: this.#negated, ties });
    this.#emptiest = new LoadHeap({ loads: this.loads, ties });
    for (const machine of this.loads.keys()) {
      this.#fullest.add(machine);
      this.#emptiest.add(machine);
    }
  }

  get fullest(): number {
    return this.#fullest.first;
  }

  get emptiest(): number {
    return this.#emptiest.first;
  }

  get spread(): Spread {
    if (this.loads.length === 0) return { max: 0, min: 0 };
    return { max: this.loads[this.fullest]!, min: this.loads[this.emptiest]! };
  }

  /** Machines by load, least first; the first `count` of them. */
  emptiestMachines(count: number): number[] {
    return this.#emptiest.least(count);
  }

  /** Machines by load, largest first; the first `count` of them. */
  fullestMachines(count: number): number[] {
    return this.#fullest.least(count);
  }

  loadOf(group: number): number {
    return this.#problem.loads[group]!;
  }

  put(group: number, machine: number): void {
    const before = this.assigned[group]!;
    if (before >= 0) {
      const groups = this.groupsOf[before]!;
      groups[groups.indexOf(group)] = groups[groups.length - 1]!;
      groups.pop();
      this.free[before]!++;
      this.#add(before, -this.loadOf(group));
    }
    this.assigned[group] = machine;
    this.groupsOf[machine]!.push(group);
    this.free[machine]!--;
    this.#add(machine, this.loadOf(group));
    this.steps++;
  }

  swap(a: number, b: number): void {
    const machineOfA = this.assigned[a]!;
    this.put(a, this.assigned[b]!);
    this.put(b, machineOfA);
  }

  #add(machine: number, load: number): void {
    this.loads[machine]! += load;
    this.#negated[machine] = -this.loads[machine]!;
    this.#fullest.changed(machine);
    this.#emptiest.changed(machine);
  }
}
