/** A state of the slot pool under change: copies a collection at its first write, and keeps counts right. */
import { ANY_PROFILE } from '../slot-matching/index.js';
import type {
  DeclarationTimer,
  PendingRequest,
  PlacedRequest,
  PooledSlot,
  RequestFailure,
  SlotPoolAction,
  SlotPoolState,
} from './pool-state.js';

export class PoolDraft {
  readonly actions: SlotPoolAction[] = [];
  readonly options: SlotPoolState['options'];
  required: Map<string, number>;
  readonly #fulfilled: Map<string, number>;
  readonly #slots: Map<string, ReadonlyMap<string, PooledSlot>>;
  readonly #ownSlots = new Map<string, Map<string, PooledSlot>>();
  readonly #base: SlotPoolState;
  #machineOf: ReadonlyMap<string, string>;
  #pending: ReadonlyMap<string, PendingRequest>;
  #placed: ReadonlyMap<string, PlacedRequest>;
  #freeSlots: number;
  #waitingSinceMs: number | null;
  isStable: boolean;
  isRestarting: boolean;
  timer: DeclarationTimer | null;
  /** Placing is tried once the requirements have become quiet: without delay, so no state between two plans has it. */
  quietTry: { readonly dueMs: number; readonly timerNumber: number } | null = null;
  idleCheckMs: number;
  idleCheckNumber: number;
  #timersSet: number;

  constructor(state: SlotPoolState) {
    this.#base = state;
    this.options = state.options;
    this.required = new Map(state.required);
    this.#fulfilled = new Map(state.fulfilled);
    this.#slots = new Map(state.slots);
    this.#machineOf = state.machineOf;
    this.#pending = state.pending;
    this.#placed = state.placed;
    this.#freeSlots = state.freeSlots;
    this.#waitingSinceMs = state.waitingSinceMs;
    this.isStable = state.isStable;
    this.isRestarting = state.isRestarting;
    this.timer = state.timer;
    this.idleCheckMs = state.idleCheckMs;
    this.idleCheckNumber = state.idleCheckNumber;
    this.#timersSet = state.timersSet;
  }

  toState(): SlotPoolState {
    return {
      options: this.options,
      required: this.required,
      fulfilled: this.#fulfilled,
      slots: this.#slots,
      machineOf: this.#machineOf,
      freeSlots: this.#freeSlots,
      pending: this.#pending,
      placed: this.#placed,
      isStable: this.isStable,
      isRestarting: this.isRestarting,
      timer: this.timer,
      idleCheckMs: this.idleCheckMs,
      idleCheckNumber: this.idleCheckNumber,
      timersSet: this.#timersSet,
      waitingSinceMs: this.#waitingSinceMs,
    };
  }

  /** The number of a timer that is set now. */
  nextTimerNumber(): number {
    return this.#timersSet++;
  }

  // ── requirements ──

  requiredOf(profile: string): number {
    return this.required.get(profile) ?? 0;
  }

  fulfilledOf(profile: string): number {
    return this.#fulfilled.get(profile) ?? 0;
  }

  /** Never below zero: what is given up twice is owed to nobody. A profile that nobody needs is forgotten, and its place in the order. */
  changeRequired(profile: string, by: number): void {
    const count = this.requiredOf(profile) + by;
    if (count > 0) this.required.set(profile, count);
    else this.required.delete(profile);
  }

