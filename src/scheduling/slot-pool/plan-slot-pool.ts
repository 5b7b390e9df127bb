/**
 * The slot pool of one topology as a pure state machine: requests and offers in, declarations and placements out.
 *
 * A change of what is required is declared once it has been quiet; in deferred mode nothing is placed before the free slots
 * cover all pending requests, and then everything is placed at once, because whoever places each request as a slot turns
 * up gives the first machine everything. Source: Flink's declarative slot pool and FLIP-370, restated. Unlike there an
 * internal adjustment never forgets that the requirements have still to become stable, and both waits have a bound.
 */
import {
  ANY_PROFILE,
  preferredMatcher,
  profileFits,
  simpleMatcher,
  type SlotMatcher,
  tasksBalancedMatcher,
} from '../slot-matching/index.js';
import { PoolDraft } from './pool-draft.js';
import type { PooledSlot, PoolRequest, SlotPoolAction, SlotPoolEvent, SlotPoolState } from './pool-state.js';

export interface SlotPoolStep {
  readonly state: SlotPoolState;
  readonly actions: readonly SlotPoolAction[];
}

/**
 * What was due until now, in order of time, and then the event. Cost: O(size of the event + profiles), and that of a
 * matching when something is placed.
 */
export function planSlotPool(state: SlotPoolState, event: SlotPoolEvent, nowMs: number): SlotPoolStep {
  const draft = new PoolDraft(state);
  runTimers(draft, nowMs);
  handle(draft, event, nowMs);
  return { state: draft.toState(), actions: draft.actions };
}

/** When the pool must be called again even if nothing happens, ms. */
export function slotPoolDueMs(state: SlotPoolState): number {
  const { timer, idleCheckMs, pending } = state;
  let due = Math.min(idleCheckMs, timer?.dueMs ?? Infinity, waitDueMs(state));
  for (const { dueMs } of pending.values()) if (dueMs !== null) due = Math.min(due, dueMs);
  return due;
}

function waitDueMs({ options, waitingSinceMs }: Pick<SlotPoolState, 'options' | 'waitingSinceMs'>): number {
  return options.isDeferred && options.slotWaitTimeoutMs !== null && waitingSinceMs !== null
    ? waitingSinceMs + options.slotWaitTimeoutMs
    : Infinity;
}

// ── time ──

/** Of what is due at the same time, what was set first comes first; the bound on waiting comes last. */
function runTimers(draft: PoolDraft, nowMs: number): void {
  for (;;) {
    const due = [idleCheckOf, timeoutOf, declarationOf, tryOf, waitOf]
      .map((timerOf) => timerOf(draft))
      .reduce(earlier);
    if (due.dueMs > nowMs) return;
    due.fire(draft, due.dueMs);
  }
}

interface Timer {
  readonly dueMs: number;
  readonly timerNumber: number;
  readonly fire: (draft: PoolDraft, dueMs: number) => void;
}

function earlier(one: Timer, other: Timer): Timer {
  const order = one.dueMs === other.dueMs ? one.timerNumber - other.timerNumber : one.dueMs - other.dueMs;
  return order <= 0 ? one : other;
}

function idleCheckOf({ idleCheckMs, idleCheckNumber }: PoolDraft): Timer {
  return { dueMs: idleCheckMs, timerNumber: idleCheckNumber, fire: checkIdle };
}

function timeoutOf({ pending }: PoolDraft): Timer {
  let earliest: { readonly dueMs: number; readonly timerNumber: number } = NEVER;
  for (const { dueMs, timerNumber } of pending.values()) {
    if (dueMs !== null && dueMs < earliest.dueMs) earliest = { dueMs, timerNumber };
  }
  return { ...earliest, fire: failTimedOut };
}

function declarationOf({ timer }: PoolDraft): Timer {
  return { ...(timer ?? NEVER), fire: declareAfterQuiet };
}

function tryOf({ quietTry }: PoolDraft): Timer {
  return { ...(quietTry ?? NEVER), fire: tryOnceQuiet };
}

function waitOf(draft: PoolDraft): Timer {
  return { dueMs: waitDueMs(draft), timerNumber: Infinity, fire: placeWhatFits };
}

const NEVER = { dueMs: Infinity, timerNumber: Infinity };

/** Each is a change of its own: without an interval each is declared. */
function failTimedOut(draft: PoolDraft, dueMs: number): void {
  const late = [...draft.pending.values()].filter((one) => one.dueMs !== null && one.dueMs <= dueMs);
  for (const { id, profile } of late) {
    draft.fail(id, 'TIMEOUT');
    draft.changeRequired(profile, -1);
    changed(draft, dueMs);
  }
}

function checkIdle(draft: PoolDraft, dueMs: number): void {
  const { idleTimeoutMs } = draft.options;
  draft.idleCheckMs = dueMs + Math.max(1, idleTimeoutMs);
  draft.idleCheckNumber = draft.nextTimerNumber();
  for (const slot of [...draft.allSlots()]) {
    const isIdle = slot.heldBy === null && dueMs - slot.freeSinceMs >= idleTimeoutMs;
    if (!isIdle || draft.fulfilledOf(slot.mapped) <= draft.requiredOf(slot.mapped)) continue;
    draft.removeSlot(slot);
    draft.actions.push({ kind: 'return', slot: slot.id, machine: slot.machine });
  }
}

