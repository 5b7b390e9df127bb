/**
 * What slot matchers decide on: free slots, requests and what machines carry already. A match is a pair of indexes into
 * the lists given. Lists in, lists out: equal choices go to what is listed first, so the result is reproducible.
 */

/** A slot that can satisfy every request. Otherwise a slot profile satisfies an equal request profile only. */
export const ANY_PROFILE = 'ANY';
/** A request without stated need: every slot satisfies it. */
export const UNKNOWN_PROFILE = 'UNKNOWN';

export interface MatchableSlot {
  readonly id: string;
  readonly machine: string;
  /** A profile name or {@link ANY_PROFILE}. */
  readonly profile: string;
}

export interface SlotRequest {
  readonly id: string;
  /** What the content of the slot weighs; finite, at least 0. */
  readonly load: number;
  /** A profile name or {@link UNKNOWN_PROFILE}. */
  readonly profile: string;
  /** Slots that it had before. */
  readonly preferred?: readonly string[];
}

/** Load per machine before anything is matched; not named: 0. */
export type MachineLoads = ReadonlyMap<string, number>;

export interface SlotMatch {
  readonly request: number;
  readonly slot: number;
}

export type SlotMatcher = (
  slots: readonly MatchableSlot[],
  requests: readonly SlotRequest[],
  loads: MachineLoads,
) => SlotMatch[];

export function profileFits(slotProfile: string, requestProfile: string): boolean {
  return slotProfile === ANY_PROFILE || slotProfile === requestProfile || requestProfile === UNKNOWN_PROFILE;
}
