/**
 * Matchers that ignore profiles and start from empty machines, as Flink's adaptive scheduler does after it has freed all
 * slots. Each request gets a slot; there must be enough.
 */
import { dealOut, loadsOf } from './deal-out.js';
import { heaviestFirst } from './heaviest-first.js';
import { LoadHeap } from './load-heap.js';
import type { MatchableSlot, SlotMatch, SlotRequest } from './matching-problem.js';
import { SlotBins } from './slot-bins.js';

export type AdaptiveMode = 'simple' | 'slots' | 'tasks';

/** Empty if there are fewer slots than requests. Equal choices: the slot that is listed first. */
export function adaptiveMatches(
  mode: AdaptiveMode,
  slots: readonly MatchableSlot[],
  requests: readonly SlotRequest[],
): SlotMatch[] {
  if (slots.length < requests.length) return [];
  if (mode === 'simple') return requests.map((_, index) => ({ request: index, slot: index }));
  const bins = new SlotBins(slots, new Map(), true);
  if (mode === 'slots') return toLeastUsed(bins, requests.length);
  const requestLoads = loadsOf(requests);
  return dealOut(bins, heaviestFirst(requestLoads), requestLoads);
}

/** Requests as listed, each to the machine with the smallest share of its slots in use. */
function toLeastUsed(bins: SlotBins, requests: number): SlotMatch[] {
  const { loads, firstSlots } = bins;
  const offered = bins.counts();
  const taken = new Int32Array(bins.size);
  const heap = new LoadHeap({ loads, ties: firstSlots });
  for (let machine = 0; machine < bins.size; machine++) heap.add(machine);
  const matches: SlotMatch[] = [];
  for (let request = 0; request < requests; request++) {
    const machine = heap.first;
    matches.push({ request, slot: bins.shift(machine) });
    // A quotient, not a sum, so that equal shares are equal numbers.
    loads[machine] = ++taken[machine]! / offered[machine]!;
    if (bins.isEmpty(machine)) heap.remove(machine);
    else heap.changed(machine);
  }
  return matches;
}
