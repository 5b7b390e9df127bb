/**
 * A topology with what it has where. Loading takes the workers of a placement, leaving out those that conflict with
 * others; taking and giving back slots keeps the machines' books.
 */
import type { ExecutorRange } from '../../assignment.js';
import { compareSlots, type PlacedWorker } from '../../cluster-snapshot.js';
import { inOrder } from '../../order.js';
import { CPU, MEMORY } from './amounts.js';
import { type Machines, NONE } from './machines.js';
import { genericResource, totalsOf, type RequestTotals, type TopologyRequest } from './topology-request.js';

/** A worker by integer. `slot` is NONE before `enter`, and where the supervisor does not offer the port any more. */
export interface HeldWorker {
  readonly machine: number;
  readonly slot: number;
  readonly placed: PlacedWorker;
}

/** Slots that somebody holds, by supervisor's index and port. */
export class TakenSlots {
  readonly #ports = new Map<number, Set<number>>();

  has(machine: number, port: number): boolean {
    return this.#ports.get(machine)?.has(port) ?? false;
  }

  add(machine: number, port: number): void {
    const ports = this.#ports.get(machine);
    if (ports === undefined) this.#ports.set(machine, new Set([port]));
    else ports.add(port);
  }
}

/** Amounts of processor and memory. */
export interface Use {
  readonly cpu: number;
  readonly memory: number;
}

export class TopologyState {
  readonly index: number;
  readonly request: TopologyRequest;
  readonly totals: RequestTotals;
  /** In order of supervisor and port. */
  workers: readonly HeldWorker[] = [];
  /** What `load` was given, as long as nothing has changed. */
  loaded: readonly PlacedWorker[] | undefined;
  /** By executor: 1 if it has a slot. */
  readonly assigned: Uint8Array;
  unassigned: number;

  constructor(index: number, request: TopologyRequest) {
    this.index = index;
    this.request = request;
    this.totals = totalsOf(request);
    this.assigned = new Uint8Array(request.executors.length);
    this.unassigned = request.executors.length;
  }

  /** Takes the workers of a placement; `taken` has the slots that others hold. */
  load(unordered: readonly PlacedWorker[], machines: Machines, taken: TakenSlots): void {
    const workers = inOrder(unordered, compareSlots);
    const held: HeldWorker[] = [];
    let lastSupervisor = '';
    let machine = NONE;
    for (const placed of workers) {
      if (placed.supervisor !== lastSupervisor) {
        lastSupervisor = placed.supervisor;
        machine = machines.indexOfId.get(lastSupervisor) ?? NONE;
      }
      if (taken.has(machine, placed.port) || !this.#mark(placed)) continue;
      taken.add(machine, placed.port);
      held.push({ machine, slot: NONE, placed });
    }
    this.workers = held;
    if (held.length === workers.length) this.loaded = workers;
  }

  /** Enters the loaded workers into the books of slots and resources, which are just opened. */
  enter(machines: Machines, minimumWorkerCpu: number): void {
    this.workers = this.workers.map(({ machine, placed }) => {
      const slot = machines.slotIndex(machine, placed.port);
      if (slot !== NONE) machines.slotHolder[slot] = this.index;
      return { machine, slot, placed };
    });
    this.account(machines, 1, minimumWorkerCpu);
  }

  /** Adds (1) or takes away (-1) all that the present workers use. */
  account(machines: Machines, sign: 1 | -1, minimumWorkerCpu: number): void {
    const { request } = this;
    const sharedByMachine = new Map<number, Set<number>>();
    for (const { machine, placed } of this.workers) {
      const use = this.#useOf(placed, minimumWorkerCpu);
      machines.use(machine, CPU, sign * use.cpu);
      machines.use(machine, MEMORY, sign * use.memory);
      use.generic.forEach((amount, name) => {
        if (amount > 0) machines.use(machine, genericResource(name), sign * amount);
      });
      if (use.regions.size === 0) continue;
      const seen = sharedByMachine.get(machine) ?? new Set();
      sharedByMachine.set(machine, seen);
      for (const region of use.regions) {
        if (seen.has(region)) continue;
        seen.add(region);
        machines.use(machine, MEMORY, sign * request.regions[region]!.offHeapMachine);
      }
    }
  }

  /** Memory of all present workers, shared parts included. */
  memoryInUse(): number {
    const { regions } = this.request;
    const sharedByMachine = new Set<string>();
    let memory = 0;
    for (const { machine, placed } of this.workers) {
      const use = this.#useOf(placed, 0);
      memory += use.memory;
      for (const region of use.regions) {
        const key = `${machine}:${region}`;
        if (sharedByMachine.has(key)) continue;
        sharedByMachine.add(key);
        memory += regions[region]!.offHeapMachine;
      }
    }
    return memory;
  }

  /** What the executors that have a slot ask for, without shared memory. By resource, as machines count them. */
  assignedRequests(resourceCount: number): Float64Array {
    const sums = new Float64Array(resourceCount);
    const { componentOf } = this.request;
    this.assigned.forEach((has, executor) => {
      if (has === 1) addRequest(sums, this.request, componentOf[executor]!);
    });
    return sums;
  }

  /** Gives all slots back. */
  release(machines: Machines, minimumWorkerCpu: number): readonly HeldWorker[] {
    const { workers } = this;
    this.loaded = undefined;
    this.account(machines, -1, minimumWorkerCpu);
    for (const { slot } of workers) if (slot !== NONE) machines.slotHolder[slot] = NONE;
    this.workers = [];
    this.assigned.fill(0);
    this.unassigned = this.request.executors.length;
    return workers;
  }

  /** Takes workers in free slots in addition to the present ones, which it follows in no particular order. */
  take(workers: readonly HeldWorker[], machines: Machines, minimumWorkerCpu: number): void {
    this.loaded = undefined;
    this.account(machines, -1, minimumWorkerCpu);
    for (const { slot, placed } of workers) {
      if (slot !== NONE) machines.slotHolder[slot] = this.index;
      this.#mark(placed);
    }
    this.workers = [...this.workers, ...workers].sort((a, b) => compareSlots(a.placed, b.placed));
    this.account(machines, 1, minimumWorkerCpu);
  }

  /** Notes that the executors have a slot; false, with nothing noted, if one has already. */
  #mark({ executors }: PlacedWorker): boolean {
    const { indexOf } = this.request;
    for (let place = 0; place < executors.length; place++) {
      const index = indexOf(executors[place]!);
      if (index === NONE) continue;
      if (this.assigned[index] === 1) {
        for (const range of executors.slice(0, place)) this.#unmark(indexOf(range));
        return false;
      }
      this.assigned[index] = 1;
      this.unassigned--;
    }
    return true;
  }

