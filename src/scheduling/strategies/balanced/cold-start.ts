/**
 * One topology alone on machines that carry nothing: sharing, choice of machines and matching, one after the other, exactly
 * as Flink takes these steps. For comparison with Flink, and for plans of what Flink would do.
 */
import {
  adaptiveMatches,
  ANY_PROFILE,
  chooseMachines,
  type MatchableSlot,
  simpleMatcher,
  type SlotMatch,
  type SlotRequest,
  tasksBalancedMatcher,
  UNKNOWN_PROFILE,
} from '../../slot-matching/index.js';
import type { SharingGraph, SlotSharing } from '../../slot-sharing/index.js';
import type { LoadBalanceMode } from '../../resources.js';
import { machineChoiceOf, shareSlots, type SlotSharingStrategy } from './load-balance-mode.js';

export interface ColdStart {
  readonly graph: SharingGraph;
  readonly mode: LoadBalanceMode;
  /** Flink's adaptive scheduler, which shares by subtask index and matches without profiles. */
  readonly isAdaptive: boolean;
  /** Bounded, stage by stage: neither balanced sharing nor balanced matching. */
  readonly isBatch: boolean;
  readonly machines: readonly { readonly id: string; readonly slots: number }[];
}

export interface ColdStartResult {
  readonly requiredSlots: number;
  /** By machine, of those given; undefined: there are not enough slots. */
  readonly slotsPerMachine: Int32Array | undefined;
  readonly tasksPerMachine: Int32Array;
}

export function coldStart({ graph, mode, isAdaptive, isBatch, machines }: ColdStart): ColdStartResult {
  const isBalanced = mode === 'tasks' && !isBatch;
  const strategy: SlotSharingStrategy = isBalanced
    ? 'task-balanced'
    : isAdaptive
      ? 'subtask-index'
      : 'local-input-preferred';
  const sharing = shareSlots(strategy, graph);
  const tasksPerMachine = new Int32Array(machines.length);
  const requiredSlots = sharing.slots;
  const asked = machines.map(({ slots }) => ({ slots, used: 0 }));
  const chosen = chooseMachines(machineChoiceOf(mode), asked, requiredSlots, 0);
  if (chosen.unfulfilled > 0) return { requiredSlots, slotsPerMachine: undefined, tasksPerMachine };
  const slots: (MatchableSlot & { readonly index: number })[] = [];
  for (const [index, { id }] of machines.entries()) {
    for (let slot = 0; slot < chosen.perMachine[index]!; slot++)
      slots.push({ id: `${id}/${slot}`, machine: id, profile: ANY_PROFILE, index });
  }
  const requests = requestsOf(sharing);
  const slotsPerMachine = new Int32Array(machines.length);
  for (const { request, slot } of match(isBalanced, isAdaptive, mode, slots, requests)) {
    const { index } = slots[slot]!;
    slotsPerMachine[index]!++;
    tasksPerMachine[index]! += requests[request]!.load;
  }
  return { requiredSlots, slotsPerMachine, tasksPerMachine };
}

function match(
  isBalanced: boolean,
  isAdaptive: boolean,
  mode: LoadBalanceMode,
  slots: readonly MatchableSlot[],
  requests: readonly SlotRequest[],
): SlotMatch[] {
  if (isAdaptive) {
    return adaptiveMatches(isBalanced ? 'tasks' : mode === 'slots' ? 'slots' : 'simple', slots, requests);
  }
  return (isBalanced ? tasksBalancedMatcher : simpleMatcher)(slots, requests, new Map());
}

/** One request per slot; what it weighs is the number of its subtasks. */
function requestsOf({ slots, slotOf }: SlotSharing): SlotRequest[] {
  const sizes = new Int32Array(slots);
  for (const vertex of slotOf) for (const slot of vertex) sizes[slot]!++;
  return Array.from(sizes, (load, slot) => ({ id: String(slot), load, profile: UNKNOWN_PROFILE }));
}
