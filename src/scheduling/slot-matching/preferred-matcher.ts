/** Requests that had a slot before get it again if it is free; what is left goes to another matcher. */
import { profileFits, type SlotMatch, type SlotMatcher } from './matching-problem.js';

/**
 * Of several requests that prefer one slot the first listed one wins. The fallback sees the loads with what was matched
 * here; among its requests those without preference come first, then the unlucky ones.
 *
 * Cost: O(slots + requests + preferences) and that of the fallback.
 */
export function preferredMatcher(fallback: SlotMatcher): SlotMatcher {
  return (slots, requests, loads) => {
    const wanting = new Map<string, number[]>();
    for (const [index, { preferred }] of requests.entries()) {
      for (const slot of preferred ?? []) {
        const list = wanting.get(slot);
        if (list === undefined) wanting.set(slot, [index]);
        else list.push(index);
      }
    }
    const isMatched = new Uint8Array(requests.length);
    const matches: SlotMatch[] = [];
    const restSlots: number[] = [];
    const newLoads = new Map(loads);
    for (const [slot, { id, machine, profile }] of slots.entries()) {
      const request = wanting
        .get(id)
        ?.find((one) => isMatched[one] === 0 && profileFits(profile, requests[one]!.profile));
      if (request === undefined) {
        restSlots.push(slot);
        continue;
      }
      isMatched[request] = 1;
      matches.push({ request, slot });
      newLoads.set(machine, (newLoads.get(machine) ?? 0) + requests[request]!.load);
    }
    const isRest = (wantsSlots: boolean) => (index: number) =>
      isMatched[index] === 0 && (requests[index]!.preferred ?? []).length > 0 === wantsSlots;
    const indexes = [...requests.keys()];
    const restRequests = [...indexes.filter(isRest(false)), ...indexes.filter(isRest(true))];
    const rest = fallback(
      restSlots.map((slot) => slots[slot]!),
      restRequests.map((request) => requests[request]!),
      newLoads,
    );
    for (const { request, slot } of rest)
      matches.push({ request: restRequests[request]!, slot: restSlots[slot]! });
    return matches;
  };
}