  #unmark(index: number): void {
    if (index === NONE) return;
    this.assigned[index] = 0;
    this.unassigned++;
  }

  #useOf({ executors }: PlacedWorker, minimumWorkerCpu: number): WorkerUse {
    const { request } = this;
    const known = KNOWN_USES.get(executors);
    if (known?.componentOf === request.componentOf && known.minimumWorkerCpu === minimumWorkerCpu)
      return known.use;
    const sums = new Float64Array(genericResource(request.genericCount));
    const regions = new Set<number>();
    for (const range of executors) {
      const executor = request.indexOf(range);
      if (executor === NONE) continue;
      const component = request.componentOf[executor]!;
      addRequest(sums, request, component);
      for (const region of request.regionsOf[component]!) regions.add(region);
    }
    let memory = sums[MEMORY]!;
    for (const region of regions) {
      const { onHeap, offHeapWorker } = request.regions[region]!;
      memory += onHeap + offHeapWorker;
    }
    const cpu = Math.max(sums[CPU]!, minimumWorkerCpu);
    const use = { cpu, memory, generic: sums.subarray(genericResource(0)), regions };
    KNOWN_USES.set(executors, { componentOf: request.componentOf, minimumWorkerCpu, use });
    return use;
  }
}

interface WorkerUse extends Use {
  readonly generic: Float64Array;
  readonly regions: ReadonlySet<number>;
}

/** What workers use that are handed from round to round, by the list of their executors. */
const KNOWN_USES = new WeakMap<
  readonly ExecutorRange[],
  { readonly componentOf: Int32Array; readonly minimumWorkerCpu: number; readonly use: WorkerUse }
>();

/** Adds what one executor of a component asks for to sums by resource, as machines count them. */
export function addRequest(sums: Float64Array, request: TopologyRequest, component: number): void {
  const { cpu, onHeap, offHeap, generic, genericCount } = request;
  sums[CPU]! += cpu[component]!;
  sums[MEMORY]! += onHeap[component]! + offHeap[component]!;
  for (let name = 0; name < genericCount; name++) {
    sums[genericResource(name)]! += generic[component * genericCount + name]!;
  }
}
