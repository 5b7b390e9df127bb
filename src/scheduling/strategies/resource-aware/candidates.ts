/**
 * Finds the first supervisor in order that holds an executor, without putting the others in order.
 *
 * While executors are only added, what does not fit once never fits again, unless memory is shared. So each component has
 * a list of supervisors per rack that shrinks, and of those that the topology has not touched only the first of each group
 * of equals is looked at. The result is the one that walking the whole order would give.
 */
import type { IdleGroups } from './idle-groups.js';
import type { MachineOrder, Shares } from './machine-order.js';
import { type Machines, NONE } from './machines.js';
import type { Trial } from './trial.js';

/** What a component can still use of a rack. */
interface OpenRack {
  /** Supervisors that the topology has touched. */
  readonly touched: number[];
  /** How many of the rack's touched supervisors have been seen. */
  seen: number;
  /** Indexes of groups. */
  readonly groups: number[];
}

export class Candidates {
  readonly #machines: Machines;
  readonly #trial: Trial;
  readonly #order: MachineOrder;
  readonly #idle: IdleGroups;
  readonly #touched: Uint8Array;
  readonly #touchedOfRack: number[][];
  readonly #groupsOfRack: (readonly Int32Array[] | undefined)[];
  /** By rack, then group: the first member that may be untouched. */
  readonly #heads: Int32Array[];
  /** By component, then rack. */
  readonly #open: (OpenRack | undefined)[];
  /** By component, then supervisor: slots before this one, counted from its first, hold no executor of the component. */
  readonly #fullSlots: Int32Array;
  readonly #simple: Uint8Array;
  /** The best supervisor of a rack so far, or NONE; executors of the topology there, its slot and its shares. */
  #bestMachine = NONE;
  #bestCount = 0;
  #bestSlot = NONE;
  readonly #best: Shares = { average: 0, smallest: 0 };
  readonly #other: Shares = { average: 0, smallest: 0 };

  constructor(trial: Trial, order: MachineOrder, idle: IdleGroups) {
    const { machines } = trial;
    this.#machines = machines;
    this.#trial = trial;
    this.#order = order;
    this.#idle = idle;
    this.#touched = Uint8Array.from(order.isListed);
    this.#touchedOfRack = Array.from({ length: machines.rackCount }, () => []);
    this.#groupsOfRack = new Array<readonly Int32Array[] | undefined>(machines.rackCount);
    this.#heads = new Array<Int32Array>(machines.rackCount);
    const components = trial.request.components.length;
    this.#open = new Array<OpenRack | undefined>(components * machines.rackCount);
    this.#fullSlots = new Int32Array(components * machines.count);
    this.#simple = new Uint8Array(machines.rackCount);
    for (let rack = 0; rack < machines.rackCount; rack++) {
      this.#simple[rack] =
        machines.hostsOfRack[rack]!.length === machines.machinesOfRack[rack]!.length ? 1 : 0;
    }
    trial.countOfMachine.forEach((count, machine) => {
      if (count > 0) this.touch(machine);
    });
  }

  /** Notes that the topology is, or has been, on the supervisor. */
  touch(machine: number): void {
    if (this.#touched[machine] === 1) return;
    this.#touched[machine] = 1;
    const rack = this.#machines.rackOf[machine]!;
    if (rack !== NONE) this.#touchedOfRack[rack]!.push(machine);
  }

  /** The slot that an executor of the component goes to by the present order, or NONE. */
  firstSlot(component: number): number {
    const order = this.#order;
    for (const machine of order.listed.favoured) {
      const slot = this.#slotOn(component, machine);
      if (slot !== NONE) return slot;
    }
    for (let place = 0; place < this.#machines.rackCount; place++) {
      const rack = order.rackAt(place);
      const slot = this.#simple[rack] === 1 ? this.#bestInRack(component, rack) : this.#walk(component, rack);
      if (slot !== NONE) return slot;
    }
    for (const machine of order.listed.last) {
      const slot = this.#slotOn(component, machine);
      if (slot !== NONE) return slot;
    }
    return NONE;
  }

  /** A rack in which supervisors share hosts is walked in order. */
  #walk(component: number, rack: number): number {
    for (const machine of this.#order.inRack(rack)) {
      const slot = this.#slotOn(component, machine);
      if (slot !== NONE) return slot;
    }
    return NONE;
  }

