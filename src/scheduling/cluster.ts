/**
 * The working copy of a cluster snapshot that a strategy changes while it places topologies.
 *
 * C1: a slot is held by one topology at most; C2: an executor has one slot at most. Machines and executors are indexed
 * by integer; free slots are taken from a heap, so no operation looks at all machines or all executors.
 * Source: the helper operations of Storm's `Cluster`.
 */
import { IsobarError } from '../base/index.js';
import type { ExecutorRange } from './assignment.js';
import type { ClusterSnapshot, ClusterTopology, Placement, PlacedWorker, Slot } from './cluster-snapshot.js';
import { compareSlots, slotKey } from './cluster-snapshot.js';
import { isComplete } from './complete-placement.js';
import { type ExecutorIndex, indexExecutors, NO_EXECUTOR } from './executor-index.js';
import type { PlannedExecutor } from './executors.js';
import { FreeSlotOrder } from './free-slot-order.js';
import { FreeSlots, holdsPort } from './free-slots.js';
import { compareRanges, compareText, inOrder, isSorted, rangeKey } from './order.js';

/** A machine, known or only named by a placement. */
interface Machine {
  readonly index: number;
  readonly id: string;
  readonly host: string;
  /** Registered in this round; false: workers are still placed on it, but it is away. */
  readonly known: boolean;
  blacklisted: boolean;
  readonly uptimeMs: number;
  /** Ports, ascending. */
  readonly offered: readonly number[];
  /** Slots held by any topology, whether or not they are still offered. */
  held: Map<number, Worker> | undefined;
  /** Free slots on which something may be placed. */
  readonly free: FreeSlots;
}

interface Worker {
  readonly machine: Machine;
  readonly topology: TopologyState;
  /** Its slot and its executors, which are in ascending order; never changed in place. */
  placed: PlacedWorker;
}

interface TopologyState {
  readonly id: string;
  readonly workers: number;
  readonly index: ExecutorIndex;
  /** By place in `index`. */
  readonly assigned: Uint8Array;
  assignedCount: number;
  /** Placed executors that the topology no longer has. */
  readonly stale: Set<string>;
  readonly placed: Set<Worker>;
  /** The placement that was given, as long as it is what the topology has. */
  given: readonly PlacedWorker[] | undefined;
}

export class WorkingCluster {
  readonly #machines: Machine[] = [];
  readonly #machineById = new Map<string, Machine>();
  readonly #topologies = new Map<string, TopologyState>();
  /** Made when the first free slot is asked for: most rounds need none. */
  #freeOrder: FreeSlotOrder | undefined;
  #freeSlots = 0;
  #steps = 0;

  /** Entries of the placement that conflict with others, or name an unknown topology, are left out. */
  constructor(snapshot: ClusterSnapshot) {
    const blacklist = snapshot.blacklistedHosts ?? new Set<string>();
    for (const { id, host, ports, uptimeMs = Infinity } of sortedBy(snapshot.supervisors, ({ id }) => id)) {
      this.#addMachine(id, host, true, blacklist.has(host), uptimeMs, ports);
    }
    for (const topology of sortedBy(snapshot.topologies, ({ id }) => id)) {
      this.#topologies.set(topology.id, toState(topology));
    }
    for (const [id, workers] of sortedBy([...snapshot.placement], ([key]) => key)) {
      const topology = this.#topologies.get(id);
      if (topology === undefined) continue;
      this.#load(inOrder(workers, compareSlots), topology);
    }
  }

  /** Elementary steps so far: heap moves, slots taken and executors placed. */
  get steps(): number {
    return this.#steps + (this.#freeOrder?.steps ?? 0);
  }