// ── requirements ──

/** After a change of what is required. */
function changed(draft: PoolDraft, nowMs: number): void {
  schedule(draft, nowMs, true);
}

function schedule(draft: PoolDraft, nowMs: number, isOutside: boolean): void {
  const { requestMaxIntervalMs, requestMaxDelayMs } = draft.options;
  if (requestMaxIntervalMs <= 0) {
    declare(draft);
    return;
  }
  if (isOutside) draft.isStable = false;
  const firstChangeMs = draft.timer?.firstChangeMs ?? nowMs;
  const boundMs = requestMaxDelayMs === null ? Infinity : Math.max(nowMs, firstChangeMs + requestMaxDelayMs);
  draft.timer = {
    dueMs: Math.min(nowMs + requestMaxIntervalMs, boundMs),
    timerNumber: draft.nextTimerNumber(),
    restoresStability: isOutside || (draft.timer?.restoresStability ?? false),
    firstChangeMs,
  };
}

function declare(draft: PoolDraft): void {
  const requirements = new Map([...draft.required].filter(([, count]) => count > 0));
  draft.actions.push({ kind: 'declare', requirements });
}

function declareAfterQuiet(draft: PoolDraft, dueMs: number): void {
  const { timer } = draft;
  draft.timer = null;
  declare(draft);
  if (timer === null || !timer.restoresStability) return;
  draft.isStable = true;
  // Slots that came meanwhile wait for this moment; whatever else is due at it comes before.
  if (draft.options.isDeferred) draft.quietTry = { dueMs, timerNumber: draft.nextTimerNumber() };
}

function tryOnceQuiet(draft: PoolDraft, dueMs: number): void {
  draft.quietTry = null;
  placeAll(draft, dueMs);
}

// ── events ──

function handle(draft: PoolDraft, event: SlotPoolEvent, nowMs: number): void {
  switch (event.kind) {
    case 'request':
      return request(draft, event.requests, nowMs);
    case 'reserve':
      return reserve(draft, event.request, event.slot, nowMs);
    case 'offer':
      return offer(draft, event, nowMs);
    case 'release':
      return release(draft, event.request, nowMs);
    case 'machine-lost':
      return machineLost(draft, event.machine, nowMs);
    case 'not-enough-resources': {
      const waiting = [...draft.pending.values()].filter(({ isBatch }) => isBatch !== true);
      for (const { id, profile } of waiting) {
        draft.fail(id, 'NOT_ENOUGH_RESOURCES');
        draft.changeRequired(profile, -1);
      }
      if (waiting.length > 0) changed(draft, nowMs);
      return;
    }
    case 'restarting':
      draft.isRestarting = event.isRestarting;
      return;
    case 'set-requirements':
      draft.required = new Map(event.requirements);
      return declare(draft);
    case 'tick':
      return;
  }
}

function request(draft: PoolDraft, requests: readonly PoolRequest[], nowMs: number): void {
  const added: PoolRequest[] = [];
  const seen = new Set<string>();
  for (const one of requests) {
    if (draft.isKnown(one.id) || seen.has(one.id)) {
      draft.actions.push({ kind: 'refuse', code: 'REQUEST_REPEATED', what: one.id });
      continue;
    }
    seen.add(one.id);
    added.push(one);
    draft.changeRequired(one.profile, 1);
  }
  if (added.length === 0) return;
  changed(draft, nowMs);
  const pending = added.map((one) => {
    const { timeoutMs = null } = one;
    return {
      ...one,
      dueMs: timeoutMs === null ? null : nowMs + timeoutMs,
      timerNumber: draft.nextTimerNumber(),
    };
  });
  draft.addPending(pending, nowMs);
  const { isDeferred, triesOnRequest } = draft.options;
  if (isDeferred && triesOnRequest && draft.isStable) placeAll(draft, nowMs);
}

function reserve(draft: PoolDraft, wanted: PoolRequest, slotId: string, nowMs: number): void {
  const slot = draft.slot(slotId);
  if (slot === undefined || slot.heldBy !== null || !profileFits(slot.profile, wanted.profile)) {
    draft.actions.push({ kind: 'refuse', code: 'SLOT_NOT_HELD', what: slotId });
    return;
  }
  draft.changeRequired(wanted.profile, 1);
  changed(draft, nowMs);
  if (draft.hold(slot, wanted, false)) schedule(draft, nowMs, false);
  draft.actions.push({
    kind: 'place',
    placements: [{ request: wanted.id, slot: slotId, machine: slot.machine }],
    isProvisional: false,
  });
}

