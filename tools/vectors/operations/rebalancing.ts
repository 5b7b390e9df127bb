/** Operations on the life of a topology: transition, validate, apply, parseArguments. Times are seconds, as Storm gives them. */
import { z } from 'zod';
import { parseRebalanceWords } from '../../../src/cli/rebalance-words.js';
import { hasCode } from '../../../src/base/index.js';
import {
  checkRebalance,
  desiredAfter,
  lifeTimer,
  type LifeEvent,
  statusOf,
  transition,
} from '../../../src/nimbus/index.js';
import type { DesiredState, TopologyPhase } from '../../../src/coordination/index.js';
import { countsSchema, exact, type Facts, type Operation } from './operation.js';
import { runComputeExecutors } from './counting.js';

const NOW = { wallMs: 0, boot: 'vectors', bootMs: 0 };
const NOTHING_DESIRED: DesiredState = {
  revision: 1,
  executors: {},
  resources: {},
  placement: 'from-scratch',
  changedMs: 0,
};
const statusSchema = z.enum(['ACTIVE', 'INACTIVE', 'REBALANCING', 'KILLED']);
const previousSchema = z.enum(['ACTIVE', 'INACTIVE']).default('ACTIVE');

const transitionSchema = z.object({
  status: statusSchema,
  event: z.enum([
    'ACTIVATE',
    'INACTIVATE',
    'REBALANCE',
    'DO_REBALANCE',
    'KILL',
    'REMOVE',
    'GAIN_LEADERSHIP',
    'STARTUP',
  ]),
  waitSecs: z.number().nullish(),
  topologyMessageTimeoutSecs: z.number().default(30),
  previousStatus: previousSchema,
  /** Only who asked is told that there is no such transition. */
  userCommand: z.boolean().default(false),
});

type TransitionInput = z.infer<typeof transitionSchema>;

export const runTransition: Operation = ({ input }) => {
  const parsed = transitionSchema.parse(input);
  const before = phaseOf(parsed);
  const result = transition(before, eventOf(parsed), NOW);
  switch (result.kind) {
    case 'refused':
      return parsed.userCommand
        ? { error: exact('no-transition') }
        : { status: exact(parsed.status), noop: exact(true) };
    case 'stays':
      return { ...factsOf(before), noop: exact(true) };
    case 'moved':
      return result.phase.kind === 'removed' ? { removed: exact(true) } : factsOf(result.phase);
  }
};

function factsOf(phase: TopologyPhase): Facts {
  const timer = lifeTimer(phase, NOW);
  return {
    status: exact(statusOf(phase)),
    ...(phase.kind === 'rebalancing' ? { previousStatus: exact(phase.previous.toUpperCase()) } : {}),
    ...(timer === undefined
      ? {}
      : {
          scheduled: exact({
            event: timer.event === 'remove' ? 'REMOVE' : 'DO_REBALANCE',
            afterSecs: timer.afterMs / 1000,
          }),
        }),
  };
}

function waitMsOf({ waitSecs, topologyMessageTimeoutSecs }: TransitionInput): number {
  return (waitSecs ?? topologyMessageTimeoutSecs) * 1000;
}

function phaseOf(input: TransitionInput): TopologyPhase {
  const wait = { since: NOW, waitMs: waitMsOf(input) };
  switch (input.status) {
    case 'ACTIVE':
      return { kind: 'active' };
    case 'INACTIVE':
      return { kind: 'inactive' };
    case 'KILLED':
      return { kind: 'killed', wait };
    case 'REBALANCING':
      return {
        kind: 'rebalancing',
        previous: lowerCase(input.previousStatus),
        wait,
        desired: NOTHING_DESIRED,
      };
  }
}

function lowerCase(status: 'ACTIVE' | 'INACTIVE'): 'active' | 'inactive' {
  return status === 'ACTIVE' ? 'active' : 'inactive';
}

function eventOf(input: TransitionInput): LifeEvent {
  switch (input.event) {
    case 'ACTIVATE':
      return { kind: 'activate' };
    case 'INACTIVATE':
      return { kind: 'inactivate' };
    case 'REBALANCE':
      return { kind: 'rebalance', waitMs: waitMsOf(input), desired: NOTHING_DESIRED };
    case 'DO_REBALANCE':
      return { kind: 'do-rebalance' };
    case 'KILL':
      return { kind: 'kill', waitMs: waitMsOf(input) };
    case 'REMOVE':
      return { kind: 'remove' };
    case 'GAIN_LEADERSHIP':
    case 'STARTUP':
      return { kind: 'startup' };
  }
}

const optionsSchema = z.object({ workers: z.number().optional(), executors: countsSchema.default({}) });

export const runValidate: Operation = ({ input }) => {
  const { components, workers, executors } = z
    .object({
      components: z.array(z.string()),
      workers: z.number().optional(),
      executors: z.record(z.string(), z.number()).default({}),
    })
    .parse(input);
  try {
    const given = workers === undefined ? {} : { workers };
    checkRebalance({ ...given, executors, resources: {} }, components, { asStorm: true });
  } catch (error) {
    if (!hasCode(error, 'PARALLELISM_ILLEGAL') && !hasCode(error, 'COMPONENT_NOT_FOUND')) throw error;
    return { error: exact('InvalidTopology') };
  }
  return { ok: exact(true) };
};

const applySchema = z.object({
  base: z.object({
    numWorkers: z.int(),
    componentExecutors: countsSchema,
    previousStatus: previousSchema,
  }),
  options: optionsSchema,
});

/** do-rebalance: the counts that are stored, and the executors that follow from them. */
export const runApply: Operation = (test) => {
  const { base, options } = applySchema.parse(test.input);
  const before: DesiredState = {
    ...NOTHING_DESIRED,
    workers: base.numWorkers,
    executors: base.componentExecutors,
  };
  const { executors } = options;
  // On Storm's wire, 0 workers are none that were asked for.
  const workers = options.workers === 0 ? undefined : options.workers;
  const request = {
    executors,
    resources: {},
    waitMs: 0,
    fromScratch: true,
    preview: false,
    ...(workers === undefined ? {} : { workers }),
  };
  const asked = desiredAfter(before, request, 0);
  const waiting: TopologyPhase = {
    kind: 'rebalancing',
    previous: lowerCase(base.previousStatus),
    wait: { since: NOW, waitMs: 0 },
    desired: asked,
  };
  const done = transition(waiting, { kind: 'do-rebalance' }, NOW);
  if (done.kind !== 'moved' || done.desired === undefined) throw new Error('do-rebalance was refused');
  const { desired, phase } = done;
  return {
    numWorkers: exact(desired.workers),
    componentExecutors: exact(desired.executors),
    status: exact(statusOf(phase)),
    ...runComputeExecutors({
      ...test,
      input: { ...test.input, componentExecutors: desired.executors },
    }),
  };
};

export const runParseArguments: Operation = ({ input }) => {
  const { argv } = z.object({ argv: z.array(z.string()) }).parse(input);
  const parsed = parseRebalanceWords(argv);
  if (parsed === undefined) return { error: exact(true) };
  const { name, request } = parsed;
  return {
    topology: exact(name),
    executors: exact(request.executors),
    ...(request.workers === undefined ? {} : { workers: exact(request.workers) }),
    ...(Object.keys(request.resources).length === 0 ? {} : { resources: exact(request.resources) }),
    ...(request.waitMs === null ? {} : { waitSecs: exact(request.waitMs / 1000) }),
  };
};