  #changeFulfilled(profile: string, by: number): void {
    this.#fulfilled.set(profile, this.fulfilledOf(profile) + by);
  }

  // ── requests ──

  get pending(): ReadonlyMap<string, PendingRequest> {
    return this.#pending;
  }

  get placed(): ReadonlyMap<string, PlacedRequest> {
    return this.#placed;
  }

  get waitingSinceMs(): number | null {
    return this.#waitingSinceMs;
  }

  isKnown(request: string): boolean {
    return this.#pending.has(request) || this.#placed.has(request);
  }

  addPending(requests: readonly PendingRequest[], nowMs: number): void {
    const pending = this.#writablePending();
    for (const request of requests) pending.set(request.id, request);
    if (requests.length > 0) this.#waitingSinceMs ??= nowMs;
  }

  /** The next bound on waiting counts from here. */
  restartWait(nowMs: number): void {
    if (this.#waitingSinceMs !== null) this.#waitingSinceMs = nowMs;
  }

  /** Takes the request out of the pending ones and says why; its requirement is the caller's to lower. */
  fail(request: string, reason: RequestFailure): void {
    this.#removePending(request);
    this.actions.push({ kind: 'fail', request, reason });
  }

  #removePending(request: string): void {
    const pending = this.#writablePending();
    pending.delete(request);
    if (pending.size === 0) this.#waitingSinceMs = null;
  }

  // ── slots ──

  get freeSlots(): number {
    return this.#freeSlots;
  }

  slot(id: string): PooledSlot | undefined {
    const machine = this.#machineOf.get(id);
    return machine === undefined ? undefined : this.#slots.get(machine)?.get(id);
  }

  /** Machines in the order in which they came, their slots in that order. */
  *allSlots(): Generator<PooledSlot> {
    for (const slots of this.#slots.values()) yield* slots.values();
  }

  slotsOf(machine: string): readonly PooledSlot[] {
    return [...(this.#slots.get(machine)?.values() ?? [])];
  }

  addSlot(slot: PooledSlot): void {
    this.#writableSlots(slot.machine).set(slot.id, slot);
    this.#writableMachineOf().set(slot.id, slot.machine);
    this.#changeFulfilled(slot.mapped, 1);
    this.#freeSlots++;
  }

  removeSlot({ id, machine, mapped, heldBy }: PooledSlot): void {
    const slots = this.#writableSlots(machine);
    slots.delete(id);
    if (slots.size === 0) {
      this.#slots.delete(machine);
      this.#ownSlots.delete(machine);
    }
    this.#writableMachineOf().delete(id);
    this.#changeFulfilled(mapped, -1);
    if (heldBy === null) this.#freeSlots--;
    else this.#writablePlaced().delete(heldBy);
  }

  /**
   * Gives a free slot to a request. True if the slot had been accepted for another profile: the requirements are then
   * shifted, so that in all as many slots are asked for as before.
   */
  hold(
    slot: PooledSlot,
    request: Pick<PendingRequest, 'id' | 'profile' | 'load'>,
    isProvisional: boolean,
  ): boolean {
    const { machine, mapped } = slot;
    if (this.#pending.has(request.id)) this.#removePending(request.id);
    this.#writableSlots(machine).set(slot.id, { ...slot, mapped: request.profile, heldBy: request.id });
    this.#writablePlaced().set(request.id, { slot: slot.id, machine, load: request.load, isProvisional });
    this.#freeSlots--;
    if (mapped === request.profile) return false;
    this.#changeFulfilled(mapped, -1);
    this.#changeFulfilled(request.profile, 1);
    if (mapped === ANY_PROFILE) return false;
    this.changeRequired(request.profile, -1);
    this.changeRequired(mapped, 1);
    return true;
  }

  /** The slot of a placed request is free again, and stays in the pool. */
  free(slot: PooledSlot, nowMs: number): PooledSlot {
    const freed = { ...slot, heldBy: null, freeSinceMs: nowMs };
    if (slot.heldBy !== null) this.#writablePlaced().delete(slot.heldBy);
    this.#writableSlots(slot.machine).set(slot.id, freed);
    this.#freeSlots++;
    return freed;
  }

  // ── copies at the first write ──

  #writablePending(): Map<string, PendingRequest> {
    if (this.#pending === this.#base.pending) this.#pending = new Map(this.#base.pending);
    return this.#pending as Map<string, PendingRequest>; // a copy of our own since the line above
  }

  #writablePlaced(): Map<string, PlacedRequest> {
    if (this.#placed === this.#base.placed) this.#placed = new Map(this.#base.placed);
    return this.#placed as Map<string, PlacedRequest>; // as above
  }

  #writableMachineOf(): Map<string, string> {
    if (this.#machineOf === this.#base.machineOf) this.#machineOf = new Map(this.#base.machineOf);
    return this.#machineOf as Map<string, string>; // as above
  }

  #writableSlots(machine: string): Map<string, PooledSlot> {
    let own = this.#ownSlots.get(machine);
    if (own === undefined) {
      own = new Map(this.#slots.get(machine));
      this.#ownSlots.set(machine, own);
      this.#slots.set(machine, own);
    }
    return own;
  }
}
