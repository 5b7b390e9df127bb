/**
 * The heaviest request first, each to the least loaded machine that has a slot for it (longest processing time first,
 * R. L. Graham 1969; Flink's tasks-balanced matcher without the defect of its heap). All or nothing.
 */
import { dealOut, loadsOf } from './deal-out.js';
import { heaviestFirst } from './heaviest-first.js';
import { LoadHeap } from './load-heap.js';
import { profileFits, type SlotMatch, type SlotMatcher } from './matching-problem.js';
import { preMapping, type PreMapping } from './pre-mapping.js';
import { SlotBins } from './slot-bins.js';

interface ProfileBins {
  readonly profile: string;
  /** The bins of this profile that have a free slot, least loaded machine first. */
  readonly heap: LoadHeap;
}

/**
 * Empty unless every request gets a slot. Equal loads of machines: the slot that is listed first.
 * Cost: O(S + R log R), and O(R·P·log M) for P > 1 slot profiles and M machines; O(S) memory for S slots.
 */
export const tasksBalancedMatcher: SlotMatcher = (slots, requests, initialLoads) => {
  const mapping = preMapping(slots, requests);
  if (!mapping.isFulfilled) return [];
  const bins = new SlotBins(slots, initialLoads);
  const requestLoads = loadsOf(requests);
  const order = heaviestFirst(requestLoads);
  // Slots of one profile suit all requests, since the mapping has one for each.
  if (bins.profiles.length === 1) return dealOut(bins, order, requestLoads);
  const { loads, machineOf, profileOf, firstSlots, binsOf } = bins;
  const places = new Int32Array(bins.size).fill(-1);
  const keys = { loads, ownerOf: machineOf, ties: firstSlots };
  const byProfile = bins.profiles.map(
    (profile): ProfileBins => ({ profile, heap: new LoadHeap(keys, places) }),
  );
  for (const [bin, profile] of profileOf.entries()) byProfile[profile]!.heap.add(bin);
  const fittingOf = new Map<string, readonly ProfileBins[]>();
  const matches: SlotMatch[] = [];
  for (const request of order) {
    const { profile, load } = requests[request]!;
    let fitting = fittingOf.get(profile);
    if (fitting === undefined) {
      fitting = byProfile.filter((one) => profileFits(one.profile, profile));
      fittingOf.set(profile, fitting);
    }
    const chosen = leastLoadedProfile(fitting, profile, mapping, bins);
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

/** Among the profiles that the pre-mapping leaves to this request: the one with the least loaded machine. */
function leastLoadedProfile(
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