  #bestInRack(component: number, rack: number): number {
    const order = this.#order;
    order.reach(rack);
    const open = this.#openRack(component, rack);
    this.#bestMachine = NONE;
    const shrinks = !this.#trial.sharesMemory(component);
    for (let index = 0; index < open.touched.length; ) {
      const machine = open.touched[index]!;
      // Executors that are there come first: whether it would fit where fewer are need not be known.
      const count = order.countThen(machine);
      if (this.#bestMachine !== NONE && count < this.#bestCount) {
        index++;
        continue;
      }
      const slot = this.#slotOn(component, machine);
      if (slot !== NONE) this.#consider(machine, slot, count);
      if (slot === NONE && shrinks) dropAt(open.touched, index);
      else index++;
    }
    // None of the topology is on the others.
    if (this.#bestMachine !== NONE && this.#bestCount > 0) return this.#bestSlot;
    for (let index = 0; index < open.groups.length; ) {
      const machine = this.#head(rack, open.groups[index]!);
      const slot = machine === NONE ? NONE : this.#slotOn(component, machine);
      if (slot !== NONE) {
        this.#consider(machine, slot, 0);
        index++;
      } else dropAt(open.groups, index);
    }
    return this.#bestMachine === NONE ? NONE : this.#bestSlot;
  }

  /** Takes the slot if its supervisor, with `count` executors of the topology, comes before the best one so far. */
  #consider(machine: number, slot: number, count: number): void {
    const { hostOf } = this.#machines;
    const isFirst = this.#bestMachine === NONE;
    this.#order.shareOfMachine(machine, this.#other);
    if (!isFirst && count === this.#bestCount) {
      const comparison =
        this.#order.compareShares(this.#other, this.#best) || hostOf[machine]! - hostOf[this.#bestMachine]!;
      if (comparison > 0) return;
    }
    this.#best.average = this.#other.average;
    this.#best.smallest = this.#other.smallest;
    this.#bestMachine = machine;
    this.#bestSlot = slot;
    this.#bestCount = count;
  }

  #openRack(component: number, rack: number): OpenRack {
    const at = component * this.#machines.rackCount + rack;
    let open = this.#open[at];
    if (open === undefined) {
      open = { touched: [], seen: 0, groups: [...this.#groups(rack).keys()] };
      this.#open[at] = open;
    }
    const touched = this.#touchedOfRack[rack]!;
    while (open.seen < touched.length) open.touched.push(touched[open.seen++]!);
    return open;
  }

  #groups(rack: number): readonly Int32Array[] {
    let groups = this.#groupsOfRack[rack];
    if (groups === undefined) {
      groups = this.#idle.inRack(rack);
      this.#groupsOfRack[rack] = groups;
      this.#heads[rack] = new Int32Array(groups.length);
    }
    return groups;
  }

  /** The first untouched supervisor of a group, or NONE. */
  #head(rack: number, group: number): number {
    const members = this.#groups(rack)[group]!;
    const heads = this.#heads[rack]!;
    while (heads[group]! < members.length && this.#touched[members[heads[group]!]!] === 1) heads[group]!++;
    return members[heads[group]!] ?? NONE;
  }

  #slotOn(component: number, machine: number): number {
    const trial = this.#trial;
    if (!trial.couldFit(component, machine)) return NONE;
    const { firstSlot, slotHolder, count } = this.#machines;
    const shrinks = !trial.sharesMemory(component);
    const at = component * count + machine;
    const first = firstSlot[machine]!;
    const end = firstSlot[machine + 1]!;
    for (let slot = first + this.#fullSlots[at]!; slot < end; slot++) {
      if (slotHolder[slot] === NONE) {
        if (trial.fits(component, slot)) return slot;
        // All slots that are not opened are alike.
        if (!trial.isOpened(slot)) return NONE;
      }
      if (shrinks) this.#fullSlots[at] = slot + 1 - first;
    }
    return NONE;
  }
}

function dropAt(list: number[], index: number): void {
  list[index] = list.at(-1)!;
  list.pop();
}
