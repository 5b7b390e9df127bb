/**
 * What the slot pool of one topology knows. Immutable: every step of {@link planSlotPool} returns a new state that shares
 * what did not change. Times are in ms by the clock of whoever calls.
 */

export interface SlotPoolOptions {
  /** Requirements are declared once they have not changed for this long; 0: at once, each time. */
  readonly requestMaxIntervalMs: number;
  /** However changes trickle, they are declared within this time after the first one; null: no bound (Flink). */
  readonly requestMaxDelayMs: number | null;
  /**
   * All pending requests are placed at once when the free slots cover them and the requirements are quiet. Otherwise each
   * slot is given away as it comes.
   */
  readonly isDeferred: boolean;
  /**
   * After this long what can be placed is placed, and marked as provisional; null: never (Flink). Counts from the moment
   * since which something has been pending.
   */
  readonly slotWaitTimeoutMs: number | null;
  readonly idleTimeoutMs: number;
  /** Requests get back the slot that they had, before all else. */
  readonly prefersPreviousSlots: boolean;
  /** A request that comes when enough slots are free need not wait for another slot event. Flink: false. */
  readonly triesOnRequest: boolean;
}

export interface PoolRequest {
  readonly id: string;
  readonly load: number;
  readonly profile: string;
  readonly preferred?: readonly string[];
  /** From now on; null: it waits as long as it takes. */
  readonly timeoutMs?: number | null;
  /** One that a bounded stage makes: it survives the news that there are not enough resources. */
  readonly isBatch?: boolean;
}

export interface PendingRequest extends PoolRequest {
  readonly dueMs: number | null;
  /** Which of the pool's timers it is, in the order in which they were set. */
  readonly timerNumber: number;
}

export interface PooledSlot {
  readonly id: string;
  readonly machine: string;
  readonly profile: string;
  /** The requirement that it was accepted for; {@link ANY_PROFILE}: none, while the topology was restarting. */
  readonly mapped: string;
  /** The request that holds it; null: free. */
  readonly heldBy: string | null;
  readonly freeSinceMs: number;
}

export interface PlacedRequest {
  readonly slot: string;
  readonly machine: string;
  readonly load: number;
  /** Placed before the whole picture was there. */
  readonly isProvisional: boolean;
}

export interface DeclarationTimer {
  readonly dueMs: number;
  readonly timerNumber: number;
  /** Will the requirements be stable when it fires? An internal adjustment alone says nothing of that. */
  readonly restoresStability: boolean;
  /** When the first change came that has not been declared. */
  readonly firstChangeMs: number;
}

export interface SlotPoolState {
  readonly options: SlotPoolOptions;
  /** By profile: slots needed in all, held ones included. */
  readonly required: ReadonlyMap<string, number>;
  /** By profile: slots accepted for it. */
  readonly fulfilled: ReadonlyMap<string, number>;
  /** By machine, in the order in which they came; by slot. */
  readonly slots: ReadonlyMap<string, ReadonlyMap<string, PooledSlot>>;
  /** By slot: its machine. */
  readonly machineOf: ReadonlyMap<string, string>;
  readonly freeSlots: number;
  /** In the order in which they came. */
  readonly pending: ReadonlyMap<string, PendingRequest>;
  readonly placed: ReadonlyMap<string, PlacedRequest>;
  readonly isStable: boolean;
  readonly isRestarting: boolean;
  readonly timer: DeclarationTimer | null;
  readonly idleCheckMs: number;
  readonly idleCheckNumber: number;
  /** Timers that were set so far: of two that are due at the same time, the one set first fires first. */
  readonly timersSet: number;
  /** Since when something has been pending; null: nothing is. */
  readonly waitingSinceMs: number | null;
}

export type SlotPoolEvent =
  /** Requests that no free slot was given to. */
  | { readonly kind: 'request'; readonly requests: readonly PoolRequest[] }
  /** A free slot was chosen for a request. */
  | { readonly kind: 'reserve'; readonly request: PoolRequest; readonly slot: string }
  | {
      readonly kind: 'offer';
      readonly machine: string;
      readonly slots: readonly { readonly id: string; readonly profile: string }[];
    }
  /** A request is over, whether pending or placed. */
  | { readonly kind: 'release'; readonly request: string }
  | { readonly kind: 'machine-lost'; readonly machine: string }
  | { readonly kind: 'not-enough-resources' }
  | { readonly kind: 'restarting'; readonly isRestarting: boolean }
  /** The requirements as a whole, declared without delay. */
  | { readonly kind: 'set-requirements'; readonly requirements: ReadonlyMap<string, number> }
  /** Nothing happened; what is due is done. */
  | { readonly kind: 'tick' };

export type RequestFailure = 'TIMEOUT' | 'RELEASED' | 'NOT_ENOUGH_RESOURCES';

export type SlotPoolAction =
  /** The full requirements; they replace the declaration before. Zero counts are left out. */
  | { readonly kind: 'declare'; readonly requirements: ReadonlyMap<string, number> }
  /** All of these at once. */
  | {
      readonly kind: 'place';
      readonly placements: readonly {
        readonly request: string;
        readonly slot: string;
        readonly machine: string;
      }[];
      readonly isProvisional: boolean;
    }
  | { readonly kind: 'fail'; readonly request: string; readonly reason: RequestFailure }
  /** Nobody needs the slot: the machine keeps it. */
  | { readonly kind: 'reject'; readonly slot: string; readonly machine: string }
  /** It was idle for too long. */
  | { readonly kind: 'return'; readonly slot: string; readonly machine: string }
  /** The event makes no sense, and had no effect. */
  | {
      readonly kind: 'refuse';
      readonly code: 'SLOT_OFFERED_TWICE' | 'SLOT_NOT_HELD' | 'REQUEST_REPEATED';
      readonly what: string;
    };

/** An empty pool. `nowMs`: idle checks run in every `idleTimeoutMs` from here. */
export function emptySlotPool(options: SlotPoolOptions, nowMs: number): SlotPoolState {
  return {
    options,
    required: new Map(),
    fulfilled: new Map(),
    slots: new Map(),
    machineOf: new Map(),
    freeSlots: 0,
    pending: new Map(),
    placed: new Map(),
    isStable: true,
    isRestarting: false,
    timer: null,
    idleCheckMs: nowMs + options.idleTimeoutMs,
    idleCheckNumber: 0,
    timersSet: 1,
    waitingSinceMs: null,
  };
}
