import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  emptySlotPool,
  planSlotPool,
  type SlotPoolAction,
  slotPoolDueMs,
  type SlotPoolEvent,
  type SlotPoolOptions,
  type SlotPoolState,
} from './index.js';

const seed = 20_263;
const OPTIONS: SlotPoolOptions = {
  requestMaxIntervalMs: 20,
  requestMaxDelayMs: 100,
  isDeferred: true,
  slotWaitTimeoutMs: 1000,
  idleTimeoutMs: 5000,
  prefersPreviousSlots: false,
  triesOnRequest: true,
};

/** A pool with a virtual clock that runs whatever is due. */
class Pool {
  state: SlotPoolState;
  nowMs = 0;
  readonly log: { readonly atMs: number; readonly action: SlotPoolAction }[] = [];

  constructor(options: Partial<SlotPoolOptions> = {}) {
    this.state = emptySlotPool({ ...OPTIONS, ...options }, 0);
  }

  play(event: SlotPoolEvent): void {
    const before = deepFrozen(this.state);
    const { state, actions } = planSlotPool(before, event, this.nowMs);
    this.state = state;
    for (const action of actions) this.log.push({ atMs: this.nowMs, action });
  }

  advance(ms: number): void {
    const end = this.nowMs + ms;
    for (let due = slotPoolDueMs(this.state); due <= end; due = slotPoolDueMs(this.state)) {
      this.nowMs = due;
      this.play({ kind: 'tick' });
    }
    this.nowMs = end;
  }

  request(...ids: readonly string[]): void {
    this.play({ kind: 'request', requests: ids.map((id) => ({ id, load: 1, profile: 'UNKNOWN' })) });
  }

  offer(machine: string, count: number): void {
    const slots = Array.from({ length: count }, (_, index) => ({
      id: `${machine}/${index}`,
      profile: 'ANY',
    }));
    this.play({ kind: 'offer', machine, slots });
  }

  times(kind: SlotPoolAction['kind']): number[] {
    return this.log.filter(({ action }) => action.kind === kind).map(({ atMs }) => atMs);
  }
}

/** A plan must not write into the state that it was given. */
function deepFrozen(state: SlotPoolState): SlotPoolState {
  const map = <K, V>(entries: ReadonlyMap<K, V>): ReadonlyMap<K, V> => {
    const copy = new Map(entries);
    for (const write of ['set', 'delete', 'clear'] as const)
      Object.defineProperty(copy, write, {
        value: () => {
          throw new Error('a state was written into');
        },
      });
    return copy;
  };
  return Object.freeze({
    ...state,
    required: map(state.required),
    fulfilled: map(state.fulfilled),
    slots: map(new Map([...state.slots].map(([machine, slots]) => [machine, map(slots)]))),
    machineOf: map(state.machineOf),
    pending: map(state.pending),
    placed: map(state.placed),
  });
}