  /** Ids of all topologies, ascending. */
  topologyIds(): readonly string[] {
    return [...this.#topologies.keys()];
  }

  /** Ids of the registered supervisors, ascending. */
  supervisorIds(): readonly string[] {
    return this.#machines.filter(({ known }) => known).map(({ id }) => id);
  }

  /** Of those that only a placement names, in order of id. */
  unknownSupervisorIds(): readonly string[] {
    const unknown = this.#machines.filter(({ known }) => !known).map(({ id }) => id);
    return unknown.sort(compareText);
  }

  wantedWorkers(topologyId: string): number {
    return this.#topology(topologyId).workers;
  }

  executorCount(topologyId: string): number {
    return this.#topology(topologyId).assigned.length;
  }

  /** Ports held by any topology, ascending, whether or not the supervisor still offers them. */
  usedPorts(supervisor: string): readonly number[] {
    return ascending(this.#machineById.get(supervisor)?.held?.keys() ?? []);
  }

  /** Ports on which something may be placed, used ones included, ascending; none on a blacklisted host. */
  assignablePorts(supervisor: string): readonly number[] {
    const machine = this.#machineById.get(supervisor);
    return machine === undefined || machine.blacklisted ? [] : machine.offered;
  }

  /** Assignable ports that are not used, ascending. */
  availablePorts(supervisor: string): readonly number[] {
    return this.#machineById.get(supervisor)?.free.list() ?? [];
  }

  /** Available slots over all supervisors. */
  get freeSlotCount(): number {
    return this.#freeSlots;
  }

  /** Is the host of this supervisor blacklisted? false for an unknown one. */
  isBlacklisted(supervisor: string): boolean {
    return this.#machineById.get(supervisor)?.blacklisted ?? false;
  }

  /** The host of a registered supervisor; undefined for another one. */
  hostOf(supervisor: string): string | undefined {
    const machine = this.#machineById.get(supervisor);
    return machine?.known === true ? machine.host : undefined;
  }

  /** Nothing more is placed on this host; what runs there stays. */
  reserveHost(host: string): void {
    for (const machine of this.#machines) {
      if (!machine.known || machine.host !== host || machine.blacklisted) continue;
      machine.blacklisted = true;
      this.#freeSlots -= machine.free.count;
      machine.free.clear();
      this.#freeOrder?.changed(machine);
    }
  }

  /** What a slot holds; undefined: it is free, or nobody knows it. */
  workerAt({ supervisor, port }: Slot): (PlacedWorker & { readonly topologyId: string }) | undefined {
    const worker = this.#machineById.get(supervisor)?.held?.get(port);
    return worker === undefined ? undefined : { ...worker.placed, topologyId: worker.topology.id };
  }

  /** For how long the supervisor has been up, ms; infinite if it did not say, 0 if it is not known. */
  uptimeMs(supervisor: string): number {
    return this.#machineById.get(supervisor)?.uptimeMs ?? 0;
  }

  /** Is the slot offered by a registered supervisor on a host that is not blacklisted? */
  isAssignable({ supervisor, port }: Slot): boolean {
    const machine = this.#machineById.get(supervisor);
    return machine !== undefined && machine.known && !machine.blacklisted && holdsPort(machine.offered, port);
  }

  /** Slots that the topology holds. */
  assignedWorkers(topologyId: string): number {
    return this.#topology(topologyId).placed.size;
  }

  /** Executors of the topology that have no slot, in ascending order of first task. */
  unassignedExecutors(topologyId: string): PlannedExecutor[] {
    const { index, assigned, assignedCount } = this.#topology(topologyId);
    if (assignedCount === assigned.length) return [];
    return index.executors.filter((_, place) => assigned[place] === 0);
  }

  /** Does the topology want more workers than it has, or has it an executor without a slot? */
  needsScheduling(topologyId: string): boolean {
    return (
      this.assignedWorkers(topologyId) < this.wantedWorkers(topologyId) || this.hasUnassigned(topologyId)
    );
  }

  hasUnassigned(topologyId: string): boolean {
    const { assignedCount, assigned } = this.#topology(topologyId);
    return assignedCount < assigned.length;
  }

  /** Does a worker hold an executor that the topology no longer has? */
  hasOutdated(topologyId: string): boolean {
    return this.#topology(topologyId).stale.size > 0;
  }

  /** The topology's workers, in order of supervisor and port. */
  workersOf(topologyId: string): readonly PlacedWorker[] {
    const { given, placed } = this.#topology(topologyId);
    return given ?? [...placed].sort(compareWorkers).map((worker) => worker.placed);
  }

  /** All topologies that hold a slot. */
  placement(): Placement {
    const ids = this.topologyIds().filter((id) => this.assignedWorkers(id) > 0);
    return new Map(ids.map((id) => [id, this.workersOf(id)]));
  }

  /**
   * The first `count` available slots in interleaved order (see `FreeSlotOrder`). Nothing is taken yet.
   * Cost: O(count log machines).
   */
  firstFreeSlots(count: number): Slot[] {
    this.#freeOrder ??= new FreeSlotOrder(this.#machines);
    return this.#freeOrder.first(count);
  }

  /**
   * Gives a free slot to a topology. Does not ask whether the supervisor exists or offers the port.
   *
   * @throws SLOT_OCCUPIED, TOPOLOGY_NOT_ALIVE, EXECUTOR_ALREADY_ASSIGNED
   */
  assign(slot: Slot, topologyId: string, executors: readonly ExecutorRange[]): void {
    const topology = this.#topologies.get(topologyId);
    const conflict = this.#take(toPlaced(slot, executors), topology);
    if (conflict !== undefined) throw conflict;
  }

  /**
   * Adds executors to a worker that the topology already has.
   *
   * @throws SLOT_OCCUPIED if the slot is not the topology's, EXECUTOR_ALREADY_ASSIGNED
   */
  extend(slot: Slot, topologyId: string, executors: readonly ExecutorRange[]): void {
    const topology = this.#topology(topologyId);
    const worker = this.#machineById.get(slot.supervisor)?.held?.get(slot.port);
    if (worker?.topology !== topology) throw occupied(slot, worker?.topology.id ?? 'nobody');
    const twice = this.#markAll(topology, executors);
    if (twice !== undefined) throw alreadyAssigned(topologyId, twice);
    worker.placed = toPlaced(slot, [...worker.placed.executors, ...executors]);
    topology.given = undefined;
  }

  /** Takes a slot from whoever holds it; nothing happens if nobody does. */
  freeSlot(slot: Slot): void {
    const machine = this.#machineById.get(slot.supervisor);
    const worker = machine?.held?.get(slot.port);
    if (machine === undefined || worker === undefined) return;
    machine.held?.delete(slot.port);
    worker.topology.placed.delete(worker);
    worker.topology.given = undefined;
    for (const range of worker.placed.executors) this.#unmark(worker.topology, range);
    if (machine.known && !machine.blacklisted && holdsPort(machine.offered, slot.port)) {
      machine.free.give(slot.port);
      this.#freeSlots++;
      this.#freeOrder?.changed(machine);
    }
  }

  #addMachine(
    id: string,
    host: string,
    known: boolean,
    blacklisted: boolean,
    uptimeMs: number,
    ports: readonly number[],
  ): Machine {
    const offered = isStrictlyAscending(ports) ? ports : ascending(new Set(ports));
    const free = new FreeSlots(blacklisted ? [] : offered);
    const index = this.#machines.length;
    const held = undefined;
    const machine: Machine = { index, id, host, known, blacklisted, uptimeMs, offered, held, free };
    this.#machines.push(machine);
    this.#machineById.set(id, machine);
    this.#freeSlots += free.count;
    return machine;
  }

  /** Takes the workers of a placement, leaving out those that conflict with others. */
  #load(workers: readonly PlacedWorker[], topology: TopologyState): void {
    const machines = isComplete(workers, topology.index) ? this.#machinesOfFree(workers) : undefined;
    if (machines !== undefined) {
      for (let index = 0; index < workers.length; index++)
        this.#hold(workers[index]!, machines[index]!, topology);
      topology.assigned.fill(1);
      topology.assignedCount = topology.assigned.length;
      this.#steps += topology.assigned.length;
      topology.given = workers;
      return;
    }
    let taken = 0;
    for (const worker of workers) {
      const conflict = this.#take(toPlaced(worker, worker.executors), topology);
      if (conflict === undefined) taken++;
    }
    const isAsGiven =
      taken === workers.length && workers.every(({ executors }) => isSorted(executors, compareRanges));
    if (isAsGiven && taken > 0) topology.given = workers;
  }

