/**
 * A slot for one request at a time out of the pool's free ones, before requests become pending: the first that fits, or
 * one on the machine with the smallest share of its slots in use.
 */
import { profileFits, type MatchableSlot, type SlotMatch, type SlotRequest } from './matching-problem.js';

export type FreeSlotChoice = 'first' | 'evenly';

export interface PoolUse {
  /** Slots of the pool on each machine, and how many of them are reserved. */
  readonly total: ReadonlyMap<string, number>;
  readonly used: ReadonlyMap<string, number>;
}

/** Requests in the order given; each choice counts as used for the next one. Cost: O(requests · slots). */
export function chooseFreeSlots(
  choice: FreeSlotChoice,
  slots: readonly MatchableSlot[],
  requests: readonly Pick<SlotRequest, 'profile'>[],
  { total, used }: PoolUse,
): SlotMatch[] {
  const inUse = new Map(used);
  const isTaken = new Uint8Array(slots.length);
  const utilisation = (machine: string): number =>
    (inUse.get(machine) ?? 0) / (total.get(machine) ?? Infinity);
  return requests.flatMap(({ profile }, request) => {
    let best = -1;
    for (const [slot, { machine, profile: offered }] of slots.entries()) {
      if (isTaken[slot] === 1 || !profileFits(offered, profile)) continue;
      if (best < 0 || utilisation(machine) < utilisation(slots[best]!.machine)) best = slot;
      if (choice === 'first') break;
    }
    if (best < 0) return [];
    isTaken[best] = 1;
    const { machine } = slots[best]!;
    inUse.set(machine, (inUse.get(machine) ?? 0) + 1);
    return [{ request, slot: best }];
  });
}
