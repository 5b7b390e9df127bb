/**
 * A placement in the making: executors of one topology are put into slots that were free when it began, and taken back in
 * reverse order. It answers what fits where; it knows no order of machines.
 *
 * T1: nothing is put where a rule forbids it, as long as callers ask first. T2: taking back restores all books exactly.
 */
import { CPU, MEMORY } from './amounts.js';
import type { Constraints } from './constraints.js';
import { type Machines, NONE } from './machines.js';
import { genericResource, type TopologyRequest } from './topology-request.js';
import type { TopologyState } from './topology-state.js';

/** What a slot holds during a trial, for all slots; one for a whole round, since each trial leaves it as it was. */
export class SlotBooks {
  /** Executors put there in this trial. */
  readonly count: Int32Array;
  readonly cpu: Float64Array;
  readonly onHeap: Float64Array;

  constructor(slots: number) {
    this.count = new Int32Array(slots);
    this.cpu = new Float64Array(slots);
    this.onHeap = new Float64Array(slots);
  }
}

export interface TrialLimits {
  readonly minimumWorkerCpu: number;
  /** Most on-heap memory of a worker. */
  readonly workerMaxHeap: number;
  readonly oneExecutorPerWorker: boolean;
  readonly oneComponentPerWorker: boolean;
  /** Of the constraint solver; other strategies have none. */
  readonly constraints: Constraints | undefined;
}

/** The first rule that keeps an executor out of a slot or supervisor. */
export type Rule =
  | 'not-usable'
  | 'cpu'
  | 'memory'
  | `generic:${string}`
  | 'no-free-slot'
  | 'worker-heap'
  | 'one-executor-per-worker'
  | 'one-component-per-worker'
  | 'incompatible-component'
  | 'executors-per-supervisor';

export class Trial {
  readonly machines: Machines;
  readonly request: TopologyRequest;
  /** Executors of the topology, earlier ones included. */
  readonly countOfMachine: Int32Array;
  readonly countOfHost: Int32Array;
  readonly countOfRack: Int32Array;
  /** Told before something changes on a supervisor. */
  onChange: (machine: number) => void = () => undefined;
  /** Executors put so far, in order, and where. */
  readonly executors: number[] = [];
  readonly slots: number[] = [];
  /** Memory that they take, shared parts included. */
  memoryPut = 0;
  /** Slots and supervisors that were asked so far. */
  steps = 0;

  readonly #limits: TrialLimits;
  readonly #books: SlotBooks;
  readonly #tracksComponents: boolean;
  /** Executors of each component by slot; kept where a rule asks for it. */
  readonly #componentsOfSlot = new Map<number, Int32Array>();
  readonly #componentsOfMachine = new Map<number, Int32Array>();
  /** Executors that use each region, by slot and by supervisor. */
  readonly #regionsOfSlot = new Map<number, Int32Array>();
  readonly #regionsOfMachine = new Map<number, Int32Array>();

  constructor(machines: Machines, state: TopologyState, limits: TrialLimits, books: SlotBooks) {
    this.machines = machines;
    this.request = state.request;
    this.#limits = limits;
    this.#books = books;
    this.#tracksComponents =
      limits.constraints !== undefined || (limits.oneComponentPerWorker && !limits.oneExecutorPerWorker);
    this.countOfMachine = new Int32Array(machines.count);
    this.countOfHost = new Int32Array(machines.hostNames.length);
    this.countOfRack = new Int32Array(machines.rackCount);
    this.#countEarlier(state);
  }

  /** Does what an executor of the component needs depend on what is there already? */
  sharesMemory(component: number): boolean {
    return this.request.regionsOf[component]!.length > 0;
  }

  /** Could the supervisor hold an executor of the component, whatever the slot? */
  couldFit(component: number, machine: number): boolean {
    this.steps++;
    return this.#machineRule(component, machine) === undefined;
  }

  /** Does an executor of the component fit into the slot? It must be free or opened by this trial; ask `couldFit` first. */
  fits(component: number, slot: number): boolean {
    this.steps++;
    return this.#slotRule(component, slot) === undefined;
  }

  /** The first rule that keeps the component off the supervisor; undefined: it fits. */
  firstRule(component: number, machine: number): Rule | undefined {
    if (this.machines.usable[machine] === 0) return 'not-usable';
    const rule = this.#machineRule(component, machine);
    if (rule !== undefined) return rule;
    let first: Rule = 'no-free-slot';
    const { firstSlot, slotHolder } = this.machines;
    for (let slot = firstSlot[machine]!; slot < firstSlot[machine + 1]!; slot++) {
      if (slotHolder[slot] !== NONE) continue;
      const inSlot = this.#slotRule(component, slot);
      if (inSlot === undefined) return undefined;
      first = inSlot;
    }
    return first;
  }

