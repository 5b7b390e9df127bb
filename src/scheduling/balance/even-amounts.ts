/**
 * How evenly things that groups hold are spread over machines: for each kind of thing the sum over machines of the square of the
 * amount there, which is least where amounts are as equal as they can be.
 */
import type { Objective } from './arrange-groups.js';

/** What a group holds, by kind: ascending. */
export type Amounts = readonly (readonly [kind: number, amount: number])[];

const NOTHING: Amounts = [];

export class EvenAmounts implements Objective {
  readonly #machines: number;
  /** By group. */
  readonly #amounts: readonly Amounts[];
  /** By kind and machine; 0 where nothing is said. */
  readonly #there = new Map<number, number>();
  #value = 0;

  /** `machineOf`: where each group is; -1: nowhere. */
  constructor(machines: number, amounts: readonly Amounts[], machineOf: Int32Array) {
    this.#machines = machines;
    this.#amounts = amounts;
    for (const [group, machine] of machineOf.entries()) if (machine >= 0) this.#add(group, machine, 1);
  }

  /** The sum of the squares. */
  get value(): number {
    return this.#value;
  }

  changeBy(group: number, from: number, to: number, other: number): number {
    let change = 0;
    for (const [kind, amount] of differences(this.#amounts[group]!, this.#of(other))) {
      const [here, there] = [this.#at(kind, from), this.#at(kind, to)];
      change += 2 * amount * (amount + there - here);
    }
    return change;
  }

  move(group: number, from: number, to: number): void {
    this.#add(group, from, -1);
    this.#add(group, to, 1);
  }

  effortOf(group: number): number {
    return this.#amounts[group]!.length;
  }

  #of(group: number): Amounts {
    return group < 0 ? NOTHING : this.#amounts[group]!;
  }

  #at(kind: number, machine: number): number {
    return this.#there.get(kind * this.#machines + machine) ?? 0;
  }

  #add(group: number, machine: number, sign: 1 | -1): void {
    for (const [kind, amount] of this.#amounts[group]!) {
      const before = this.#at(kind, machine);
      const after = before + sign * amount;
      this.#value += after * after - before * before;
      this.#there.set(kind * this.#machines + machine, after);
    }
  }
}

/** What `a` has more than `b`, by kind; equal amounts are left out. */
export function differences(a: Amounts, b: Amounts): Amounts {
  const result: (readonly [number, number])[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [ofA, ofB] = [a[i]?.[0] ?? Infinity, b[j]?.[0] ?? Infinity];
    const kind = Math.min(ofA, ofB);
    const amount = (ofA === kind ? a[i++]![1] : 0) - (ofB === kind ? b[j++]![1] : 0);
    if (amount !== 0) result.push([kind, amount]);
  }
  return result;
}
