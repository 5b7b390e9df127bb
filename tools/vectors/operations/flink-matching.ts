/** Flink's cases of slot matching: requests to slots, profiles, and the choice of machines. */
import { z } from 'zod';
import type { MatchableSlot, SlotMatch, SlotRequest } from '../../../src/scheduling/index.js';
import {
  adaptiveMatches,
  chooseFreeSlots,
  chooseMachines,
  preferredMatcher,
  preMapping,
  simpleMatcher,
  tasksBalancedMatcher,
} from '../../../src/scheduling/index.js';
import type { VectorCase } from '../read-cases.js';
import { exact, type Fact, type Facts, sets } from './operation.js';

const slotsSchema = z
  .array(z.object({ id: z.string(), tm: z.string(), profile: z.string().default('ANY') }))
  .transform((slots) => slots.map(({ id, tm, profile }) => ({ id, machine: tm, profile })));
const requestsSchema = z.array(
  z
    .object({
      id: z.string(),
      load: z.number().default(1),
      profile: z.string().default('UNKNOWN'),
      preferred: z.array(z.string()).optional(),
    })
    .transform(({ preferred, ...request }) => ({
      ...request,
      ...(preferred === undefined ? {} : { preferred }),
    })),
);
const countsSchema = z.record(z.string(), z.number());
const loadsSchema = countsSchema.default({}).transform((loads) => new Map(Object.entries(loads)));

/** What is told for information only, whatever it says. */
const INFORMATION: Fact = { check: () => undefined };

interface Pair {
  readonly request: string;
  readonly slot: string;
  readonly tm: string;
}

function pairsOf(
  matches: readonly SlotMatch[],
  slots: readonly MatchableSlot[],
  requests: readonly SlotRequest[],
): Pair[] {
  return matches.flatMap(({ request, slot }) => {
    const [wanted, found] = [requests[request], slots[slot]];
    return wanted === undefined || found === undefined
      ? []
      : [{ request: wanted.id, slot: found.id, tm: found.machine }];
  });
}

/** One of the outcomes listed, in any order of machines. */
export function oneOf(sorted: readonly number[]): Fact {
  return {
    check: (expected) => {
      const allowed = z.array(z.array(z.number())).parse(expected);
      const text = JSON.stringify(sorted);
      return allowed.some((outcome) => JSON.stringify(outcome) === text) ? undefined : text;
    },
  };
}

export function descending(values: Iterable<number>): number[] {
  return [...values].sort((a, b) => b - a);
}

/** Load per machine of all slots and initial loads, with what was matched. */
function loadsAfter(
  matches: readonly SlotMatch[],
  slots: readonly MatchableSlot[],
  requests: readonly SlotRequest[],
  initial: ReadonlyMap<string, number>,
): Map<string, number> {
  const loads = new Map([...slots.map(({ machine }) => [machine, 0] as const), ...initial]);
  for (const { request, slot } of matches) {
    const machine = slots[slot]?.machine ?? '';
    loads.set(machine, (loads.get(machine) ?? 0) + (requests[request]?.load ?? 0));
  }
  return loads;
}

const MATCHERS = {
  SIMPLE: simpleMatcher,
  TASKS: tasksBalancedMatcher,
  PREFERRED_SIMPLE: preferredMatcher(simpleMatcher),
  PREFERRED_TASKS: preferredMatcher(tasksBalancedMatcher),
};

export function runRequestMatch({ input }: VectorCase): Facts {
  const { strategy, slots, requests, initialTmLoads } = z
    .object({
      strategy: z.enum(['SIMPLE', 'TASKS', 'PREFERRED_SIMPLE', 'PREFERRED_TASKS']),
      slots: slotsSchema,
      requests: requestsSchema,
      initialTmLoads: loadsSchema,
    })
    .parse(input);
  const matches = MATCHERS[strategy](slots, requests, initialTmLoads);
  const pairs = pairsOf(matches, slots, requests);
  const loads = loadsAfter(matches, slots, requests, initialTmLoads);
  const wantedSlot = new Map(requests.map(({ id, preferred }) => [id, preferred ?? []]));
  const byMachine = new Map<string, string[]>();
  for (const { request, tm } of pairs) byMachine.set(tm, [...(byMachine.get(tm) ?? []), request]);
  return {
    matchedCount: exact(pairs.length),
    allMatched: exact(pairs.length === requests.length),
    matches: sets(pairs),
    canonical: sets(pairs),
    preferredMatches: sets(pairs.filter(({ request, slot }) => wantedSlot.get(request)?.includes(slot))),
    requestsByTm: { value: Object.fromEntries(byMachine), compare: 'sets-without-empty' },
    allowedSortedTmLoads: oneOf(descending(loads.values())),
    allowedMax: atMost(Math.max(...loads.values())),
    loadByTm: { value: Object.fromEntries(loads), compare: 'at-least' },
    finalTmLoads: { value: Object.fromEntries(loads), compare: 'at-least' },
    bestPossibleMax: INFORMATION,
    tooManyOutcomes: INFORMATION,
    flinkAlsoReaches: INFORMATION,
    flinkReached: INFORMATION,
  };
}

function atMost(value: number): Fact {
  return { check: (expected) => (value <= z.number().parse(expected) ? undefined : String(value)) };
}

const ADAPTIVE_MODES = { SIMPLE: 'simple', SLOTS: 'slots', TASKS: 'tasks' } as const;

