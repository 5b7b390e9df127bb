/**
 * Which slots a topology has after a rebalance: spread over machines as evenly as their slots allow, and among those that
 * it has the fullest are kept.
 */
import { compareSlots, type Slot } from '../cluster-snapshot.js';
import { compareText } from '../order.js';

/** A slot that the topology has now. */
export interface HeldSlot extends Slot {
  /** Executors, of those that there will be, that are best left here. */
  readonly executors: number;
}

/** A machine with slots that may be used now. */
export interface MachineSlots {
  readonly supervisor: string;
  /** In order of preference: fullest first. */
  readonly held: readonly HeldSlot[];
  /** Free ports, ascending. */
  readonly freePorts: readonly number[];
}

/**
 * The slots to use, in order of supervisor and port: as many as asked for, or as there are. Each machine gets one before any
 * gets a second, and so on; where not all can get another one, those that keep an executor for it come first, then those
 * with most free slots.
 */
export function chooseSlots(machines: readonly MachineSlots[], count: number): Slot[] {
  const open = machines
    .map((machine) => ({ machine, slots: slotsOf(machine) }))
    .sort((a, b) => compareText(a.machine.supervisor, b.machine.supervisor));
  const chosen: Slot[] = [];
  for (let level = 0; chosen.length < count; level++) {
    const left = open.filter(({ slots }) => slots.length > level);
    if (left.length === 0) break;
    const missing = count - chosen.length;
    if (left.length > missing) {
      left.sort(
        (a, b) =>
          executorsAt(b.machine, level) - executorsAt(a.machine, level) ||
          b.machine.freePorts.length - a.machine.freePorts.length,
      );
    }
    for (const { slots } of left.slice(0, missing)) chosen.push(slots[level]!);
  }
  return chosen.sort(compareSlots);
}

/** Slots of a machine in the order in which they are used: those held first, fullest first. */
function slotsOf({ supervisor, held, freePorts }: MachineSlots): Slot[] {
  return [
    ...held.map(({ port }) => ({ supervisor, port })),
    ...freePorts.map((port) => ({ supervisor, port })),
  ];
}

/** Executors that stay if the machine gets one slot more than `level`; -1: it would be a new slot. */
function executorsAt({ held }: MachineSlots, level: number): number {
  return held[level]?.executors ?? -1;
}