  /** Machines of slots in order, if nobody holds any of the slots. */
  #machinesOfFree(slots: readonly Slot[]): readonly Machine[] | undefined {
    const machines: Machine[] = [];
    let machine: Machine | undefined;
    for (const { supervisor, port } of slots) {
      if (machine?.id !== supervisor) machine = this.#machineOf(supervisor);
      if (machine.held?.has(port) === true) return undefined;
      machines.push(machine);
    }
    return machines;
  }

  #holder({ supervisor, port }: Slot): Worker | undefined {
    return this.#machineById.get(supervisor)?.held?.get(port);
  }

  /** Gives a slot to a topology; with a conflict, which is returned, nothing has changed. */
  #take(worker: PlacedWorker, topology: TopologyState | undefined): IsobarError | undefined {
    const holder = this.#holder(worker);
    if (holder !== undefined) return occupied(worker, holder.topology.id);
    if (topology === undefined) {
      return new IsobarError(
        'TOPOLOGY_NOT_ALIVE',
        `Slot ${slotKey(worker)} cannot be given to an unknown topology.`,
      );
    }
    const twice = this.#markAll(topology, worker.executors);
    if (twice !== undefined) return alreadyAssigned(topology.id, twice);
    this.#hold(worker, this.#machineOf(worker.supervisor), topology);
    return undefined;
  }

  #hold(placed: PlacedWorker, machine: Machine, topology: TopologyState): void {
    const worker: Worker = { machine, topology, placed };
    machine.held ??= new Map();
    machine.held.set(placed.port, worker);
    topology.placed.add(worker);
    topology.given = undefined;
    if (!machine.free.take(placed.port)) return;
    this.#freeSlots--;
    this.#freeOrder?.changed(machine);
  }

  /** The machine of this id; one that only a placement names is added as unknown. */
  #machineOf(id: string): Machine {
    return this.#machineById.get(id) ?? this.#addMachine(id, '', false, false, 0, []);
  }

  /** Notes that executors have a slot. If one of them has one already it is returned, and nothing was noted. */
  #markAll(topology: TopologyState, executors: readonly ExecutorRange[]): ExecutorRange | undefined {
    const { index, assigned, stale } = topology;
    for (let count = 0; count < executors.length; count++) {
      const range = executors[count]!;
      const place = index.indexOf(range);
      const isTwice = place === NO_EXECUTOR ? stale.has(rangeKey(range)) : assigned[place] === 1;
      if (isTwice) {
        for (const marked of executors.slice(0, count)) this.#unmark(topology, marked);
        return range;
      }
      this.#steps++;
      if (place === NO_EXECUTOR) {
        stale.add(rangeKey(range));
      } else {
        assigned[place] = 1;
        topology.assignedCount++;
      }
    }
    return undefined;
  }

  #unmark(topology: TopologyState, range: ExecutorRange): void {
    this.#steps++;
    const place = topology.index.indexOf(range);
    if (place === NO_EXECUTOR) {
      topology.stale.delete(rangeKey(range));
      return;
    }
    topology.assignedCount -= topology.assigned[place]!;
    topology.assigned[place] = 0;
  }

  #topology(id: string): TopologyState {
    const topology = this.#topologies.get(id);
    if (topology === undefined) {
      throw new IsobarError('TOPOLOGY_NOT_ALIVE', `Topology "${id}" is not in this snapshot.`, { found: id });
    }
    return topology;
  }
}

