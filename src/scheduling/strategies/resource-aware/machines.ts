/**
 * Supervisors, hosts and racks by integer, with what is left of their resources and who holds their slots.
 *
 * Indexes follow the order of ids, so that comparing indexes breaks ties by id. Supervisors that only a placement names
 * follow the registered ones; they and those of blacklisted hosts are not usable: they belong to no host and no rack.
 */
import type { ClusterSnapshot, ClusterSupervisor, Slot } from '../../cluster-snapshot.js';
import { compareText } from '../../order.js';
import { slotList } from '../../slot-list.js';
import { CPU, FIRST_GENERIC, MEMORY, NONE, toAmount } from './amounts.js';
import { hostsAndRacks } from './hosts-and-racks.js';

export { NONE } from './amounts.js';

export class Machines {
  /** Supervisor ids. */
  readonly ids: readonly string[];
  readonly indexOfId: ReadonlyMap<string, number>;
  /** Registered and not blacklisted. */
  readonly usable: Uint8Array;
  readonly hostOf: Int32Array;
  readonly rackOf: Int32Array;
  readonly hostNames: readonly string[];
  readonly indexOfHost: ReadonlyMap<string, number>;
  /** Usable supervisors of each host, ascending. */
  readonly machinesOfHost: readonly (readonly number[])[];
  readonly rackNames: readonly string[];
  readonly hostsOfRack: readonly (readonly number[])[];
  /** Usable supervisors of each rack, ascending. */
  readonly machinesOfRack: readonly (readonly number[])[];

  /** Processor, memory, and each resource that any supervisor or topology names. */
  readonly resourceCount: number;
  readonly genericNames: readonly string[];
  /** By supervisor, then resource. */
  readonly offered: Float64Array;
  /** Offered minus used; negative where a placement that was there before uses more than is offered. */
  readonly left: Float64Array;
  /** By rack, then resource: the sum of what is left of its supervisors, each at least 0. */
  readonly leftOfRack: Float64Array;
  /** Changes to a rack so far, for those who keep something that follows from it. */
  readonly changesOfRack: Int32Array;

  /** Slots of supervisor i: from `firstSlot[i]` to before `firstSlot[i + 1]`, in order of port. */
  readonly firstSlot: Int32Array;
  readonly slotCount: number;
  /** Index of the topology that holds the slot, or NONE. */
  readonly slotHolder: Int32Array;
  readonly machineOfSlot: Int32Array;
  /** By registered supervisor, ascending. */
  readonly #ports: readonly (readonly number[])[];

  constructor(snapshot: ClusterSnapshot, genericNames: readonly string[]) {
    this.genericNames = genericNames;
    this.resourceCount = FIRST_GENERIC + genericNames.length;
    const registered = uniqueSorted(snapshot.supervisors);
    const ports = registered.map((supervisor) => sortedPorts(supervisor.ports));
    const ids = registered.map(({ id }) => id);
    const indexOfId = new Map<string, number>();
    for (let machine = 0; machine < ids.length; machine++) indexOfId.set(ids[machine]!, machine);
    for (const id of placedElsewhere(snapshot, indexOfId)) {
      indexOfId.set(id, ids.length);
      ids.push(id);
    }
    this.ids = ids;
    this.indexOfId = indexOfId;

    const count = this.ids.length;
    this.usable = new Uint8Array(count);
    for (let machine = 0; machine < registered.length; machine++)
      this.usable[machine] = snapshot.blacklistedHosts?.has(registered[machine]!.host) === true ? 0 : 1;
    const grouped = hostsAndRacks(registered, this.usable);
    this.hostOf = grouped.hostOf;
    this.rackOf = grouped.rackOf;
    this.hostNames = grouped.hostNames;
    this.rackNames = grouped.rackNames;
    this.indexOfHost = grouped.indexOfHost;
    this.machinesOfHost = membersOf(this.hostOf, this.hostNames.length);
    this.machinesOfRack = membersOf(this.rackOf, this.rackNames.length);
    this.hostsOfRack = membersOf(grouped.rackOfHost, this.rackNames.length);

    this.offered = offeredAmounts(registered, count, genericNames);
    this.left = this.offered.slice();
    this.leftOfRack = new Float64Array(this.rackNames.length * this.resourceCount);
    this.changesOfRack = new Int32Array(this.rackNames.length);
    for (let machine = 0; machine < count; machine++) this.#addToRack(machine);
    this.firstSlot = new Int32Array(count + 1);
    for (let machine = 0; machine < count; machine++) {
      this.firstSlot[machine + 1] = this.firstSlot[machine]! + (ports[machine]?.length ?? 0);
    }
    this.#ports = ports;
    this.slotCount = this.firstSlot[count]!;
    this.slotHolder = new Int32Array(this.slotCount).fill(NONE);
    // There may be a hundred thousand slots, of which a round uses few: filled as a block for each supervisor.
    this.machineOfSlot = new Int32Array(this.slotCount);
    for (let machine = 1; machine < count; machine++)
      this.machineOfSlot.fill(machine, this.firstSlot[machine], this.firstSlot[machine + 1]);
  }

  get count(): number {
    return this.ids.length;
  }

