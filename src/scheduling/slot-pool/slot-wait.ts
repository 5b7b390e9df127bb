/**
 * When the executors of a topology that have no slot may be placed: the slot pool asked for its timing, over the free slots
 * as somebody else counts them. The strategy decides where, for all topologies together.
 *
 * W1  Nothing is placed before requests have been quiet and the free slots cover what is wanted, or the wait is over.
 * W2  Once a wait is over it is over: what comes later is used as it comes, until everything has a slot.
 * W3  However requests and slots come and go, the wait ends at most `slotWaitTimeoutMs` after it began.
 * W4  Where the wait has a bound, a topology that runs waits only until its wants are declared: rows that meet what it has lost
 *     flow again at once, and balance is restored when slots come.
 */
import type { Settings } from '../../base/index.js';
import { planSlotPool, slotPoolDueMs } from './plan-slot-pool.js';
import { emptySlotPool, type SlotPoolEvent, type SlotPoolOptions, type SlotPoolState } from './pool-state.js';

export interface SlotWaitOptions {
  /** See {@link SlotPoolOptions}. */
  readonly requestMaxIntervalMs: number;
  readonly requestMaxDelayMs: number | null;
  readonly slotWaitTimeoutMs: number | null;
}

export interface SlotWaitState {
  readonly pool: SlotPoolState;
  readonly sinceMs: number;
  /** W2. */
  readonly isOver: boolean;
  /** Requirements have been declared so often. */
  readonly declarations: number;
}

export interface SlotNeed {
  /** Slots that the topology wants and does not have. */
  readonly wanted: number;
  /** Free slots by machine. */
  readonly free: ReadonlyMap<string, readonly string[]>;
  /** W4. */
  readonly isRunning: boolean;
}

export type SlotWaitDecision =
  /** Provisional: there are fewer slots than wanted. */
  | { readonly kind: 'place'; readonly isProvisional: boolean }
  /** Look again at `dueMs` even if nothing happens; Infinity: only a change helps. */
  | { readonly kind: 'wait'; readonly wanted: number; readonly free: number; readonly dueMs: number };

export interface SlotWaitStep {
  readonly state: SlotWaitState;
  readonly decision: SlotWaitDecision;
}

/** Slots are all of one kind. */
const PROFILE = 'slot';
/** The idle check of the pool has nothing to do here: slots are not held. */
const NEVER_MS = 2 ** 52;

/** One look. `state`: what the last look returned; undefined: the wait begins. Cost: O(wanted + free slots). */
export function waitForSlots(
  state: SlotWaitState | undefined,
  need: SlotNeed,
  options: SlotWaitOptions,
  nowMs: number,
): SlotWaitStep {
  let free = 0;
  for (const slots of need.free.values()) free += slots.length;
  const sinceMs = state?.sinceMs ?? nowMs;
  const { slotWaitTimeoutMs } = options;
  const endMs = slotWaitTimeoutMs === null ? Infinity : sinceMs + slotWaitTimeoutMs;
  const wasOver = (state?.isOver ?? false) || nowMs >= endMs;
  const before = state === undefined || state.pool.placed.size > 0 ? newPool(options, nowMs) : state.pool;
  let seen = look(before, need, nowMs);
  // The pool decided at a moment for which slots had been announced that are gone by now: it has decided nothing.
  if (seen.isPlaced && free < need.wanted) seen = look(newPool(options, nowMs), need, nowMs);
  const { pool, isPlaced, declared } = seen;
  const joins = need.isRunning && slotWaitTimeoutMs !== null;
  const declarations = (state?.declarations ?? 0) + declared;
  const isOver = wasOver || (joins && declarations > 0 && !isPlaced);
  const next: SlotWaitState = {
    pool,
    sinceMs,
    isOver,
    declarations,
  };
  const { wanted } = need;
  if (isOver || isPlaced) return { state: next, decision: { kind: 'place', isProvisional: free < wanted } };
  const dueMs = Math.min(endMs, slotPoolDueMs(pool));
  return {
    state: next,
    decision: { kind: 'wait', wanted, free, dueMs: dueMs >= NEVER_MS ? Infinity : dueMs },
  };
}

/** {@link waitForSlots} as the settings of a topology say; undefined: its load-balance mode does not wait. */
export function waitBySettings(
  state: SlotWaitState | undefined,
  need: SlotNeed,
  settings: Settings,
  nowMs: number,
): SlotWaitStep | undefined {
  if (settings['load-balance.mode'] !== 'tasks') return undefined;
  return waitForSlots(state, need, slotWaitOptions(settings), nowMs);
}

/** As Flink, nothing has a bound. */
export function slotWaitOptions(settings: Settings): SlotWaitOptions {
  const isBounded = !settings['scheduling.compatibility'].includes('flink');
  return {
    requestMaxIntervalMs: settings['slot.request.max-interval'],
    requestMaxDelayMs: isBounded ? settings['slot.request.max-delay'] : null,
    slotWaitTimeoutMs: isBounded ? settings['slot.wait-timeout'] : null,
  };
}

function newPool(options: SlotWaitOptions, nowMs: number): SlotPoolState {
  const poolOptions: SlotPoolOptions = {
    ...options,
    // The bound is of the wait as a whole, not of one pool.
    slotWaitTimeoutMs: null,
    isDeferred: true,
    idleTimeoutMs: NEVER_MS,
    prefersPreviousSlots: false,
    triesOnRequest: true,
  };
  return emptySlotPool(poolOptions, nowMs);
}

interface Look {
  readonly pool: SlotPoolState;
  readonly isPlaced: boolean;
  readonly declared: number;
}

/** Tells the pool what has changed since it was asked last. */
function look(before: SlotPoolState, { wanted, free }: SlotNeed, nowMs: number): Look {
  let pool = before;
  let [isPlaced, declared] = [false, 0];
  const tell = (event: SlotPoolEvent): void => {
    const step = planSlotPool(pool, event, nowMs);
    pool = step.state;
    for (const { kind } of step.actions) {
      if (kind === 'place') isPlaced = true;
      if (kind === 'declare') declared++;
    }
  };
  tell({ kind: 'tick' });
  // What is gone first: slots that are not there must not cover anything.
  for (const [machine, slots] of pool.slots) {
    const there = new Set(free.get(machine));
    if ([...slots.keys()].some((id) => !there.has(id))) tell({ kind: 'machine-lost', machine });
  }
  const pending = [...pool.pending.keys()];
  for (const request of pending.slice(wanted)) tell({ kind: 'release', request });
  const known = new Set(pending);
  const requests: { readonly id: string; readonly load: number; readonly profile: string }[] = [];
  for (let number = 0; known.size + requests.length < wanted; number++) {
    const id = String(number);
    if (!known.has(id)) requests.push({ id, load: 1, profile: PROFILE });
  }
  if (requests.length > 0) tell({ kind: 'request', requests });
  for (const [machine, slots] of free) {
    const held = pool.slots.get(machine);
    const fresh = slots.filter((id) => held?.has(id) !== true);
    if (fresh.length > 0)
      tell({ kind: 'offer', machine, slots: fresh.map((id) => ({ id, profile: PROFILE })) });
  }
  return { pool, isPlaced, declared };
}