function toState({ id, workers, executors }: ClusterTopology): TopologyState {
  return {
    id,
    workers,
    index: indexExecutors(executors),
    assigned: new Uint8Array(executors.length),
    assignedCount: 0,
    stale: new Set(),
    placed: new Set(),
    given: undefined,
  };
}

function toPlaced({ supervisor, port }: Slot, executors: readonly ExecutorRange[]): PlacedWorker {
  return { supervisor, port, executors: inOrder(executors, compareRanges) };
}

/** In order of supervisor and port; registered machines are numbered in order of id. */
function compareWorkers(a: Worker, b: Worker): number {
  if (a.machine.known && b.machine.known)
    return a.machine.index - b.machine.index || a.placed.port - b.placed.port;
  return compareSlots(a.placed, b.placed);
}

function occupied(slot: Slot, holder: string): IsobarError {
  return new IsobarError('SLOT_OCCUPIED', `Slot ${slotKey(slot)} is held by ${holder}.`, {
    expected: 'a free slot',
    found: holder,
    where: slotKey(slot),
  });
}

function alreadyAssigned(topologyId: string, range: ExecutorRange): IsobarError {
  return new IsobarError(
    'EXECUTOR_ALREADY_ASSIGNED',
    `Executor ${rangeKey(range)} of ${topologyId} already has a slot.`,
    { expected: 'an executor without a slot', found: rangeKey(range), where: topologyId },
  );
}

function ascending(numbers: Iterable<number>): number[] {
  return [...numbers].sort((a, b) => a - b);
}

function isStrictlyAscending(numbers: readonly number[]): boolean {
  for (let index = 1; index < numbers.length; index++) {
    if (numbers[index - 1]! >= numbers[index]!) return false;
  }
  return true;
}

function sortedBy<T>(items: readonly T[], key: (item: T) => string): readonly T[] {
  return inOrder(items, (a, b) => compareText(key(a), key(b)));
}
