/** Flink's cases of the slot pool: events on a virtual clock → declarations, placements and failures. */
import { z } from 'zod';
import type { SlotPoolAction, SlotPoolEvent } from '../../../src/scheduling/index.js';
import { emptySlotPool, planSlotPool, slotPoolDueMs } from '../../../src/scheduling/index.js';
import type { VectorCase } from '../read-cases.js';
import { descending } from './flink-matching.js';
import { exact, type Facts, sets } from './operation.js';

const requestFields = {
  id: z.string(),
  load: z.number().default(1),
  profile: z.string().default('UNKNOWN'),
  preferred: z.array(z.string()).default([]),
};
const eventSchema = z.discriminatedUnion('type', [
  z.object({
    t: z.number(),
    type: z.literal('request'),
    ...requestFields,
    timeout: z.number().default(0),
    batch: z.boolean().default(false),
  }),
  z.object({ t: z.number(), type: z.literal('reserve'), ...requestFields, slot: z.string() }),
  z.object({
    t: z.number(),
    type: z.literal('offer'),
    tm: z.string(),
    slots: z.array(z.object({ id: z.string(), profile: z.string().default('ANY') })),
  }),
  z.object({ t: z.number(), type: z.literal('release'), id: z.string() }),
  z.object({ t: z.number(), type: z.literal('tmLost'), tm: z.string() }),
  z.object({ t: z.number(), type: z.literal('notEnough') }),
  z.object({ t: z.number(), type: z.literal('restarting'), value: z.boolean() }),
  z.object({
    t: z.number(),
    type: z.literal('setRequirements'),
    requirements: z.record(z.string(), z.number()),
  }),
]);
const inputSchema = z.object({
  config: z.object({
    scheduler: z.enum(['DEFAULT', 'ADAPTIVE']).default('DEFAULT'),
    mode: z.enum(['NONE', 'SLOTS', 'MIN_RESOURCES', 'TASKS']).default('NONE'),
    jobType: z.enum(['STREAMING', 'BATCH']).default('STREAMING'),
    maxInterval: z.number().default(20),
    idleTimeout: z.number().default(50_000),
    localRecovery: z.boolean().default(false),
  }),
  events: z.array(eventSchema),
  until: z.number(),
});

export function runPoolTiming({ input }: VectorCase): Facts {
  const { config, events, until } = inputSchema.parse(input);
  const isStreaming = config.jobType === 'STREAMING';
  let state = emptySlotPool(
    {
      requestMaxIntervalMs: config.maxInterval,
      requestMaxDelayMs: null,
      isDeferred: config.mode === 'TASKS' && isStreaming && config.scheduler === 'DEFAULT',
      slotWaitTimeoutMs: null,
      idleTimeoutMs: config.idleTimeout,
      prefersPreviousSlots: config.localRecovery && isStreaming,
      triesOnRequest: false,
    },
    0,
  );
  const log: { readonly t: number; readonly action: SlotPoolAction }[] = [];
  const play = (event: SlotPoolEvent, t: number): void => {
    const step = planSlotPool(state, event, t);
    state = step.state;
    for (const action of step.actions) log.push({ t, action });
  };
  const advance = (t: number): void => {
    for (let due = slotPoolDueMs(state); due <= t; due = slotPoolDueMs(state)) play({ kind: 'tick' }, due);
  };
  const loadOf = new Map<string, number>();
  for (const event of events) {
    advance(event.t);
    if ('load' in event) loadOf.set(event.id, event.load);
    play(toEvent(event), event.t);
  }
  advance(until);
  return factsOf(log, [...state.pending.keys()], loadOf);
}

function toEvent(event: z.infer<typeof eventSchema>): SlotPoolEvent {
  switch (event.type) {
    case 'request': {
      const { id, load, profile, preferred, timeout, batch } = event;
      const timeoutMs = timeout > 0 ? timeout : null;
      return { kind: 'request', requests: [{ id, load, profile, preferred, timeoutMs, isBatch: batch }] };
    }
    case 'reserve': {
      const { id, load, profile, slot } = event;
      return { kind: 'reserve', request: { id, load, profile }, slot };
    }
    case 'offer':
      return { kind: 'offer', machine: event.tm, slots: event.slots };
    case 'release':
      return { kind: 'release', request: event.id };
    case 'tmLost':
      return { kind: 'machine-lost', machine: event.tm };
    case 'notEnough':
      return { kind: 'not-enough-resources' };
    case 'restarting':
      return { kind: 'restarting', isRestarting: event.value };
    case 'setRequirements':
      return { kind: 'set-requirements', requirements: new Map(Object.entries(event.requirements)) };
  }
}

function factsOf(
  log: readonly { readonly t: number; readonly action: SlotPoolAction }[],
  pendingAtEnd: readonly string[],
  loadOf: ReadonlyMap<string, number>,
): Facts {
  const declares: unknown[] = [];
  const allocatedAt: Record<string, number> = {};
  const slotOf: Record<string, string> = {};
  const loads = new Map<string, number>();
  const lists = { rejected: [] as unknown[], failed: [] as unknown[], returned: [] as unknown[] };
  for (const { t, action } of log) {
    switch (action.kind) {
      case 'declare':
        declares.push({ t, requirements: Object.fromEntries(action.requirements) });
        break;
      case 'place':
        for (const { request, slot, machine } of action.placements) {
          allocatedAt[request] = t;
          slotOf[request] = slot;
          loads.set(machine, (loads.get(machine) ?? 0) + (loadOf.get(request) ?? 0));
        }
        break;
      case 'reject':
        lists.rejected.push({ t, slot: action.slot });
        break;
      case 'fail':
        lists.failed.push({ t, request: action.request, reason: action.reason });
        break;
      case 'return':
        lists.returned.push({ t, slot: action.slot });
        break;
      case 'refuse':
        break;
    }
  }
  return {
    declares: exact(declares),
    allocatedAt: exact(allocatedAt),
    rejectedOffers: sets(lists.rejected),
    failedRequests: sets(lists.failed),
    returnedSlots: sets(lists.returned),
    pendingAtEnd: sets(pendingAtEnd),
    slotOf: exact(slotOf),
    sortedAllocatedTmLoads: exact(descending(loads.values())),
  };
}
