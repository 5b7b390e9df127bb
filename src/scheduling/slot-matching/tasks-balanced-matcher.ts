/**
 * The heaviest request first, each to the least loaded machine that has a slot for it (longest processing time first,
 * R. L. Graham 1969; Flink's tasks-balanced matcher without the defect of its heap). All or nothing.
 */
import { LoadHeap } from './load-heap.js';
import { ANY_PROFILE, type SlotMatch, type SlotMatcher, UNKNOWN_PROFILE } from './matching-problem.js';
import { preMapping, type PreMapping } from './pre-mapping.js';
import { SlotBins } from './slot-bins.js';

interface ProfileBins {
  readonly profile: string;
  /** The bins of this profile that have a free slot, least loaded machine first. */
  readonly heap: LoadHeap;
}

/**
 * Empty unless every request gets a slot. Equal loads of machines: the slot that is listed first.
 * Cost: O(R log R + R·P·log M) for R requests, M machines and P slot profiles; O(S) memory for S slots.
 */
export const tasksBalancedMatcher: SlotMatcher = (slots, requests, initialLoads) => {
  const mapping = preMapping(
    slots.map(({ profile }) => profile),
    requests.map(({ profile }) => profile),
  );
  if (!mapping.isFulfilled) return [];
  const bins = new SlotBins(slots, initialLoads);
  const { loads, machineOf, profileOf, firstSlots, binsOf } = bins;
  const places = new Int32Array(bins.size).fill(-1);
  const keys = { loads, ownerOf: machineOf, ties: firstSlots };
  const byProfile = bins.profiles.map(
    (profile): ProfileBins => ({ profile, heap: new LoadHeap(keys, places) }),
  );
  for (const [bin, profile] of profileOf.entries()) byProfile[profile]!.heap.add(bin);
  const byName = new Map(byProfile.map((one) => [one.profile, one]));
  const matches: SlotMatch[] = [];
  for (const request of heaviestFirst(Float64Array.from(requests, ({ load }) => load))) {
    const { profile, load } = requests[request]!;
    const chosen = leastLoaded(candidates(profile, byProfile, byName), profile, mapping, bins);
    // Never: the pre-mapping keeps a slot for each request.
    if (chosen === undefined) return [];
    const bin = chosen.heap.first;
    const machine = machineOf[bin]!;
    const slot = bins.shift(bin);
    if (bins.isEmpty(bin)) chosen.heap.remove(bin);
    loads[machine]! += load;
    for (const other of binsOf[machine]!) byProfile[profileOf[other]!]!.heap.changed(other);
    useUp(mapping, profile, chosen.profile);
    matches.push({ request, slot });
  }
  return matches;
};

/** Numbers of the loads, the heaviest first, as listed among equals. */
export function heaviestFirst(loads: Float64Array): Int32Array {
  const order = new Int32Array(loads.length);
  let isInOrder = true;
  for (let index = 0; index < order.length; index++) {
    order[index] = index;
    isInOrder &&= index === 0 || loads[index - 1]! >= loads[index]!;
  }
  return isInOrder ? order : order.sort((a, b) => loads[b]! - loads[a]! || a - b);
}

/** Slot profiles that fit a request profile. */
function candidates(
  request: string,
  byProfile: readonly ProfileBins[],
  byName: ReadonlyMap<string, ProfileBins>,
): readonly ProfileBins[] {
  if (request === UNKNOWN_PROFILE) return byProfile;
  return [byName.get(request), byName.get(ANY_PROFILE)].filter((one) => one !== undefined);
}

/** Among the profiles that the pre-mapping leaves to this request: the one with the least loaded machine. */
function leastLoaded(
  fitting: readonly ProfileBins[],
  request: string,
  { base, flexible }: PreMapping,
  { loads, machineOf, firstSlots }: SlotBins,
): ProfileBins | undefined {
  const kept = base.get(request);
  let best: ProfileBins | undefined;
  let bestBin = -1;
  for (const one of fitting) {
    const bin = one.heap.first;
    if (bin < 0) continue;
    if ((kept?.get(one.profile) ?? 0) === 0 && (flexible.get(one.profile) ?? 0) === 0) continue;
    const difference = best === undefined ? -1 : loads[machineOf[bin]!]! - loads[machineOf[bestBin]!]!;
    if (difference < 0 || (difference === 0 && firstSlots[bin]! < firstSlots[bestBin]!)) {
      best = one;
      bestBin = bin;
    }
  }
  return best;
}

/** A slot that was kept is used up; a flexible one frees one that was kept. */
function useUp({ base, flexible }: PreMapping, request: string, slot: string): void {
  const kept = base.get(request);
  const count = kept?.get(slot) ?? 0;
  if (kept !== undefined && count > 0) {
    kept.set(slot, count - 1);
    return;
  }
  flexible.set(slot, (flexible.get(slot) ?? 0) - 1);
  for (const [profile, reserved] of kept ?? []) {
    if (reserved === 0) continue;
    kept?.set(profile, reserved - 1);
    flexible.set(profile, (flexible.get(profile) ?? 0) + 1);
    return;
  }
}
