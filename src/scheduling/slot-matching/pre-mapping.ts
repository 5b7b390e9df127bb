/**
 * How many slots of which profile the requests of each profile may use, so that one without stated need does not take
 * the only slot that fits another. Source: Flink's resource request pre-mapping, restated.
 */
import { ANY_PROFILE, UNKNOWN_PROFILE } from './matching-problem.js';

export interface PreMapping {
  /** Can every request have a slot? If not, the mapping is empty. */
  readonly isFulfilled: boolean;
  /** By request profile, by slot profile: how many slots are kept for them. */
  readonly base: Map<string, Map<string, number>>;
  /** By slot profile: slots that nobody needs. */
  readonly flexible: Map<string, number>;
}

/** A slot or a request. */
interface Profiled {
  readonly profile: string;
}

const UNFULFILLED: PreMapping = { isFulfilled: false, base: new Map(), flexible: new Map() };

/** Concrete requests take equal slots, then slots that fit anything; the others take what is left, first seen first. */
export function preMapping(slots: readonly Profiled[], requests: readonly Profiled[]): PreMapping {
  if (requests.length === 0 || slots.length < requests.length) return UNFULFILLED;
  const free = counted(slots);
  const open = counted(requests);
  const base = new Map<string, Map<string, number>>();
  const take = (request: string, slot: string): void => {
    const wanted = open.get(request) ?? 0;
    const count = Math.min(wanted, free.get(slot) ?? 0);
    if (count === 0) return;
    open.set(request, wanted - count);
    free.set(slot, (free.get(slot) ?? 0) - count);
    const row = base.get(request) ?? new Map<string, number>();
    row.set(slot, (row.get(slot) ?? 0) + count);
    base.set(request, row);
  };
  const concrete = [...open.keys()].filter((profile) => profile !== UNKNOWN_PROFILE);
  for (const profile of concrete) take(profile, profile);
  for (const profile of concrete) take(profile, ANY_PROFILE);
  for (const profile of free.keys()) take(UNKNOWN_PROFILE, profile);
  for (const count of open.values()) if (count > 0) return UNFULFILLED;
  return { isFulfilled: true, base, flexible: free };
}

function counted(list: readonly Profiled[]): Map<string, number> {
  const counts = new Map<string, number>();
  // Equal ones mostly follow each other: counted in runs.
  for (let start = 0, end = 0; start < list.length; start = end) {
    const { profile } = list[start]!;
    while (end < list.length && list[end]!.profile === profile) end++;
    counts.set(profile, (counts.get(profile) ?? 0) + end - start);
  }
  return counts;
}
