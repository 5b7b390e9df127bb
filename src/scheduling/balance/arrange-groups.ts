/**
 * What remains open when loads are decided: which of several equally good groups goes where. Groups change places, in order of
 * objectives, as long as that makes the first objective that changes better.
 *
 * A1  The larger load of two machines between which something is exchanged does not rise; where a running group takes part, their
 *     loads stay as they are. A2  No more running groups change their machine than before. A3  An objective never gets worse
 *     unless one before it gets better.
 */
import { nearlyEqual } from './balance-problem.js';

/** Something that an arrangement is judged by: less is better. */
export interface Objective {
  /** By how much it changes if `group` goes from one machine to the other and `other` (-1: nobody) the other way. */
  changeBy(group: number, from: number, to: number, other: number): number;
  move(group: number, from: number, to: number): void;
  /** How many numbers `changeBy` looks at because of a group. */
  effortOf(group: number): number;
}

export interface Arrangement {
  /** By group. */
  readonly loads: Float64Array;
  /** By group: its machine as decided; -1: it has no place. */
  readonly assigned: Int32Array;
  /** By group: the machine that it runs on; -1: it does not run yet. */
  readonly current: Int32Array;
  /** By machine: places that are left. */
  readonly free: Int32Array;
  /** By machine. */
  readonly machineLoads: Float64Array;
}

export interface Arranged {
  readonly assigned: Int32Array;
  readonly exchanges: number;
}

/** How many other machines a group is offered to in one pass. */
const PARTNERS = 64;
/** How many groups of a machine are looked at. */
const CANDIDATES = 32;
/** Exchanges that are judged at most for each objective: bounds the time for large clusters. */
const MAX_JUDGED = 80_000;
/** So many numbers to look at make an exchange count as one more: bounds the time where components have very many inputs. */
const NUMBERS_OF_ONE = 256;
const LEAST_GAIN = 1e-9;

/** Cost: at most {@link MAX_JUDGED} exchanges judged for each objective; nothing where no group is new and none moves. */
export function arrangeGroups(arrangement: Arrangement, objectives: readonly Objective[]): Arranged {
  return new Exchanges(arrangement, objectives).run();
}

interface Exchange {
  readonly to: number;
  readonly other: number;
  readonly changes: readonly number[];
}

interface Candidate {
  readonly group: number;
  readonly from: number;
  readonly to: number;
  readonly other: number;
}

class Exchanges {
  readonly #objectives: readonly Objective[];
  readonly #loads: Float64Array;
  readonly #current: Int32Array;
  readonly #assigned: Int32Array;
  readonly #free: Int32Array;
  readonly #machineLoads: Float64Array;
  /** By machine: its groups, in order of number. */
  readonly #groupsOf: number[][];
  #judged = 0;
  #exchanges = 0;
  /** By group: numbers to look at for the objectives in question. */
  readonly #efforts: Float64Array;

  constructor(
    { loads, assigned, current, free, machineLoads }: Arrangement,
    objectives: readonly Objective[],
  ) {
    this.#objectives = objectives;
    this.#loads = loads;
    this.#current = current;
    this.#assigned = Int32Array.from(assigned);
    this.#free = Int32Array.from(free);
    this.#machineLoads = Float64Array.from(machineLoads);
    this.#groupsOf = Array.from(machineLoads, () => []);
    this.#efforts = new Float64Array(assigned.length);
    for (const [group, machine] of assigned.entries()) if (machine >= 0) this.#groupsOf[machine]!.push(group);
  }

