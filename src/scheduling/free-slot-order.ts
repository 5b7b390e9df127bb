/**
 * The order in which strategies take free slots, kept up to date while slots come and go: machines with most free slots
 * first (ties by index), one slot of each, then a second of each that has one, and so on; lowest port first.
 * It is the order of `sortSlots`, without sorting all slots for every topology.
 */
import type { Slot } from './cluster-snapshot.js';
import type { FreeSlots } from './free-slots.js';
import { MinimumHeap } from './minimum-heap.js';

/** Bounds of the two parts of a heap entry; together it stays below 2^53. Ports alone keep a machine under 2^20 slots. */
const MOST_SLOTS = 2 ** 20;
const MOST_MACHINES = 2 ** 32;

/** A machine whose free slots are given out. */
export interface FreeSlotsOfMachine {
  readonly index: number;
  readonly id: string;
  readonly free: FreeSlots;
}

export class FreeSlotOrder {
  readonly #machines: readonly FreeSlotsOfMachine[];
  /** Free slots and index of a machine in one number; entries whose number of slots is outdated are skipped. */
  readonly #mostFreeFirst = new MinimumHeap();
  #steps = 0;

  constructor(machines: readonly FreeSlotsOfMachine[]) {
    this.#machines = machines;
    for (const machine of machines) this.changed(machine);
  }

  get steps(): number {
    return this.#steps + this.#mostFreeFirst.steps;
  }

  /** To be called when a machine has more or fewer free slots than before. */
  changed({ index, free }: FreeSlotsOfMachine): void {
    if (free.count > 0) this.#mostFreeFirst.push((MOST_SLOTS - free.count) * MOST_MACHINES + index);
  }

  /** The first `count` free slots, fewer if there are no more. Cost: O(count log machines). */
  first(count: number): Slot[] {
    const machines = this.#mostFree(count);
    const slots: Slot[] = [];
    for (let row = 0; slots.length < count; row++) {
      const before = slots.length;
      for (const { id, free } of machines) {
        // Machines come by size, so the first one without a slot in this row ends it.
        if (row >= free.count || slots.length >= count) break;
        this.#steps++;
        slots.push({ supervisor: id, port: free.at(row) });
      }
      if (slots.length === before) break;
    }
    return slots;
  }

  /** The `count` machines with most free slots. */
  #mostFree(count: number): readonly FreeSlotsOfMachine[] {
    const machines: FreeSlotsOfMachine[] = [];
    // Entries of a machine with the same number of slots follow one another.
    let last = -1;
    while (machines.length < count) {
      const entry = this.#mostFreeFirst.pop();
      if (entry === undefined) break;
      const machine = this.#machines[entry % MOST_MACHINES]!;
      const isCurrent = MOST_SLOTS - Math.floor(entry / MOST_MACHINES) === machine.free.count;
      if (!isCurrent || machine.index === last) continue;
      machines.push(machine);
      last = machine.index;
    }
    for (const machine of machines) this.changed(machine);
    return machines;
  }
}
