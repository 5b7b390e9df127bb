/**
 * How many slots of which machine are asked for, where slots are not on offer yet: what Flink's resource manager does.
 * `any` fills one machine before the next, `least-utilised` spreads, `most-utilised` packs. Workers that have not been
 * started are always filled one after the other, so that as few as possible are needed.
 */
import { LoadHeap } from './load-heap.js';

export type MachineChoice = 'any' | 'least-utilised' | 'most-utilised';

export interface ChoosableMachine {
  /** Slots in all, and how many of them any topology uses. */
  readonly slots: number;
  readonly used: number;
  readonly isBlocked?: boolean;
}

export interface ChosenSlots {
  /** By machine: slots taken. */
  readonly perMachine: Int32Array;
  /** Planned slots of each machine that has to be started. */
  readonly newMachines: readonly number[];
  /** Slots that cannot be had. */
  readonly unfulfilled: number;
}

/** `newMachineSlots`: slots of a machine that can be started; 0: none can. Cost: O(required · log machines). */
export function chooseMachines(
  choice: MachineChoice,
  machines: readonly ChoosableMachine[],
  required: number,
  newMachineSlots: number,
): ChosenSlots {
  const perMachine = new Int32Array(machines.length);
  const free = machines.map(({ slots, used, isBlocked }) =>
    isBlocked === true ? 0 : Math.max(0, slots - used),
  );
  let open = required;
  if (choice === 'any') {
    for (const [machine, count] of free.entries()) {
      const taken = Math.min(count, open);
      perMachine[machine] = taken;
      open -= taken;
    }
  } else {
    const sign = choice === 'least-utilised' ? 1 : -1;
    const utilisation = Float64Array.from(machines, ({ slots, used }) => (sign * used) / Math.max(1, slots));
    const heap = new LoadHeap({ loads: utilisation, ties: Float64Array.from(machines.keys()) });
    for (const [machine, count] of free.entries()) if (count > 0) heap.add(machine);
    while (open > 0 && heap.size > 0) {
      const machine = heap.first;
      const taken = ++perMachine[machine]!;
      open--;
      const { slots, used } = machines[machine]!;
      utilisation[machine] = (sign * (used + taken)) / slots;
      if (taken === free[machine]) heap.remove(machine);
      else heap.changed(machine);
    }
  }
  const newMachines: number[] = [];
  while (newMachineSlots > 0 && open > 0) {
    const planned = Math.min(newMachineSlots, open);
    newMachines.push(planned);
    open -= planned;
  }
  return { perMachine, newMachines, unfulfilled: open };
}
