/**
 * Depth-first search for a place of every executor, in order: the first slot that fits is taken; where none does, the
 * executor before is moved on to its next slot.
 *
 * First the executors are put one by one without keeping track of what was tried, which finds the same placement as long
 * as nothing has to be taken back. Only then does the search begin again with its books. Its bound is `maxStates`, placements of
 * one executor; it never looks at a clock.
 * Source: Storm's `BaseResourceAwareStrategy`. As there, the order of supervisors is begun anew for an executor of the same
 * component as the one before, and kept for one of another component or, if asked for, for all.
 */
import type { AckerQueue } from './acker-queue.js';
import type { Candidates } from './candidates.js';
import type { MachineOrder } from './machine-order.js';
import { NONE } from './machines.js';
import type { Trial } from './trial.js';

export interface SearchInput {
  readonly trial: Trial;
  readonly order: MachineOrder;
  /** In the order in which they are placed; ackers last. */
  readonly executors: readonly number[];
  /** How many of them, at the end, are ackers. */
  readonly ackerCount: number;
  /** A fresh queue of them. */
  readonly newAckerQueue: () => AckerQueue;
  readonly candidates: () => Candidates;
  readonly maxStates: number;
  /** Is one order of supervisors kept for all executors, until one has no place? */
  readonly ordersOnce: boolean;
  /** Told of an executor that has no place, when more have one than ever before. */
  readonly onStuck: (executor: number) => void;
}

/** `exhausted`: no placement exists in this order of choices. `limited`: the bound was reached first. */
export type SearchOutcome = 'placed' | 'exhausted' | 'limited';

/** When it is not `placed`, what the search had put when it ended is still there. */
export function search(input: SearchInput): SearchOutcome {
  if (placeDirectly(input)) return 'placed';
  input.trial.takeAllBack();
  return placeBacktracking(input);
}

/** Puts one executor after the other. false: one does not fit, or the bound is reached. */
function placeDirectly({
  trial,
  order,
  executors,
  ackerCount,
  newAckerQueue,
  candidates: newCandidates,
  maxStates,
  ordersOnce,
}: SearchInput): boolean {
  const ackers = newAckerQueue();
  const candidates = newCandidates();
  const firstAcker = executors.length - ackerCount;
  const { componentOf } = trial.request;
  let states = 0;
  for (let index = 0; index < executors.length; index++) {
    if (index >= firstAcker && index < firstAcker + ackers.bound) continue;
    if (states > maxStates) return false;
    const executor = executors[index]!;
    const component = componentOf[executor]!;
    const beginsAnew = !ordersOnce && index > 0 && componentOf[executors[index - 1]!] === component;
    if (index === 0 || beginsAnew) order.begin(component);
    const slot = candidates.firstSlot(component);
    if (slot === NONE) return false;
    states++;
    trial.put(executor, slot);
    candidates.touch(trial.machines.machineOfSlot[slot]!);
    ackers.bind(executor, slot);
  }
  return true;
}

function placeBacktracking({
  trial,
  order,
  executors,
  ackerCount,
  newAckerQueue,
  maxStates,
  ordersOnce,
  onStuck,
}: SearchInput): SearchOutcome {
  const ackers = newAckerQueue();
  const { machines, request } = trial;
  const { componentOf } = request;
  const firstAcker = executors.length - ackerCount;
  const isBound = (index: number): boolean => index >= firstAcker && index < firstAcker + ackers.bound;
  /** By place in the order of executors: slots tried so far, counted along the order of supervisors, minus one. */
  const tried = new Int32Array(executors.length).fill(-1);
  const slotOf = new Int32Array(executors.length).fill(NONE);
  const boundBy = new Int32Array(executors.length);
  let states = 0;
  let furthest = -1;
  let index = 0;
  /** Counts slots along the present order; it goes on where an order is kept for the next executor. */
  let place = -1;
  let hasOrder = false;
  for (;;) {
    if (states > maxStates) return 'limited';
    if (isBound(index)) {
      if (index === executors.length - 1) return 'placed';
      index++;
      continue;
    }
    const executor = executors[index]!;
    const component = componentOf[executor]!;
    const beginsAnew = !ordersOnce && (index === 0 || componentOf[executors[index - 1]!] === component);
    if (!hasOrder || beginsAnew) {
      place = -1;
      order.begin(component);
      hasOrder = true;
    }
    let found = NONE;
    for (const machine of order.all()) {
      if (!trial.couldFit(component, machine)) continue;
      const end = machines.firstSlot[machine + 1]!;
      for (let slot = machines.firstSlot[machine]!; slot < end && found === NONE; slot++) {
        if (machines.slotHolder[slot] !== NONE) continue;
        place++;
        if (place <= tried[index]!) continue;
        tried[index]!++;
        if (trial.fits(component, slot)) found = slot;
      }
      if (found !== NONE) break;
    }
    if (found !== NONE) {
      states++;
      trial.put(executor, found);
      slotOf[index] = found;
      boundBy[index] = ackers.bind(executor, found);
      if (index === executors.length - 1) return 'placed';
      index++;
      continue;
    }
    hasOrder = false;
    if (index > furthest) {
      furthest = index;
      onStuck(executor);
    }
    if (index === 0) return 'exhausted';
    tried[index] = -1;
    do index--;
    while (index > 0 && isBound(index));
    const slot = slotOf[index]!;
    for (let count = boundBy[index]!; count > 0; count--) trial.takeBack();
    trial.takeBack();
    ackers.release(boundBy[index]!, slot);
    boundBy[index] = 0;
  }
}
