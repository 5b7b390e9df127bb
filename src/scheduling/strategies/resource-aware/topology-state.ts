/**
 * A topology with what it has where. Loading takes the workers of a placement, leaving out those that conflict with
 * others; taking and giving back slots keeps the machines' books.
 */
import type { PlacedWorker } from '../../cluster-snapshot.js';
import { CPU, MEMORY } from './amounts.js';
import { type Machines, NONE } from './machines.js';
import { genericResource, totalsOf, type RequestTotals, type TopologyRequest } from './topology-request.js';

/** A worker by integer. `slot` is NONE where the supervisor does not offer the port any more. */
export interface HeldWorker {
  readonly machine: number;
  readonly slot: number;
  readonly placed: PlacedWorker;
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

  /** Takes the workers of a placement, in order of supervisor and port; `takenElsewhere` has slots that nobody offers. */
  load(workers: readonly PlacedWorker[], machines: Machines, takenElsewhere: Set<string>): void {
    const held: HeldWorker[] = [];
    for (const placed of workers) {
      const machine = machines.indexOfId.get(placed.supervisor) ?? NONE;
      const slot = machines.slotIndex(machine, placed.port);
      const key = slot === NONE ? `${placed.supervisor}:${placed.port}` : '';
      const taken = slot === NONE ? takenElsewhere.has(key) : machines.slotHolder[slot] !== NONE;
      if (taken || !this.#mark(placed)) continue;
      if (slot === NONE) takenElsewhere.add(key);
      else machines.slotHolder[slot] = this.index;
      held.push({ machine, slot, placed });
    }
    this.workers = held;
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
    this.account(machines, -1, minimumWorkerCpu);
    for (const { slot } of workers) if (slot !== NONE) machines.slotHolder[slot] = NONE;
    this.workers = [];
    this.assigned.fill(0);
    this.unassigned = this.request.executors.length;
    return workers;
  }

  /** Takes workers in free slots in addition to the present ones, which it follows in no particular order. */
  take(workers: readonly HeldWorker[], machines: Machines, minimumWorkerCpu: number): void {
    this.account(machines, -1, minimumWorkerCpu);
    for (const { slot, placed } of workers) {
      if (slot !== NONE) machines.slotHolder[slot] = this.index;
      this.#mark(placed);
    }
    this.workers = [...this.workers, ...workers].sort((a, b) => a.machine - b.machine || a.slot - b.slot);
    this.account(machines, 1, minimumWorkerCpu);
  }

  /** Notes that the executors have a slot; false, with nothing noted, if one has already. */
  #mark({ executors }: PlacedWorker): boolean {
    const { indexOf } = this.request;
    for (const range of executors) {
      const index = indexOf(range);
      if (index !== NONE && this.assigned[index] === 1) return false;
    }
    for (const range of executors) {
      const index = indexOf(range);
      if (index === NONE) continue;
      this.assigned[index] = 1;
      this.unassigned--;
    }
    return true;
  }

  #useOf(
    { executors }: PlacedWorker,
    minimumWorkerCpu: number,
  ): Use & { readonly generic: Float64Array; readonly regions: ReadonlySet<number> } {
    const { request } = this;
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
    return { cpu, memory, generic: sums.subarray(genericResource(0)), regions };
  }
}

/** Adds what one executor of a component asks for to sums by resource, as machines count them. */
export function addRequest(sums: Float64Array, request: TopologyRequest, component: number): void {
  const { cpu, onHeap, offHeap, generic, genericCount } = request;
  sums[CPU]! += cpu[component]!;
  sums[MEMORY]! += onHeap[component]! + offHeap[component]!;
  for (let name = 0; name < genericCount; name++) {
    sums[genericResource(name)]! += generic[component * genericCount + name]!;
  }
}
