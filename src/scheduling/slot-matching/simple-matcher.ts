/** Each slot, in the order given, to the first request that it fits. What is left on either side stays unmatched. */
import { ANY_PROFILE, type SlotMatcher, UNKNOWN_PROFILE } from './matching-problem.js';

/** Cost: O(slots + requests). */
export const simpleMatcher: SlotMatcher = (slots, requests) => {
  const isTaken = new Uint8Array(requests.length);
  /** Requests by profile in the order given, and a reader of each list that skips what is taken. */
  const queues = new Map<string, number[]>();
  for (const [index, { profile }] of requests.entries()) {
    const queue = queues.get(profile);
    if (queue === undefined) queues.set(profile, [index]);
    else queue.push(index);
  }
  const positions = new Map<string, number>();
  let position = 0;
  const firstOf = (profile: string): number | undefined => {
    const queue = queues.get(profile);
    if (queue === undefined) return undefined;
    let at = positions.get(profile) ?? 0;
    while (at < queue.length && isTaken[queue[at]!] === 1) at++;
    positions.set(profile, at);
    return queue[at];
  };
  const firstFitting = (profile: string): number | undefined => {
    if (profile === ANY_PROFILE) {
      while (position < requests.length && isTaken[position] === 1) position++;
      return position < requests.length ? position : undefined;
    }
    const equal = firstOf(profile);
    const unknown = firstOf(UNKNOWN_PROFILE);
    if (equal === undefined || unknown === undefined) return equal ?? unknown;
    return Math.min(equal, unknown);
  };
  return slots.flatMap(({ profile }, slot) => {
    const request = firstFitting(profile);
    if (request === undefined) return [];
    isTaken[request] = 1;
    return [{ request, slot }];
  });
};