  /** The first objective alone, then with the second one, and so on: a later one finds the earlier ones done. */
  run(): Arranged {
    for (let count = 1; count <= this.#objectives.length; count++) {
      this.#judged = 0;
      const added = this.#objectives[count - 1]!;
      for (const group of this.#efforts.keys()) this.#efforts[group]! += added.effortOf(group);
      for (let pass = 0; this.#pass(count, pass); pass++);
    }
    return { assigned: this.#assigned, exchanges: this.#exchanges };
  }

  /** One exchange for each group that has a good one; false: for none. */
  #pass(count: number, pass: number): boolean {
    const before = this.#exchanges;
    for (const group of this.#assigned.keys()) {
      if (this.#judged >= MAX_JUDGED) return false;
      const from = this.#assigned[group]!;
      // What runs and stays is moved by nobody's wish but that of a group that moves anyway.
      if (from < 0 || from === this.#current[group]) continue;
      const best = this.#bestFor(group, from, count, pass);
      if (best !== undefined) this.#carryOut(group, from, best);
    }
    return this.#exchanges > before;
  }

  #bestFor(group: number, from: number, count: number, pass: number): Exchange | undefined {
    const machines = this.#groupsOf.length;
    const looked = Math.min(PARTNERS, machines - 1);
    let best: Exchange | undefined;
    for (let step = 0; step < looked && this.#judged < MAX_JUDGED; step++) {
      const to = (from + 1 + ((pass * PARTNERS + step) % (machines - 1))) % machines;
      const others = this.#groupsOf[to]!;
      for (let place = this.#free[to]! > 0 ? -1 : 0; place < Math.min(others.length, CANDIDATES); place++) {
        const other = place < 0 ? -1 : others[place]!;
        if (!this.#isAllowed(group, from, to, other)) continue;
        this.#judged += this.#costOf(group, other);
        const changes = this.#judge(count, { group, from, to, other }, best?.changes);
        if (changes !== undefined) best = { to, other, changes };
      }
    }
    return best;
  }

  #costOf(group: number, other: number): number {
    const numbers = this.#efforts[group]! + (other < 0 ? 0 : this.#efforts[other]!);
    return 1 + Math.floor(numbers / NUMBERS_OF_ONE);
  }

  #isAllowed(group: number, from: number, to: number, other: number): boolean {
    const loadOfOther = other < 0 ? 0 : this.#loads[other]!;
    const shift = this.#loads[group]! - loadOfOther;
    const runs = this.#current[group]! >= 0 || (other >= 0 && this.#current[other]! >= 0);
    if (runs && other < 0) return false;
    if (!nearlyEqual(this.#loads[group]!, loadOfOther)) {
      if (runs) return false;
      const [there, here] = [this.#machineLoads[to]! + shift, this.#machineLoads[from]! - shift];
      const larger = Math.max(this.#machineLoads[to]!, this.#machineLoads[from]!);
      if (Math.max(there, here) > larger) return false;
    }
    if (!runs) return true;
    const after = this.#isMove(group, to) + this.#isMove(other, from);
    return after <= this.#isMove(group, from) + this.#isMove(other, to);
  }

  /** 1: a running group would have to change its machine. */
  #isMove(group: number, machine: number): number {
    if (group < 0) return 0;
    const current = this.#current[group]!;
    return current >= 0 && current !== machine ? 1 : 0;
  }

  /** The changes of so many objectives, if they are better than nothing and better than the best so far. */
  #judge(
    count: number,
    { group, from, to, other }: Candidate,
    best: readonly number[] | undefined,
  ): readonly number[] | undefined {
    const changes: number[] = [];
    let order = 0;
    for (let index = 0; index < count; index++) {
      const change = this.#objectives[index]!.changeBy(group, from, to, other);
      changes.push(change);
      const than = best?.[index] ?? 0;
      if (order === 0 && Math.abs(change - than) > LEAST_GAIN) order = change - than;
      if (order > 0) return undefined;
    }
    return order < 0 ? changes : undefined;
  }

  #carryOut(group: number, from: number, { to, other }: Exchange): void {
    this.#put(group, from, to);
    if (other >= 0) this.#put(other, to, from);
    this.#exchanges++;
  }

  #put(group: number, from: number, to: number): void {
    for (const objective of this.#objectives) objective.move(group, from, to);
    const left = this.#groupsOf[from]!;
    left.splice(left.indexOf(group), 1);
    this.#groupsOf[to]!.push(group);
    this.#assigned[group] = to;
    this.#free[from]!++;
    this.#free[to]!--;
    this.#machineLoads[from]! -= this.#loads[group]!;
    this.#machineLoads[to]! += this.#loads[group]!;
  }
}
