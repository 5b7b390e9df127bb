/**
 * Round robin over supervisors: each executor goes to the next one that holds it, and from the end the walk starts over.
 * Nothing is taken back.
 * Source: Storm's `RoundRobinResourceAwareStrategy`.
 */
import type { AckerQueue } from './acker-queue.js';
import { NONE } from './machines.js';
import type { Trial } from './trial.js';

export interface RoundRobinInput {
  readonly trial: Trial;
  /** Supervisors, in the order of the walk. */
  readonly machines: readonly number[];
  readonly executors: readonly number[];
  readonly ackerCount: number;
  readonly newAckerQueue: () => AckerQueue;
  readonly maxStates: number;
  readonly onStuck: (executor: number) => void;
  /**
   * As Storm walks: from the start for an executor of the same component as the one before, and no second turn for an
   * executor that fits nowhere in the rest of a turn.
   */
  readonly asStorm: boolean;
}

/**
 * `stuckAt`: the place in the order of the executor that fits nowhere, or null if all are placed. If not, what was put is
 * still there.
 */
export function placeRoundRobin(input: RoundRobinInput): { readonly stuckAt: number | null } {
  const { trial, executors, ackerCount, machines, asStorm } = input;
  const ackers = input.newAckerQueue();
  const { componentOf } = trial.request;
  const firstAcker = executors.length - ackerCount;
  let next = 0;
  let states = 0;
  for (let index = 0; index < executors.length; index++) {
    if (index >= firstAcker && index < firstAcker + ackers.bound) continue;
    if (states > input.maxStates) return { stuckAt: index };
    const executor = executors[index]!;
    const component = componentOf[executor]!;
    const sameAsBefore = index === 0 || componentOf[executors[index - 1]!] === component;
    if (next >= machines.length || (asStorm && sameAsBefore)) next = 0;
    let slot = NONE;
    for (let turn = asStorm ? machines.length - next : machines.length; turn > 0 && slot === NONE; turn--) {
      slot = firstSlotOn(trial, component, machines[next]!);
      next++;
      if (!asStorm && next >= machines.length) next = 0;
    }
    if (slot === NONE) {
      input.onStuck(executor);
      return { stuckAt: index };
    }
    states++;
    trial.put(executor, slot);
    ackers.bind(executor, slot);
  }
  return { stuckAt: null };
}

function firstSlotOn(trial: Trial, component: number, machine: number): number {
  if (!trial.couldFit(component, machine)) return NONE;
  const { firstSlot, slotHolder } = trial.machines;
  const end = firstSlot[machine + 1]!;
  for (let slot = firstSlot[machine]!; slot < end; slot++) {
    if (slotHolder[slot] === NONE && trial.fits(component, slot)) return slot;
  }
  return NONE;
}
