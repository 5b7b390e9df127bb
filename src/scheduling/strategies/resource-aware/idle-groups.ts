/**
 * Supervisors of a rack that have exactly the same left, grouped: for a topology that is on none of them they are equal but
 * for their names, so the first of each group stands for all. Kept from topology to topology; a rack that has changed is
 * grouped anew.
 */
import type { Machines } from './machines.js';

export class IdleGroups {
  readonly #machines: Machines;
  readonly #groups: (readonly Int32Array[] | undefined)[];
  readonly #changes: Int32Array;
  /** Comparisons so far. */
  steps = 0;

  constructor(machines: Machines) {
    this.#machines = machines;
    this.#groups = new Array<readonly Int32Array[] | undefined>(machines.rackCount);
    this.#changes = new Int32Array(machines.rackCount);
  }

  /** Supervisors of the rack with a free slot in groups of equals, each in order of host, then id. Cost: O(m log m) after a change. */
  inRack(rack: number): readonly Int32Array[] {
    const changes = this.#machines.changesOfRack[rack]!;
    let groups = this.#groups[rack];
    if (groups === undefined || this.#changes[rack] !== changes) {
      groups = this.#group(rack);
      this.#groups[rack] = groups;
      this.#changes[rack] = changes;
    }
    return groups;
  }

  #group(rack: number): Int32Array[] {
    const machines = this.#machines;
    const sorted = Array.from(machines.machinesOfRack[rack]!).filter((machine) =>
      machines.hasFreeSlot(machine),
    );
    const { hostOf } = machines;
    sorted.sort((a, b) => this.#compare(a, b) || hostOf[a]! - hostOf[b]! || a - b);
    const groups: Int32Array[] = [];
    for (let from = 0, to = 1; from < sorted.length; to++) {
      if (to < sorted.length && this.#compare(sorted[from]!, sorted[to]!) === 0) continue;
      groups.push(Int32Array.from(sorted.slice(from, to)));
      from = to;
    }
    return groups;
  }

  #compare(a: number, b: number): number {
    const { left, resourceCount } = this.#machines;
    for (let resource = 0; resource < resourceCount; resource++) {
      this.steps++;
      const difference = left[a * resourceCount + resource]! - left[b * resourceCount + resource]!;
      if (difference !== 0) return difference;
    }
    return 0;
  }
}
