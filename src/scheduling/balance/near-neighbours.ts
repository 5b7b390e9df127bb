/**
 * How much of what groups send each other stays near. Group a sends `outgoing` along an edge and group b takes the share
 * `incoming` of it: what both have on a machine saves a row the way between machines, what both have in a rack that between racks.
 */
import type { Objective } from './arrange-groups.js';
import { type Amounts, differences } from './even-amounts.js';

/** By edge: what the executors of a group send along it to others, and the share of what is sent that they take. */
export interface Ends {
  readonly outgoing: Amounts;
  readonly incoming: Amounts;
}

const NO_ENDS: Ends = { outgoing: [], incoming: [] };

export class NearNeighbours implements Objective {
  readonly #rackOf: Int32Array;
  /** By group. */
  readonly #ends: readonly Ends[];
  /** By edge and place: a machine, or a rack behind all machines. */
  readonly #out = new Map<number, number>();
  readonly #in = new Map<number, number>();
  readonly #places: number;
  #saved = 0;

  /** `rackOf`: by machine, the number of its rack, from 0. `machineOf`: where each group is; -1: nowhere. */
  constructor(rackOf: Int32Array, ends: readonly Ends[], machineOf: Int32Array) {
    this.#rackOf = rackOf;
    this.#ends = ends;
    this.#places = 2 * rackOf.length;
    for (const [group, machine] of machineOf.entries()) if (machine >= 0) this.#add(group, machine, 1);
  }

  /** What is saved, as a cost: the more, the less. */
  get value(): number {
    return -this.#saved;
  }

  changeBy(group: number, from: number, to: number, other: number): number {
    const [mine, theirs] = [this.#ends[group]!, other < 0 ? NO_ENDS : this.#ends[other]!];
    const outgoing = differences(mine.outgoing, theirs.outgoing);
    const incoming = differences(mine.incoming, theirs.incoming);
    let saved = this.#savedBy(outgoing, incoming, from, to);
    const [rack, otherRack] = [this.#rack(from), this.#rack(to)];
    if (rack !== otherRack) saved += this.#savedBy(outgoing, incoming, rack, otherRack);
    return -saved;
  }

  move(group: number, from: number, to: number): void {
    this.#add(group, from, -1);
    this.#add(group, to, 1);
  }

  effortOf(group: number): number {
    const { outgoing, incoming } = this.#ends[group]!;
    return outgoing.length + incoming.length;
  }

  #savedBy(outgoing: Amounts, incoming: Amounts, from: number, to: number): number {
    let saved = 0;
    let place = 0;
    for (const [edge, out] of outgoing)
      saved += out * (this.#at(this.#in, edge, to) - this.#at(this.#in, edge, from));
    for (const [edge, into] of incoming) {
      saved += into * (this.#at(this.#out, edge, to) - this.#at(this.#out, edge, from));
      while (place < outgoing.length && outgoing[place]![0] < edge) place++;
      const both = outgoing[place]?.[0] === edge ? outgoing[place]![1] : 0;
      // What goes takes its own ends along.
      saved += 2 * both * into;
    }
    return saved;
  }

  #rack(machine: number): number {
    return this.#rackOf.length + this.#rackOf[machine]!;
  }

  #at(which: ReadonlyMap<number, number>, edge: number, place: number): number {
    return which.get(edge * this.#places + place) ?? 0;
  }

  #add(group: number, machine: number, sign: 1 | -1): void {
    const { outgoing, incoming } = this.#ends[group]!;
    for (const place of [machine, this.#rack(machine)]) {
      for (const [edge, amount] of outgoing) {
        this.#saved += sign * amount * this.#at(this.#in, edge, place);
        this.#out.set(edge * this.#places + place, this.#at(this.#out, edge, place) + sign * amount);
      }
      for (const [edge, amount] of incoming) {
        this.#saved += sign * amount * this.#at(this.#out, edge, place);
        this.#in.set(edge * this.#places + place, this.#at(this.#in, edge, place) + sign * amount);
      }
    }
  }
}
