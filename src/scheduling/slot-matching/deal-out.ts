/** Dealing requests out to machines, each to the one that carries least. */
import { leastLoaded } from './least-loaded.js';
import { numbersTo } from './load-heap.js';
import type { SlotMatch } from './matching-problem.js';
import type { SlotBins } from './slot-bins.js';

/**
 * Where every slot suits every request: `bins` has one for each machine, and slots for all requests. `loads` by request.
 * Equal loads of machines: the slot that is listed first.
 */
export function dealOut(bins: SlotBins, order: Int32Array, loads: Float64Array): SlotMatch[] {
  // Bins are numbered as their machines are.
  const queue = leastLoaded(bins.loads, bins.firstSlots, numbersTo(bins.size), loads);
  const matches: SlotMatch[] = [];
  for (let at = 0; at < order.length; at++) {
    const request = order[at]!;
    const machine = queue.first;
    matches.push({ request, slot: bins.shift(machine) });
    bins.loads[machine]! += loads[request]!;
    if (bins.isEmpty(machine)) queue.shift();
    else queue.grown();
  }
  return matches;
}

export function loadsOf(requests: readonly { readonly load: number }[]): Float64Array {
  const loads = new Float64Array(requests.length);
  for (let index = 0; index < loads.length; index++) loads[index] = requests[index]!.load;
  return loads;
}