export function runAdaptiveMatch({ input }: VectorCase): Facts {
  const { strategy, slots, requests } = z
    .object({ strategy: z.enum(['SIMPLE', 'SLOTS', 'TASKS']), slots: slotsSchema, requests: requestsSchema })
    .parse(input);
  const matches = adaptiveMatches(ADAPTIVE_MODES[strategy], slots, requests);
  const loads = loadsAfter(matches, slots, requests, new Map());
  const counts = loadsAfter(
    matches,
    slots,
    requests.map((request) => ({ ...request, load: 1 })),
    new Map(),
  );
  return {
    canonical: sets(pairsOf(matches, slots, requests)),
    matchedCount: exact(matches.length),
    tmLoads: { value: Object.fromEntries(loads), compare: 'at-least' },
    allowedSortedTmLoads: oneOf(descending(loads.values())),
    allowedSortedSlotCounts: oneOf(descending(counts.values())),
    allowedMax: atMost(Math.max(...loads.values())),
    bestPossibleMax: INFORMATION,
    tooManyOutcomes: INFORMATION,
    flinkAlsoReaches: INFORMATION,
    flinkReached: INFORMATION,
  };
}

export function runPreMapping({ input }: VectorCase): Facts {
  const { slotProfiles, requestProfiles } = z
    .object({ slotProfiles: z.array(z.string()), requestProfiles: z.array(z.string()) })
    .parse(input);
  const { isFulfilled, base, flexible } = preMapping(
    slotProfiles.map((profile) => ({ profile })),
    requestProfiles.map((profile) => ({ profile })),
  );
  return {
    fulfilled: exact(isFulfilled),
    base: {
      check: (expected) => {
        const rows = z.record(z.string(), countsSchema).parse(expected);
        const isSame = (profile: string, row: Record<string, number>): boolean => {
          const actual = base.get(profile) ?? new Map<string, number>();
          const sum = [...actual.values()].reduce((total, count) => total + count, 0);
          if (row['anyOf'] !== undefined) return sum === row['anyOf'];
          return (
            Object.entries(row).every(([slot, count]) => (actual.get(slot) ?? 0) === count) &&
            Object.values(row).reduce((total, count) => total + count, 0) === sum
          );
        };
        const isAgreed =
          Object.entries(rows).every(([profile, row]) => isSame(profile, row)) &&
          [...base.keys()].every((profile) => profile in rows);
        return isAgreed
          ? undefined
          : JSON.stringify([...base].map(([profile, row]) => [profile, Object.fromEntries(row)]));
      },
    },
    remainingTotal: exact([...flexible.values()].reduce((total, count) => total + count, 0)),
  };
}

const CHOICES = { ANY: 'any', LEAST: 'least-utilised', MOST: 'most-utilised' } as const;

export function runMachineChoice({ input }: VectorCase): Facts {
  const { strategy, taskManagers, requiredSlots, newTaskManagerSlots } = z
    .object({
      strategy: z.enum(['ANY', 'LEAST', 'MOST']),
      taskManagers: z.array(
        z.object({
          id: z.string(),
          slots: z.int(),
          used: z.int().default(0),
          blocked: z.boolean().default(false),
        }),
      ),
      requiredSlots: z.int(),
      newTaskManagerSlots: z.int().default(0),
    })
    .parse(input);
  const machines = taskManagers.map(({ slots, used, blocked }) => ({ slots, used, isBlocked: blocked }));
  const chosen = chooseMachines(CHOICES[strategy], machines, requiredSlots, newTaskManagerSlots);
  const open = descending(chosen.perMachine.filter((_, index) => machines[index]?.isBlocked !== true));
  const perMachine = Object.fromEntries(
    taskManagers.map(({ id }, index) => [id, chosen.perMachine[index] ?? 0]),
  );
  return {
    canonicalPerTm: { value: perMachine, compare: 'at-least' },
    // Blocked machines are not part of the outcome.
    allowedSortedPerTm: oneOf(open),
    allowedMax: atMost(open[0] ?? 0),
    allocatedOnRegistered: exact(chosen.perMachine.reduce((total, count) => total + count, 0)),
    pendingTaskManagers: exact(chosen.newMachines),
    unfulfilled: exact(chosen.unfulfilled),
  };
}

export function runPoolSelect({ input }: VectorCase): Facts {
  const { strategy, slots, requests, usedSlotsByTm, totalSlotsByTm } = z
    .object({
      strategy: z.enum(['EVENLY', 'DEFAULT', 'TASKS']),
      slots: slotsSchema,
      requests: requestsSchema,
      usedSlotsByTm: loadsSchema,
      totalSlotsByTm: loadsSchema,
    })
    .parse(input);
  // Balanced by tasks nothing is taken here: all requests wait for the whole picture.
  const matches =
    strategy === 'TASKS'
      ? []
      : chooseFreeSlots(strategy === 'EVENLY' ? 'evenly' : 'first', slots, requests, {
          used: usedSlotsByTm,
          total: totalSlotsByTm,
        });
  const machines = new Set(slots.map(({ machine }) => machine));
  const counts = new Map([...machines].map((machine) => [machine, 0]));
  for (const { tm } of pairsOf(matches, slots, requests)) counts.set(tm, (counts.get(tm) ?? 0) + 1);
  return {
    matchedCount: exact(matches.length),
    canonical: sets(pairsOf(matches, slots, requests)),
    matches: sets(pairsOf(matches, slots, requests)),
    slotsPerTm: { value: Object.fromEntries(counts), compare: 'at-least' },
    allowedSortedSlotCounts: oneOf(descending(counts.values())),
  };
}
