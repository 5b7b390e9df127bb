/**
 * The arithmetic that comes before a search, and that says how many topologies to evict: could a topology fit if machines did not
 * matter? Storm's books are kept as they are there: what a failed search has put counts as scheduled afterwards.
 * Source: `TopologySchedulingResources` of Storm's `ResourceAwareScheduler`.
 */
import { CPU, FIRST_GENERIC, MEMORY } from './amounts.js';
import type { Machines } from './machines.js';
import type { TopologyState } from './topology-state.js';

export class Room {
  readonly #state: TopologyState;
  readonly #resourceCount: number;
  /** By resource, with memory as executors ask for it, without shared parts. */
  readonly #free: Float64Array;
  readonly #required: Float64Array;
  #scheduled: Float64Array;
  /** Memory with shared parts: where there are any, the sums above are too small. */
  #freeMemory: number;
  readonly #requiredMemory: number;
  #scheduledMemory: number;
  /** What is still missing after a failed search, less what was evicted since. */
  #missing: Float64Array | undefined;
  #missingMemory = 0;

  constructor(machines: Machines, state: TopologyState) {
    const { resourceCount } = machines;
    const { totals } = state;
    this.#state = state;
    this.#resourceCount = resourceCount;
    this.#free = Float64Array.from({ length: resourceCount }, (_, resource) => machines.totalLeft(resource));
    this.#freeMemory = this.#free[MEMORY]!;
    this.#required = new Float64Array(resourceCount);
    this.#required[CPU] = totals.cpu;
    this.#required[MEMORY] = totals.memory - totals.shared;
    totals.generic.forEach((amount, name) => (this.#required[FIRST_GENERIC + name] = amount));
    this.#requiredMemory = totals.memory;
    this.#scheduled = state.assignedRequests();
    this.#scheduledMemory = state.memoryInUse();
  }

  /** Could the topology fit by the sums? */
  suffices(): boolean {
    return this.shortage() === undefined && (this.#missing === undefined || !this.#isAnythingMissing());
  }

  /** The first resource of which there is too little; undefined: the sums suffice. */
  shortage(): { readonly resource: number; readonly need: number; readonly have: number } | undefined {
    for (let resource = 0; resource < this.#resourceCount; resource++) {
      const have = this.#free[resource]! + this.#scheduled[resource]!;
      if (have < this.#required[resource]!) return { resource, need: this.#required[resource]!, have };
    }
    const have = this.#freeMemory + this.#scheduledMemory;
    return have < this.#requiredMemory ? { resource: MEMORY, need: this.#requiredMemory, have } : undefined;
  }

  /** A new attempt: nothing is known to be missing. */
  beginAttempt(): void {
    this.#missing = undefined;
    this.#missingMemory = 0;
  }

  /** After a failed search. `put`: requests of what it had put when it ended, by resource; `putMemory`: with shared parts. */
  searchFailed(put: Float64Array, putMemory: number): void {
    this.#scheduled = this.#state.assignedRequests().map((sum, resource) => sum + put[resource]!);
    this.#scheduledMemory = this.#state.memoryInUse() + putMemory;
    this.#missing = this.#required.map((amount, resource) =>
      Math.max(0, amount - this.#scheduled[resource]!),
    );
    this.#missingMemory = this.#requiredMemory - this.#scheduledMemory;
  }

  /** Before a topology is evicted. */
  evicting(other: TopologyState): void {
    const given = other.assignedRequests();
    const givenMemory = other.memoryInUse();
    for (let resource = 0; resource < this.#resourceCount; resource++) {
      this.#free[resource]! += given[resource]!;
      if (this.#missing !== undefined) {
        this.#missing[resource] = Math.max(0, this.#missing[resource]! - given[resource]!);
      }
    }
    this.#freeMemory += givenMemory;
    this.#missingMemory -= givenMemory;
  }

  #isAnythingMissing(): boolean {
    return (this.#missing?.some((amount) => amount > 0) ?? false) || this.#missingMemory > 0;
  }
}