describe('the slot pool', () => {
  it('declares a burst once, when it is quiet', () => {
    const pool = new Pool();
    pool.request('a');
    pool.advance(15);
    pool.request('b');
    pool.advance(15);
    pool.request('c');
    pool.advance(500);
    expect(pool.times('declare')).toEqual([50]);
  });

  it('declares within the bound however requests trickle', () => {
    const pool = new Pool();
    for (let index = 0; index < 30; index++) {
      pool.request(`r${index}`);
      pool.advance(10);
    }
    const [first, second] = pool.times('declare');
    expect(first).toBe(100);
    expect((second ?? 0) - (first ?? 0)).toBeLessThanOrEqual(110);
  });

  it('never declares while requests trickle if there is no bound, as Flink', () => {
    const pool = new Pool({ requestMaxDelayMs: null });
    for (let index = 0; index < 30; index++) {
      pool.request(`r${index}`);
      pool.advance(10);
    }
    expect(pool.times('declare')).toEqual([]);
  });

  it('waits until free slots cover all requests, then places all at once and evenly', () => {
    const pool = new Pool();
    pool.request('a', 'b', 'c', 'd');
    pool.advance(50);
    pool.offer('m1', 3);
    pool.advance(100);
    expect(pool.times('place')).toEqual([]);
    pool.offer('m2', 3);
    const [placed] = pool.log.filter(({ action }) => action.kind === 'place');
    expect(placed?.action).toMatchObject({ isProvisional: false });
    const machines =
      placed?.action.kind === 'place' ? placed.action.placements.map(({ machine }) => machine) : [];
    // m2's surplus slots were not needed: one of them was accepted.
    expect(machines.sort()).toEqual(['m1', 'm1', 'm1', 'm2']);
  });

  it('uses what there is once the wait has lasted for its bound, and marks it', () => {
    const pool = new Pool();
    pool.request('a', 'b', 'c');
    pool.advance(30);
    pool.offer('m1', 1);
    pool.offer('m2', 1);
    pool.advance(2000);
    expect(pool.times('place')).toEqual([1000]);
    expect([...pool.state.placed.values()].map(({ isProvisional }) => isProvisional)).toEqual([true, true]);
    expect([...pool.state.pending.keys()]).toHaveLength(1);
  });

  it('becomes stable even if an internal adjustment meets the timer', () => {
    const pool = new Pool({ slotWaitTimeoutMs: null, prefersPreviousSlots: true });
    pool.play({
      kind: 'request',
      requests: [
        { id: 'a', load: 1, profile: 'UNKNOWN' },
        { id: 'b', load: 1, profile: 'big' },
      ],
    });
    pool.play({
      kind: 'offer',
      machine: 'm1',
      slots: [
        { id: 'm1/0', profile: 'big' },
        { id: 'm1/1', profile: 'ANY' },
      ],
    });
    // Reserved for another profile than it was accepted for, while the declaration is pending.
    pool.play({ kind: 'reserve', request: { id: 'c', load: 1, profile: 'UNKNOWN' }, slot: 'm1/0' });
    pool.advance(100);
    expect(pool.state.isStable).toBe(true);
  });

  const profiled = (id: string, profile: string): SlotPoolEvent => ({
    kind: 'request',
    requests: [{ id, load: 1, profile }],
  });
  const anySlots = (machine: string, ...ids: readonly string[]): SlotPoolEvent => ({
    kind: 'offer',
    machine,
    slots: ids.map((id) => ({ id, profile: 'ANY' })),
  });
  const declared = (pool: Pool): unknown[] =>
    pool.log.flatMap(({ action }) =>
      action.kind === 'declare' ? [Object.fromEntries(action.requirements)] : [],
    );

  it('declares a request although more slots of its profile were given back than were asked for', () => {
    const pool = new Pool({ isDeferred: false });
    for (const [id, profile] of [
      ['a', 'small'],
      ['b', 'big'],
      ['c', 'big'],
      ['d', 'small'],
    ] as const)
      pool.play(profiled(id, profile));
    pool.play(anySlots('m1', 'm1/0', 'm1/1', 'm1/2'));
    // The slot of "c" was accepted for a big one and goes to a small one.
    pool.play({ kind: 'release', request: 'c' });
    pool.play({ kind: 'release', request: 'a' });
    pool.play({ kind: 'machine-lost', machine: 'm1' });
    pool.play(profiled('e', 'small'));
    pool.advance(50);
    expect(declared(pool).at(-1)).toMatchObject({ small: 1 });
  });

  it('accepts a slot for the profile that has been needed for longest', () => {
    const pool = new Pool({ isDeferred: false });
    pool.play(profiled('a', 'UNKNOWN'));
    pool.play({ kind: 'release', request: 'a' });
    pool.play(profiled('b', 'small'));
    pool.play(profiled('c', 'UNKNOWN'));
    pool.play(anySlots('m1', 'm1/0'));
    expect([...pool.state.fulfilled].filter(([, count]) => count > 0)).toEqual([['small', 1]]);
  });

  describe('of two timers that are due at one time fires the one that was set first', () => {
    const bare = { requestMaxDelayMs: null, slotWaitTimeoutMs: null };
    const ask = (pool: Pool, id: string, profile: string, timeoutMs: number | null): void => {
      pool.play({ kind: 'request', requests: [{ id, load: 1, profile, timeoutMs }] });
    };

    it('a declaration before the time-out of its own request', () => {
      const pool = new Pool(bare);
      ask(pool, 'r0', 'UNKNOWN', 20);
      pool.advance(100);
      expect(pool.times('declare')).toEqual([20, 40]);
    });

    it('the time-out of an older request before a declaration', () => {
      const pool = new Pool(bare);
      ask(pool, 'r0', 'UNKNOWN', 40);
      pool.advance(20);
      ask(pool, 'r1', 'UNKNOWN', null);
      pool.advance(100);
      expect(pool.times('declare')).toEqual([20, 60]);
    });

    it.each([
      ['a time-out, then an idle check that sees its slot in excess', 200, 200],
      ['an idle check, then the time-out of a later request', 100, 200],
    ])('%s', (_, timeoutMs, returnedMs) => {
      const pool = new Pool({ ...bare, idleTimeoutMs: 100 });
      ask(pool, 'r0', 'a', timeoutMs);
      ask(pool, 'r1', 'b', null);
      pool.advance(30);
      pool.play({ kind: 'offer', machine: 'tm1', slots: [{ id: 'tm1/0', profile: 'a' }] });
      pool.advance(300);
      expect(pool.times('return')).toEqual([returnedMs]);
    });

    it('a time-out before the placing that a declaration sets off', () => {
      const pool = new Pool(bare);
      ask(pool, 'r0', 'UNKNOWN', null);
      pool.advance(20);
      ask(pool, 'r1', 'UNKNOWN', 20);
      pool.advance(10);
      pool.offer('tm1', 1);
      pool.advance(100);
      expect(pool.times('place')).toEqual([40]);
      expect(pool.times('declare')).toEqual([20, 40, 60]);
    });
  });

  it('declares each time-out where nothing is delayed', () => {
    const pool = new Pool({ requestMaxIntervalMs: 0, slotWaitTimeoutMs: null });
    for (const id of ['r0', 'r1'])
      pool.play({ kind: 'request', requests: [{ id, load: 1, profile: 'UNKNOWN', timeoutMs: 50 }] });
    pool.advance(100);
    expect(pool.times('declare')).toEqual([0, 0, 50, 50]);
  });

  it('declares every adjustment where nothing is delayed', () => {
    const pool = new Pool({ isDeferred: false, requestMaxIntervalMs: 0 });
    pool.play(profiled('a', 'UNKNOWN'));
    pool.play(anySlots('m1', 'm1/0'));
    pool.play(profiled('b', 'small'));
    pool.play(profiled('c', 'UNKNOWN'));
    // Accepted in the order of needs, given away in that of requests: each serves another profile.
    pool.play(anySlots('m2', 'm2/0', 'm2/1'));
    expect(declared(pool).slice(-2)).toEqual([{ UNKNOWN: 3 }, { UNKNOWN: 2, small: 1 }]);
  });

  it('refuses what makes no sense, with a code', () => {
    const pool = new Pool();
    pool.request('a');
    pool.request('a');
    pool.offer('m1', 1);
    pool.play({ kind: 'offer', machine: 'm2', slots: [{ id: 'm1/0', profile: 'ANY' }] });
    pool.play({ kind: 'release', request: 'nobody' });
    const codes = pool.log.flatMap(({ action }) => (action.kind === 'refuse' ? [action.code] : []));
    expect(codes).toEqual(['REQUEST_REPEATED', 'SLOT_OFFERED_TWICE', 'SLOT_NOT_HELD']);
  });

  const anyEvent = fc.oneof(
    fc.record({
      kind: fc.constant('request' as const),
      count: fc.integer({ min: 1, max: 4 }),
      load: fc.nat(5),
      profile: fc.constantFrom('UNKNOWN', 'UNKNOWN', 'big'),
    }),
    fc.record({ kind: fc.constant('repeat' as const), which: fc.nat(30) }),
    fc.record({
      kind: fc.constant('reserve' as const),
      slot: fc.nat(30),
      profile: fc.constantFrom('UNKNOWN', 'big'),
      // Also one that is known already.
      known: fc.option(fc.nat(30)),
    }),
    fc.record({ kind: fc.constant('tick' as const) }),
    fc.record({
      kind: fc.constant('offer' as const),
      machine: fc.nat(3),
      count: fc.integer({ min: 1, max: 4 }),
      profile: fc.constantFrom('ANY', 'ANY', 'big'),
      // Slots that have been offered before, there or by another machine.
      back: fc.nat(2),
    }),
    fc.record({ kind: fc.constant('release' as const), which: fc.nat(30) }),
    fc.record({ kind: fc.constant('machine-lost' as const), machine: fc.nat(3) }),
    fc.record({ kind: fc.constant('restarting' as const), isRestarting: fc.boolean() }),
    fc.record({ kind: fc.constant('not-enough-resources' as const) }),
    fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 400 }) }),
  );

  it('keeps its books right under any order of events, and leaves nobody waiting for ever', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.boolean(), (events, isDeferred) => {
        const pool = new Pool({ isDeferred });
        let requests = 0;
        let offers = 0;
        for (const event of events) {
          switch (event.kind) {
            case 'advance':
              pool.advance(event.ms);
              break;
            case 'request':
              pool.play({
                kind: 'request',
                requests: Array.from({ length: event.count }, () => ({
                  id: `r${requests++}`,
                  load: event.load,
                  profile: event.profile,
                })),
              });
              break;
            case 'repeat':
              pool.play({
                kind: 'request',
                requests: [{ id: `r${event.which}`, load: 1, profile: 'UNKNOWN' }],
              });
              break;
            case 'reserve': {
              const id = `r${event.known ?? requests++}`;
              pool.play({
                kind: 'reserve',
                request: { id, load: 1, profile: event.profile },
                slot: `s${event.slot}`,
              });
              break;
            }
            case 'offer':
              offers = Math.max(0, offers - event.back);
              pool.play({
                kind: 'offer',
                machine: `m${event.machine}`,
                slots: Array.from({ length: event.count }, () => ({
                  id: `s${offers++}`,
                  profile: event.profile,
                })),
              });
              break;
            case 'release':
              pool.play({ kind: 'release', request: `r${event.which}` });
              break;
            case 'machine-lost':
              pool.play({ kind: 'machine-lost', machine: `m${event.machine}` });
              break;
            default:
              pool.play(event);
          }
          checkBooks(pool.state);
        }
        pool.play({ kind: 'restarting', isRestarting: false });
        // With slots enough for all, everything that still waits is placed once it is quiet.
        pool.play({
          kind: 'offer',
          machine: 'last',
          slots: Array.from({ length: 200 }, (_, index) => ({ id: `last/${index}`, profile: 'ANY' })),
        });
        pool.advance(3000);
        checkBooks(pool.state);
        expect(pool.state.pending.size).toBe(0);
        expect(pool.state.isStable).toBe(true);
      }),
      { seed, numRuns: 1000 },
    );
  });
});

