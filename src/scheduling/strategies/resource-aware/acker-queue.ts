/**
 * Ackers that wait for a place. They stand at the end of the order of executors; while a search goes on, the next ones are
 * bound to a worker right after the executor that opened it, so that acks of its rows stay in the process.
 */
import { ackersToBind } from '../../ackers.js';
import type { Trial } from './trial.js';

export interface AckerRules {
  /** Amounts. */
  readonly workerMaxHeap: number;
  readonly ackersPerWorker: number;
  readonly oneExecutorPerWorker: boolean;
  readonly oneComponentPerWorker: boolean;
}

export class AckerQueue {
  readonly #trial: Trial;
  /** Executors, in order. */
  readonly #ackers: readonly number[];
  readonly #rules: AckerRules;
  #bound = 0;
  readonly #boundTo = new Set<number>();

  constructor(trial: Trial, ackers: readonly number[], rules: AckerRules) {
    this.#trial = trial;
    this.#ackers = ackers;
    this.#rules = rules;
  }

  /** Ackers that are bound: the first ones. */
  get bound(): number {
    return this.#bound;
  }

  /** Binds ackers to the slot into which an executor was just put, if it has none yet. Returns how many. */
  bind(executor: number, slot: number): number {
    const waiting = this.#ackers.length - this.#bound;
    if (waiting === 0 || this.#boundTo.has(slot)) return 0;
    const { request } = this.#trial;
    const { workerMaxHeap, ackersPerWorker, oneExecutorPerWorker, oneComponentPerWorker } = this.#rules;
    const component = request.componentOf[executor]!;
    const wanted = ackersToBind({
      workerMaxHeapMb: workerMaxHeap,
      executorOnHeapMb: request.onHeap[component]!,
      ackerOnHeapMb: request.onHeap[request.acker]!,
      unassignedAckers: waiting,
      ackersPerWorker,
      executorIsAcker: component === request.acker,
      oneExecutorPerWorker,
      oneComponentPerWorker,
    });
    const machine = this.#trial.machines.machineOfSlot[slot]!;
    let bound = 0;
    while (
      bound < wanted &&
      this.#trial.couldFit(request.acker, machine) &&
      this.#trial.fits(request.acker, slot)
    ) {
      this.#trial.put(this.#ackers[this.#bound]!, slot);
      this.#bound++;
      bound++;
    }
    if (bound > 0) this.#boundTo.add(slot);
    return bound;
  }

  /** Notes that `count` ackers, those that were bound last, are no longer bound to the slot. */
  release(count: number, slot: number): void {
    this.#bound -= count;
    if (count > 0) this.#boundTo.delete(slot);
  }
}
