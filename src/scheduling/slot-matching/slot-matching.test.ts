import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type MatchableSlot,
  preferredMatcher,
  simpleMatcher,
  type SlotRequest,
  tasksBalancedMatcher,
} from './index.js';
import { profileFits } from './matching-problem.js';

const seed = 20_262;

const slotProfile = fc.constantFrom('ANY', 'ANY', 'big', 'small');
const requestProfile = fc.constantFrom('UNKNOWN', 'UNKNOWN', 'big', 'small');
const problem = fc.record({
  slots: fc
    .array(fc.tuple(fc.integer({ min: 0, max: 4 }), slotProfile), { maxLength: 16 })
    .map((slots): MatchableSlot[] =>
      slots.map(([machine, profile], index) => ({ id: `s${index}`, machine: `m${machine}`, profile })),
    ),
  requests: fc
    .array(fc.tuple(fc.integer({ min: 0, max: 6 }), requestProfile, fc.array(fc.nat(15), { maxLength: 2 })), {
      maxLength: 12,
    })
    .map((requests): SlotRequest[] =>
      requests.map(([load, profile, preferred], index) => ({
        id: `r${index}`,
        load,
        profile,
        preferred: preferred.map((slot) => `s${slot}`),
      })),
    ),
  loads: fc.dictionary(fc.constantFrom('m0', 'm1', 'm2', 'm3', 'm4'), fc.integer({ min: 0, max: 9 })),
});

const matchers = {
  simple: simpleMatcher,
  tasks: tasksBalancedMatcher,
  'preferred, then simple': preferredMatcher(simpleMatcher),
  'preferred, then tasks': preferredMatcher(tasksBalancedMatcher),
};

describe('every matcher', () => {
  for (const [name, matcher] of Object.entries(matchers)) {
    it(`gives a slot to one request at most, and only one that fits: ${name}`, () => {
      fc.assert(
        fc.property(problem, ({ slots, requests, loads }) => {
          const matches = matcher(slots, requests, new Map(Object.entries(loads)));
          expect(new Set(matches.map(({ slot }) => slot)).size).toBe(matches.length);
          expect(new Set(matches.map(({ request }) => request)).size).toBe(matches.length);
          for (const { slot, request } of matches)
            expect(profileFits(slots[slot]!.profile, requests[request]!.profile)).toBe(true);
        }),
        { seed, numRuns: 500 },
      );
    });
  }
});

describe('the tasks-balanced matcher', () => {
  it('takes the least loaded machine at each pick where all slots are alike', () => {
    fc.assert(
      fc.property(problem, ({ slots: mixed, requests: mixedRequests, loads: initial }) => {
        const slots = mixed.map((slot) => ({ ...slot, profile: 'ANY' }));
        const requests = mixedRequests.map((request) => ({ ...request, profile: 'UNKNOWN' }));
        const loads = new Map(Object.entries(initial));
        const matches = tasksBalancedMatcher(slots, requests, loads);
        expect(matches.length).toBe(slots.length < requests.length ? 0 : requests.length);
        const free = new Set(slots.keys());
        let before = Infinity;
        for (const { request, slot } of matches) {
          const { load } = requests[request]!;
          expect(load).toBeLessThanOrEqual(before);
          before = load;
          const loadOf = (index: number): number => loads.get(slots[index]!.machine) ?? 0;
          for (const other of free) {
            // Least loaded; among equals the slot that is listed first.
            expect(loadOf(slot) < loadOf(other) || (loadOf(slot) === loadOf(other) && slot <= other)).toBe(
              true,
            );
          }
          free.delete(slot);
          loads.set(slots[slot]!.machine, loadOf(slot) + load);
        }
      }),
      { seed, numRuns: 1000 },
    );
  });

  it('serves all requests whenever an assignment of profiles exists, and none otherwise', () => {
    fc.assert(
      fc.property(problem, ({ slots, requests }) => {
        const count = (profile: string, list: readonly { readonly profile: string }[]): number =>
          list.filter((one) => one.profile === profile).length;
        const missing = ['big', 'small'].reduce(
          (sum, profile) => sum + Math.max(0, count(profile, requests) - count(profile, slots)),
          0,
        );
        const isPossible = slots.length >= requests.length && missing <= count('ANY', slots);
        const matches = tasksBalancedMatcher(slots, requests, new Map());
        expect(matches.length).toBe(isPossible ? requests.length : 0);
      }),
      { seed, numRuns: 1000 },
    );
  });

  it('does not let a request without needs take the only slot that fits another', () => {
    const slots = [
      { id: 'a', machine: 'm1', profile: 'big' },
      { id: 'b', machine: 'm2', profile: 'small' },
    ];
    const requests = [
      { id: 'x', load: 100, profile: 'UNKNOWN' },
      { id: 'y', load: 1, profile: 'big' },
    ];
    expect(tasksBalancedMatcher(slots, requests, new Map([['m2', 9]]))).toEqual([
      { request: 0, slot: 1 },
      { request: 1, slot: 0 },
    ]);
  });
});
