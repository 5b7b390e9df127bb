/**
 * A topology with what it has where. Loading takes the workers of a placement, leaving out those that conflict with
 * others; taking and giving back slots keeps the machines' books.
 */
import { compareSlots, type PlacedWorker } from '../../cluster-snapshot.js';
import { inOrder } from '../../order.js';
import { CPU, MEMORY } from './amounts.js';
import { type Machines, NONE } from './machines.js';
import { type PlacedList, placedList } from './placed-list.js';
import { addRequest, totalsOf, type RequestTotals, type TopologyRequest } from './topology-request.js';

/** A worker by integer. `slot` is NONE where the supervisor does not offer the port any more. */
export interface HeldWorker {
  readonly machine: number;
  readonly slot: number;
  readonly placed: PlacedWorker;
  /** The list that has it, and its place there. */
  readonly list: PlacedList;
  readonly at: number;
}

/** Slots that somebody holds although nobody offers them, by supervisor's index and port. */
export class TakenSlots {
  readonly #ports = new Map<number, Set<number>>();

  /** false: somebody holds it already. */
  take(machine: number, port: number): boolean {
    const ports = this.#ports.get(machine);
    if (ports === undefined) this.#ports.set(machine, new Set([port]));
    else if (ports.has(port)) return false;
    else ports.add(port);
    return true;
  }
}

export class TopologyState {
  readonly index: number;
  readonly request: TopologyRequest;
  readonly totals: RequestTotals;
  /** What `load` was given, as long as nothing has changed. */
  loaded: readonly PlacedWorker[] | undefined;
  /** By executor: 1 if it has a slot. */
  readonly assigned: Uint8Array;
  unassigned: number;
  #workers: readonly HeldWorker[] = [];

  constructor(index: number, request: TopologyRequest) {
    this.index = index;
    this.request = request;
    this.totals = totalsOf(request);
    this.assigned = new Uint8Array(request.executors.length);
    this.unassigned = request.executors.length;
  }

  /** In order of supervisor and port. */
  get workers(): readonly HeldWorker[] {
    return this.#workers;
  }

  /** Takes the workers of a placement, but for slots that others hold; `taken` has those that nobody offers. */
  load(unordered: readonly PlacedWorker[], machines: Machines, taken: TakenSlots): void {
    const list = placedList(unordered, this.request);
    const { workers, supervisors, firstWorker, ports, isDisjoint } = list;
    const { slotHolder, indexOfId } = machines;
    const held: HeldWorker[] = [];
    for (let index = 0; index < supervisors.length; index++) {
      const machine = indexOfId.get(supervisors[index]!) ?? NONE;
      for (let at = firstWorker[index]!; at < firstWorker[index + 1]!; at++) {
        const slot = machines.slotIndex(machine, ports[at]!);
        if (slot !== NONE && slotHolder[slot] !== NONE) continue;
        if (!isDisjoint && !this.#mark(list, at)) continue;
        if (slot !== NONE) slotHolder[slot] = this.index;
        else if (!taken.take(machine, ports[at]!)) {
          if (!isDisjoint) this.#unmark(list, at);
          continue;
        }
        held.push({ machine, slot, placed: workers[at]!, list, at });
      }
    }
    if (isDisjoint) this.#markAll(list, held);
    this.#workers = held;
    if (held.length === workers.length) this.loaded = workers;
  }

  /** Adds all that the present workers use to the books of what machines have left. */
  enter(machines: Machines, minimumWorkerCpu: number): void {
    this.#account(this.#workers, machines, 1, minimumWorkerCpu);
  }

  #account(workers: readonly HeldWorker[], machines: Machines, sign: 1 | -1, minimumWorkerCpu: number): void {
    const { regions, resourceCount } = this.request;
    const sharedByMachine = new Map<number, Set<number>>();
    for (const { machine, list, at } of workers) {
      const { use } = list;
      const first = at * resourceCount;
      machines.use(machine, CPU, sign * Math.max(use[first + CPU]!, minimumWorkerCpu));
      for (let resource = MEMORY; resource < resourceCount; resource++) {
        const amount = use[first + resource]!;
        if (amount > 0) machines.use(machine, resource, sign * amount);
      }
      if (regions.length === 0 || list.regions[at]!.length === 0) continue;
      const seen = sharedByMachine.get(machine) ?? new Set();
      sharedByMachine.set(machine, seen);
      for (const region of list.regions[at]!) {
        if (seen.has(region)) continue;
        seen.add(region);
        machines.use(machine, MEMORY, sign * regions[region]!.offHeapMachine);
      }
    }
  }

