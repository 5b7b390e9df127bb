/**
 * Matchers that ignore profiles and start from empty machines, as Flink's adaptive scheduler does after it has freed all
 * slots. Each request gets a slot; there must be enough.
 */
import { LoadHeap } from './load-heap.js';
import { ANY_PROFILE, type MatchableSlot, type SlotMatch, type SlotRequest } from './matching-problem.js';
import { SlotBins } from './slot-bins.js';
import { heaviestFirst } from './tasks-balanced-matcher.js';

export type AdaptiveMode = 'simple' | 'slots' | 'tasks';

/** Empty if there are fewer slots than requests. Equal choices: the slot that is listed first. */
export function adaptiveMatches(
  mode: AdaptiveMode,
  slots: readonly MatchableSlot[],
  requests: readonly SlotRequest[],
): SlotMatch[] {
  if (slots.length < requests.length) return [];
  if (mode === 'simple') return requests.map((_, index) => ({ request: index, slot: index }));
  // Profiles do not count here: one bin per machine.
  const bins = new SlotBins(
    slots.map(({ machine }) => ({ machine, profile: ANY_PROFILE })),
    new Map(),
  );
  const { loads, machineOf, firstSlots } = bins;
  const offered = new Int32Array(bins.size);
  const binOf = new Map(bins.machines.map((machine, bin) => [machine, bin]));
  for (const { machine } of slots) offered[binOf.get(machine)!]!++;
  const heap = new LoadHeap({ loads, ownerOf: machineOf, ties: firstSlots });
  for (let bin = 0; bin < bins.size; bin++) heap.add(bin);
  const order =
    mode === 'tasks' ? heaviestFirst(Float64Array.from(requests, ({ load }) => load)) : requests.keys();
  const taken = new Int32Array(bins.size);
  const matches: SlotMatch[] = [];
  for (const request of order) {
    const machine = heap.first;
    matches.push({ request, slot: bins.shift(machine) });
    // By slots: the share of the machine's slots in use. A quotient, not a sum, so that equal shares are equal numbers.
    loads[machine] =
      mode === 'tasks' ? loads[machine]! + requests[request]!.load : ++taken[machine]! / offered[machine]!;
    if (bins.isEmpty(machine)) heap.remove(machine);
    else heap.changed(machine);
  }
  return matches;
}