function checkBooks(state: SlotPoolState): void {
  const slots = [...state.slots.values()].flatMap((one) => [...one.values()]);
  expect(state.freeSlots).toBe(slots.filter(({ heldBy }) => heldBy === null).length);
  const fulfilled = new Map<string, number>();
  for (const { mapped } of slots) fulfilled.set(mapped, (fulfilled.get(mapped) ?? 0) + 1);
  const isPositive = ([, count]: readonly [string, number]): boolean => count !== 0;
  expect(new Map([...state.fulfilled].filter(isPositive))).toEqual(fulfilled);
  for (const [request, { slot, machine }] of state.placed)
    expect(state.slots.get(machine)?.get(slot)?.heldBy).toBe(request);
  const held = slots.filter(({ heldBy }) => heldBy !== null).length;
  expect(held).toBe(state.placed.size);
  const required = [...state.required.values()].reduce((sum, count) => sum + count, 0);
  const needed = state.placed.size + state.pending.size;
  expect([...state.required.values()].every((count) => count > 0)).toBe(true);
  // Slots that serve another profile than they were accepted for can leave one too many declared, as in Flink; never one too few.
  expect(required).toBeGreaterThanOrEqual(needed);
  const profiles = new Set(slots.map(({ mapped }) => mapped));
  for (const { profile } of state.pending.values()) profiles.add(profile);
  for (const profile of state.required.keys()) profiles.add(profile);
  if (profiles.size === 1 && !profiles.has('ANY')) expect(required).toBe(needed);
}