  /** Memory of all present workers, shared parts included. */
  memoryInUse(): number {
    const { regions, resourceCount } = this.request;
    const sharedByMachine = new Set<string>();
    let memory = 0;
    for (const { machine, list, at } of this.#workers) {
      memory += list.use[at * resourceCount + MEMORY]!;
      for (const region of list.regions[at] ?? []) {
        const key = `${machine}:${region}`;
        if (sharedByMachine.has(key)) continue;
        sharedByMachine.add(key);
        memory += regions[region]!.offHeapMachine;
      }
    }
    return memory;
  }

  /** What the executors that have a slot ask for, without shared memory. By resource, as machines count them. */
  assignedRequests(): Float64Array {
    const { componentOf, components, resourceCount } = this.request;
    const counts = new Int32Array(components.length);
    for (let executor = 0; executor < componentOf.length; executor++) {
      counts[componentOf[executor]!]! += this.assigned[executor]!;
    }
    const sums = new Float64Array(resourceCount);
    counts.forEach((count, component) => addRequest(sums, this.request, component, 0, count));
    return sums;
  }

  /** Gives all slots back. */
  release(machines: Machines, minimumWorkerCpu: number): readonly HeldWorker[] {
    const workers = this.#workers;
    this.loaded = undefined;
    this.#account(workers, machines, -1, minimumWorkerCpu);
    for (const { slot } of workers) if (slot !== NONE) machines.slotHolder[slot] = NONE;
    this.#workers = [];
    this.assigned.fill(0);
    this.unassigned = this.request.executors.length;
    return workers;
  }

  /** Takes workers in free slots in addition to the present ones, which it follows in no particular order. */
  take(workers: readonly HeldWorker[], machines: Machines, minimumWorkerCpu: number): void {
    this.loaded = undefined;
    // What is shared on a machine is counted once, whichever of its workers bring it.
    const isShared = this.request.regions.length > 0;
    if (isShared) this.#account(this.#workers, machines, -1, minimumWorkerCpu);
    for (const { slot, list, at } of workers) {
      if (slot !== NONE) machines.slotHolder[slot] = this.index;
      this.#mark(list, at);
    }
    this.#workers = inOrder([...this.#workers, ...workers], (a, b) => compareSlots(a.placed, b.placed));
    this.#account(isShared ? this.#workers : workers, machines, 1, minimumWorkerCpu);
  }

  /** Notes that the executors of all held workers of a list have a slot; none of them is in it twice. */
  #markAll(list: PlacedList, held: readonly HeldWorker[]): void {
    if (held.length === list.workers.length && list.executors.length === this.assigned.length) {
      this.assigned.fill(1);
      this.unassigned = 0;
    } else for (const { at } of held) this.#mark(list, at);
  }

  /** Notes that a worker's executors have a slot; false, with nothing noted, if one has already. */
  #mark({ firstExecutor, executors }: PlacedList, worker: number): boolean {
    const { assigned } = this;
    const first = firstExecutor[worker]!;
    const end = firstExecutor[worker + 1]!;
    for (let place = first; place < end; place++) {
      const executor = executors[place]!;
      if (assigned[executor] === 1) {
        for (let marked = first; marked < place; marked++) assigned[executors[marked]!] = 0;
        return false;
      }
      assigned[executor] = 1;
    }
    this.unassigned -= end - first;
    return true;
  }

  #unmark({ firstExecutor, executors }: PlacedList, worker: number): void {
    const first = firstExecutor[worker]!;
    const end = firstExecutor[worker + 1]!;
    for (let place = first; place < end; place++) this.assigned[executors[place]!] = 0;
    this.unassigned += end - first;
  }
}