function offer(
  draft: PoolDraft,
  { machine, slots }: Extract<SlotPoolEvent, { kind: 'offer' }>,
  nowMs: number,
): void {
  const accepted: PooledSlot[] = [];
  for (const { id, profile } of slots) {
    const known = draft.slot(id);
    if (known !== undefined) {
      if (known.machine !== machine)
        draft.actions.push({ kind: 'refuse', code: 'SLOT_OFFERED_TWICE', what: id });
      continue;
    }
    const mapped = outstanding(draft, profile) ?? (draft.isRestarting ? ANY_PROFILE : undefined);
    if (mapped === undefined) {
      draft.actions.push({ kind: 'reject', slot: id, machine });
      continue;
    }
    const slot = { id, machine, profile, mapped, heldBy: null, freeSinceMs: nowMs };
    draft.addSlot(slot);
    accepted.push(slot);
  }
  if (accepted.length > 0) slotsAvailable(draft, accepted, nowMs);
}

/** The requirement that a slot of this profile is accepted for: the equal one first. */
function outstanding(draft: PoolDraft, slotProfile: string): string | undefined {
  const isOpen = (profile: string): boolean => draft.requiredOf(profile) > draft.fulfilledOf(profile);
  if (isOpen(slotProfile)) return slotProfile;
  for (const profile of draft.required.keys()) {
    if (profileFits(slotProfile, profile) && isOpen(profile)) return profile;
  }
  return undefined;
}

function release(draft: PoolDraft, id: string, nowMs: number): void {
  const pending = draft.pending.get(id);
  if (pending !== undefined) {
    draft.fail(id, 'RELEASED');
    draft.changeRequired(pending.profile, -1);
    return changed(draft, nowMs);
  }
  const placed = draft.placed.get(id);
  const slot = placed === undefined ? undefined : draft.slot(placed.slot);
  if (slot === undefined) {
    draft.actions.push({ kind: 'refuse', code: 'SLOT_NOT_HELD', what: id });
    return;
  }
  const freed = draft.free(slot, nowMs);
  slotsAvailable(draft, [freed], nowMs);
  draft.changeRequired(slot.mapped, -1);
  changed(draft, nowMs);
}

function machineLost(draft: PoolDraft, machine: string, nowMs: number): void {
  let isAnyHeld = false;
  for (const slot of draft.slotsOf(machine)) {
    draft.removeSlot(slot);
    if (slot.heldBy === null) continue;
    draft.changeRequired(slot.mapped, -1);
    isAnyHeld = true;
  }
  if (isAnyHeld) changed(draft, nowMs);
}

// ── placing ──

function slotsAvailable(draft: PoolDraft, slots: readonly PooledSlot[], nowMs: number): void {
  if (draft.pending.size === 0) return;
  if (!draft.options.isDeferred) place(draft, slots, simpleMatcher, nowMs, false);
  else if (draft.isStable) placeAll(draft, nowMs);
}

/** All pending requests at once, or nothing. */
function placeAll(draft: PoolDraft, nowMs: number): void {
  const wanted = draft.pending.size;
  if (wanted === 0 || draft.freeSlots < wanted) return;
  const free = [...draft.allSlots()].filter(({ heldBy }) => heldBy === null);
  const whole: SlotMatcher = (slots, requests, loads) => {
    const matches = tasksBalancedMatcher(slots, requests, loads);
    return matches.length === requests.length ? matches : [];
  };
  place(draft, free, whole, nowMs, false, true);
}

/** The wait is over: as many requests as there are slots, the heaviest first, each on the least loaded machine. */
function placeWhatFits(draft: PoolDraft, nowMs: number): void {
  const free = [...draft.allSlots()].filter(({ heldBy }) => heldBy === null);
  place(draft, free, largestPart, nowMs, true);
  draft.restartWait(nowMs);
}

/** Balanced for the largest set of requests that the slots can serve. */
const largestPart: SlotMatcher = (slots, requests, loads) => {
  const served = simpleMatcher(slots, requests, loads).map(({ request: index }) => index);
  const chosen = served.map((index) => requests[index]!);
  return tasksBalancedMatcher(slots, chosen, loads).map(({ request: index, slot }) => ({
    request: served[index]!,
    slot,
  }));
};

/** Every pair is held before anybody hears of one: what hears may ask for more. */
function place(
  draft: PoolDraft,
  slots: readonly PooledSlot[],
  matcher: SlotMatcher,
  nowMs: number,
  isProvisional: boolean,
  isWhole = false,
): void {
  const requests = [...draft.pending.values()];
  const loads = new Map<string, number>();
  for (const { machine, load } of draft.placed.values()) loads.set(machine, (loads.get(machine) ?? 0) + load);
  const match = draft.options.prefersPreviousSlots ? preferredMatcher(matcher) : matcher;
  const matches = match(slots, requests, loads);
  if (matches.length === 0 || (isWhole && matches.length !== requests.length)) return;
  const placements: { readonly request: string; readonly slot: string; readonly machine: string }[] = [];
  for (const pair of matches) {
    const slot = slots[pair.slot]!;
    const wanted = requests[pair.request]!;
    if (draft.hold(slot, wanted, isProvisional)) schedule(draft, nowMs, false);
    placements.push({ request: wanted.id, slot: slot.id, machine: slot.machine });
  }
  draft.actions.push({ kind: 'place', placements, isProvisional });
}