  get rackCount(): number {
    return this.rackNames.length;
  }

  /** What is free of a resource, at least 0. */
  free(machine: number, resource: number): number {
    const left = this.left[machine * this.resourceCount + resource]!;
    return left > 0 ? left : 0;
  }

  /** Uses up `amount` of a resource; a negative amount gives it back. */
  use(machine: number, resource: number, amount: number): void {
    const at = machine * this.resourceCount + resource;
    const before = this.left[at]!;
    const after = before - amount;
    this.left[at] = after;
    const rack = this.rackOf[machine]!;
    if (rack === NONE) return;
    this.leftOfRack[rack * this.resourceCount + resource]! += Math.max(after, 0) - Math.max(before, 0);
    this.changesOfRack[rack]!++;
  }

  /** The index of a slot, or NONE if the supervisor is not known or does not offer the port. */
  slotIndex(machine: number, port: number): number {
    const ports = this.#ports[machine];
    if (ports === undefined || ports.length === 0) return NONE;
    const first = this.firstSlot[machine]!;
    // Ports mostly follow each other.
    const direct = port - ports[0]!;
    if (ports[direct] === port) return first + direct;
    let low = 0;
    let high = ports.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = ports[middle]!;
      if (found === port) return first + middle;
      if (found < port) low = middle + 1;
      else high = middle - 1;
    }
    return NONE;
  }

  slot(index: number): Slot {
    const machine = this.machineOfSlot[index]!;
    // Whoever has slots is registered.
    return { supervisor: this.ids[machine]!, port: this.#ports[machine]![index - this.firstSlot[machine]!]! };
  }

  /** Has the supervisor a slot that nobody holds? */
  hasFreeSlot(machine: number): boolean {
    const end = this.firstSlot[machine + 1]!;
    for (let slot = this.firstSlot[machine]!; slot < end; slot++) {
      if (this.slotHolder[slot] === NONE) return true;
    }
    return false;
  }

  /** What all usable supervisors together have left, less what others of them lack. */
  totalLeft(resource: number): number {
    let sum = 0;
    for (let machine = 0; machine < this.count; machine++) {
      if (this.usable[machine] === 1) sum += this.left[machine * this.resourceCount + resource]!;
    }
    return Math.max(sum, 0);
  }

  /** What all registered supervisors offer, blacklisted ones included. */
  totalOffered(resource: number): number {
    let sum = 0;
    for (let at = resource; at < this.offered.length; at += this.resourceCount) sum += this.offered[at]!;
    return sum;
  }

  #addToRack(machine: number): void {
    const rack = this.rackOf[machine]!;
    if (rack === NONE) return;
    for (let resource = 0; resource < this.resourceCount; resource++) {
      this.leftOfRack[rack * this.resourceCount + resource]! += this.free(machine, resource);
    }
  }
}

/** Without repeated ids, in order of id. */
function uniqueSorted(supervisors: readonly ClusterSupervisor[]): readonly ClusterSupervisor[] {
  for (let index = 1; index < supervisors.length; index++) {
    if (supervisors[index - 1]!.id < supervisors[index]!.id) continue;
    const byId = new Map<string, ClusterSupervisor>();
    for (const supervisor of supervisors) if (!byId.has(supervisor.id)) byId.set(supervisor.id, supervisor);
    return [...byId.values()].sort((a, b) => compareText(a.id, b.id));
  }
  return supervisors;
}

/** Supervisors that hold workers but are not registered, ascending. */
function placedElsewhere(
  { placement }: ClusterSnapshot,
  registered: ReadonlyMap<string, number>,
): readonly string[] {
  const others = new Set<string>();
  for (const workers of placement.values()) {
    for (const supervisor of slotList(workers).supervisors) {
      if (!registered.has(supervisor)) others.add(supervisor);
    }
  }
  return [...others].sort(compareText);
}

function membersOf(groupOf: Int32Array, groups: number): number[][] {
  const members: number[][] = [];
  for (let group = 0; group < groups; group++) members.push([]);
  for (let index = 0; index < groupOf.length; index++) {
    const group = groupOf[index]!;
    if (group !== NONE) members[group]!.push(index);
  }
  return members;
}

function offeredAmounts(
  supervisors: readonly ClusterSupervisor[],
  count: number,
  genericNames: readonly string[],
): Float64Array {
  const resources = FIRST_GENERIC + genericNames.length;
  const offered = new Float64Array(count * resources);
  for (let machine = 0; machine < supervisors.length; machine++) {
    const offer = supervisors[machine]!.resources;
    const first = machine * resources;
    offered[first + CPU] = toAmount(offer?.cpuPercent);
    offered[first + MEMORY] = toAmount(offer?.memoryMb);
    for (let name = 0; name < genericNames.length; name++)
      offered[first + FIRST_GENERIC + name] = toAmount(offer?.generic?.[genericNames[name]!]);
  }
  return offered;
}

function sortedPorts(ports: readonly number[]): readonly number[] {
  for (let index = 1; index < ports.length; index++) {
    if (ports[index - 1]! >= ports[index]!) return [...new Set(ports)].sort((a, b) => a - b);
  }
  return ports;
}