  isOpened(slot: number): boolean {
    return this.#books.count[slot]! > 0;
  }

  put(executor: number, slot: number): void {
    this.onChange(this.machines.machineOfSlot[slot]!);
    this.executors.push(executor);
    this.slots.push(slot);
    this.#move(executor, slot, 1);
  }

  /** Takes back the executor that was put last. */
  takeBack(): void {
    const executor = this.executors.pop();
    const slot = this.slots.pop();
    if (executor === undefined || slot === undefined) return;
    this.onChange(this.machines.machineOfSlot[slot]!);
    this.#move(executor, slot, -1);
  }

  takeAllBack(): void {
    while (this.executors.length > 0) this.takeBack();
  }

  #machineRule(component: number, machine: number): Rule | undefined {
    const { cpu, onHeap, offHeap, generic, genericCount } = this.request;
    const { minimumWorkerCpu } = this.#limits;
    // With a minimum, the executor may join a worker that has not reached it.
    if (Math.max(cpu[component]! - minimumWorkerCpu, 0) > this.machines.free(machine, CPU)) return 'cpu';
    if (minimumWorkerCpu === 0 && cpu[component]! > this.machines.free(machine, CPU)) return 'cpu';
    for (let name = 0; name < genericCount; name++) {
      const asked = generic[component * genericCount + name]!;
      if (asked > 0 && asked > this.machines.free(machine, genericResource(name))) {
        return `generic:${this.machines.genericNames[name]!}`;
      }
    }
    return onHeap[component]! + offHeap[component]! > this.machines.free(machine, MEMORY)
      ? 'memory'
      : undefined;
  }

  #slotRule(component: number, slot: number): Rule | undefined {
    const { onHeap, offHeap, regionsOf } = this.request;
    const limits = this.#limits;
    const machine = this.machines.machineOfSlot[slot]!;
    const opened = this.#books.count[slot]! > 0;
    if (this.#addedCpu(component, slot) > this.machines.free(machine, CPU)) return 'cpu';
    let memory = onHeap[component]! + offHeap[component]!;
    let heap = this.#books.onHeap[slot]! + onHeap[component]!;
    if (regionsOf[component]!.length > 0) {
      const { worker, machineOnly, onHeapShared } = this.#newRegions(component, slot, machine);
      memory += worker + machineOnly;
      heap += onHeapShared;
    }
    if (memory > this.machines.free(machine, MEMORY)) return 'memory';
    if (heap > limits.workerMaxHeap) return 'worker-heap';
    if (limits.oneExecutorPerWorker) {
      if (opened) return 'one-executor-per-worker';
    } else if (limits.oneComponentPerWorker && opened && this.#hasOther(component, slot)) {
      return 'one-component-per-worker';
    }
    return limits.constraints === undefined ? undefined : this.#constraintRule(component, slot, machine);
  }

  #addedCpu(component: number, slot: number): number {
    const { minimumWorkerCpu } = this.#limits;
    const before = this.#books.cpu[slot]!;
    const after = before + this.request.cpu[component]!;
    if (minimumWorkerCpu === 0) return after - before;
    const counted = this.#books.count[slot]! > 0 ? Math.max(before, minimumWorkerCpu) : 0;
    return Math.max(after, minimumWorkerCpu) - counted;
  }

  /** Shared memory that the component would bring to the slot and its supervisor. */
  #newRegions(
    component: number,
    slot: number,
    machine: number,
  ): { readonly worker: number; readonly machineOnly: number; readonly onHeapShared: number } {
    const { regions, regionsOf } = this.request;
    const inSlot = this.#regionsOfSlot.get(slot);
    const onMachine = this.#regionsOfMachine.get(machine);
    let worker = 0;
    let machineOnly = 0;
    let onHeapShared = 0;
    for (const region of regionsOf[component]!) {
      const { onHeap, offHeapWorker, offHeapMachine } = regions[region]!;
      if ((inSlot?.[region] ?? 0) === 0) {
        worker += onHeap + offHeapWorker;
        onHeapShared += onHeap;
      }
      if ((onMachine?.[region] ?? 0) === 0) machineOnly += offHeapMachine;
    }
    return { worker, machineOnly, onHeapShared };
  }

  #hasOther(component: number, slot: number): boolean {
    return (
      this.#componentsOfSlot.get(slot)?.some((count, other) => count > 0 && other !== component) ?? false
    );
  }

  #constraintRule(component: number, slot: number, machine: number): Rule | undefined {
    const { incompatible, mostPerMachine } = this.#limits.constraints!;
    const inSlot = this.#componentsOfSlot.get(slot);
    if (inSlot !== undefined) {
      for (const other of incompatible[component]!) if (inSlot[other]! > 0) return 'incompatible-component';
    }
    const here = this.#componentsOfMachine.get(machine)?.[component] ?? 0;
    return here >= mostPerMachine[component]! ? 'executors-per-supervisor' : undefined;
  }

  #move(executor: number, slot: number, sign: 1 | -1): void {
    const { machines, request } = this;
    const { cpu, onHeap, offHeap, generic, genericCount } = request;
    const component = request.componentOf[executor]!;
    const machine = machines.machineOfSlot[slot]!;
    const books = this.#books;
    if (sign < 0) {
      books.count[slot]!--;
      books.cpu[slot]! -= cpu[component]!;
    }
    machines.use(machine, CPU, sign * this.#addedCpu(component, slot));
    if (sign > 0) {
      books.count[slot]!++;
      books.cpu[slot]! += cpu[component]!;
    }
    books.onHeap[slot]! += sign * onHeap[component]!;
    this.#useMemory(machine, sign * (onHeap[component]! + offHeap[component]!));
    for (let name = 0; name < genericCount; name++) {
      const asked = generic[component * genericCount + name]!;
      if (asked > 0) machines.use(machine, genericResource(name), sign * asked);
    }
    if (request.regionsOf[component]!.length > 0) this.#moveRegions(component, slot, machine, sign);
    if (this.#tracksComponents) {
      this.#countsIn(this.#componentsOfSlot, slot, request.components.length)[component]! += sign;
      this.#countsIn(this.#componentsOfMachine, machine, request.components.length)[component]! += sign;
    }
    this.countOfMachine[machine]! += sign;
    this.countOfHost[machines.hostOf[machine]!]! += sign;
    this.countOfRack[machines.rackOf[machine]!]! += sign;
  }

  #useMemory(machine: number, amount: number): void {
    this.machines.use(machine, MEMORY, amount);
    this.memoryPut += amount;
  }

  #moveRegions(component: number, slot: number, machine: number, sign: 1 | -1): void {
    const { regions, regionsOf } = this.request;
    const inSlot = this.#countsIn(this.#regionsOfSlot, slot, regions.length);
    const onMachine = this.#countsIn(this.#regionsOfMachine, machine, regions.length);
    for (const region of regionsOf[component]!) {
      if (sign < 0) {
        inSlot[region]!--;
        onMachine[region]!--;
      }
      const { onHeap, offHeapWorker, offHeapMachine } = regions[region]!;
      if (inSlot[region] === 0) {
        this.#useMemory(machine, sign * (onHeap + offHeapWorker));
        this.#books.onHeap[slot]! += sign * onHeap;
      }
      if (onMachine[region] === 0) this.#useMemory(machine, sign * offHeapMachine);
      if (sign > 0) {
        inSlot[region]!++;
        onMachine[region]!++;
      }
    }
  }

  #countsIn(map: Map<number, Int32Array>, key: number, length: number): Int32Array {
    let counts = map.get(key);
    if (counts === undefined) {
      counts = new Int32Array(length);
      map.set(key, counts);
    }
    return counts;
  }

  /** Executors that the topology has already; their workers are not extended. */
  #countEarlier({ workers, request }: TopologyState): void {
    const { machines } = this;
    for (const { machine, placed } of workers) {
      this.countOfMachine[machine]! += placed.executors.length;
      const host = machines.hostOf[machine]!;
      if (host !== NONE) {
        this.countOfHost[host]! += placed.executors.length;
        this.countOfRack[machines.rackOf[machine]!]! += placed.executors.length;
      }
      if (!this.#tracksComponents && request.regions.length === 0) continue;
      for (const range of placed.executors) {
        const executor = request.indexOf(range);
        if (executor === NONE) continue;
        const component = request.componentOf[executor]!;
        if (this.#tracksComponents) {
          this.#countsIn(this.#componentsOfMachine, machine, request.components.length)[component]!++;
        }
        for (const region of request.regionsOf[component]!) {
          this.#countsIn(this.#regionsOfMachine, machine, request.regions.length)[region]!++;
        }
      }
    }
  }
}
