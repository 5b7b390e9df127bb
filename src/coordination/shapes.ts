/**
 * What a value must look like before anybody relies on its type: values of the coordinator's nodes, and what processes
 * send to a supervisor. Only what is read without a second look is checked; further fields pass, so that a newer writer
 * is understood.
 */
import type { Assignment } from '../scheduling/index.js';
import type { StoredPosition, SupervisorRecord, TopologyRecord } from './coordination.js';
import type { Handover } from './handover.js';
import type { FoldedHeartbeat, WorkerEvent, WorkerHeartbeat } from './heartbeat.js';
import { MAX_TAP_ROWS, MAX_TAP_WINDOW_MS, MIN_TAP_WINDOW_MS, type SlotSearch, type SlotTap } from './tap.js';
import type { StateCopy, StateFile } from './worker-link.js';

/**
 * `measure`: a number, or null, which is what JSON makes of NaN and the infinities. A list has one shape for all its
 * elements; an object names the fields that it must have.
 */
type Shape = 'text' | 'number' | 'measure' | 'flag' | 'object' | readonly [Shape] | Maybe | Fields;
type Fields = Readonly<{ [name: string]: Shape }>;
interface Maybe {
  readonly orNull: Shape;
}

function hasShape(value: unknown, shape: Shape): boolean {
  if (typeof shape === 'string') return isOfType(value, shape);
  if (isListShape(shape)) {
    if (!Array.isArray(value)) return false;
    for (const element of value) if (!hasShape(element, shape[0])) return false;
    return true;
  }
  if (isMaybe(shape)) return value === null || hasShape(value, shape.orNull);
  if (!isOfType(value, 'object')) return false;
  for (const name in shape) {
    if (!Object.hasOwn(value as object, name)) return false;
    if (!hasShape((value as Readonly<Record<string, unknown>>)[name], shape[name]!)) return false;
  }
  return true;
}

function isListShape(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

function isMaybe(shape: Fields | Maybe): shape is Maybe {
  return 'orNull' in shape;
}

function isOfType(value: unknown, type: Extract<Shape, string>): boolean {
  switch (type) {
    case 'text':
      return typeof value === 'string';
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    case 'measure':
      return typeof value === 'number' || value === null;
    case 'flag':
      return typeof value === 'boolean';
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
  }
}

const ERROR: Fields = { code: 'text', message: 'text', details: 'object' };
const EXECUTORS: Shape = [['number']];

const WORKER_HEARTBEAT: Fields = {
  workerId: 'text',
  topologyId: 'text',
  supervisorId: 'text',
  port: 'number',
  generation: 'number',
  pid: 'number',
  startedMs: 'number',
  assignmentVersion: 'number',
  ready: 'flag',
  sequence: 'number',
  cpuMicros: 'measure',
  rssBytes: 'measure',
  threads: [
    { index: 'number', generation: 'number', state: 'text', executors: EXECUTORS, restarts: 'number' },
  ],
  tasks: [
    {
      task: 'number',
      component: 'text',
      emitted: 'measure',
      transferred: 'measure',
      executed: 'measure',
      acked: 'measure',
      failed: 'measure',
      replayed: 'measure',
      deadLetters: 'measure',
      queued: 'measure',
      pending: 'measure',
      ended: 'flag',
      stopped: 'flag',
      generation: 'number',
    },
  ],
  components: [
    {
      component: 'text',
      executeMicros: [['number']],
      completeMicros: [['number']],
      failures: 'object',
      replays: 'object',
      counters: 'object',
    },
  ],
  errors: [
    { component: 'text', task: 'number', error: ERROR, count: 'number', firstMs: 'number', lastMs: 'number' },
  ],
  lostStates: [{ component: 'text', task: 'number', atMs: 'number' }],
  oldestPending: { orNull: { component: 'text', task: 'number', ageMs: 'measure', row: 'text' } },
  deadLetterFiles: ['text'],
};

const FOLDED_HEARTBEAT: Fields = {
  supervisorId: 'text',
  pid: 'number',
  sequence: 'number',
  slots: [
    {
      port: 'number',
      state: 'text',
      topologyId: { orNull: 'text' },
      workerId: { orNull: 'text' },
      pid: { orNull: 'number' },
      restarts: 'number',
      lastProblem: { orNull: ERROR },
      heartbeat: { orNull: WORKER_HEARTBEAT },
      heartbeatMs: { orNull: 'number' },
    },
  ],
  lastReports: [WORKER_HEARTBEAT],
};

const WORKER_EVENTS: Shape = [
  {
    number: 'number',
    kind: 'text',
    topologyId: 'text',
    port: 'number',
    code: { orNull: 'text' },
    reason: 'text',
    detail: 'text',
    count: 'number',
    firstMs: 'number',
    lastMs: 'number',
  },
];

const SUPERVISOR: Fields = { id: 'text', host: 'text', ports: ['number'], startedMs: 'number' };

const TOPOLOGY: Fields = {
  id: 'text',
  name: 'text',
  submittedMs: 'number',
  codeHash: 'text',
  descriptionHash: 'text',
  settings: 'object',
  secret: 'text',
  phase: { kind: 'text' },
};

const ASSIGNMENT: Fields = {
  topologyId: 'text',
  version: 'number',
  tasks: [{ component: 'text', first: 'number', last: 'number' }],
  slots: [{ supervisor: 'text', host: 'text', port: 'number', executors: EXECUTORS, startedMs: 'number' }],
};

const MOVES: Shape = [{ tasks: ['number'], from: { supervisor: 'text', port: 'number' }, move: 'number' }];
const TARGET: Fields = { slots: ASSIGNMENT['slots']!, sinceMs: 'number', losesState: 'flag' };

const HANDOVERS: Shape = [{ task: 'number', move: 'number', step: { kind: 'text' } }];
/** What a step has beyond its kind. */
const HANDOVER_STEPS: Readonly<Record<string, Fields>> = {
  released: { state: { kind: 'text' } },
  kept: { error: ERROR },
  taken: { generation: 'number' },
  failed: { supervisor: 'text', port: 'number', error: ERROR },
};
const SAVED_STATE: Fields = { hash: 'text', bytes: 'number' };

/** Longer names of components and fields, and values sought, are nobody's. */
const MAX_TAP_NAME = 1000;
const MAX_TAP_VALUE = 10_000;
const SLOT_TAP: Fields = {
  topologyId: 'text',
  port: 'number',
  request: {
    component: 'text',
    taken: 'flag',
    where: { orNull: { field: 'text', value: 'text' } },
    limit: 'number',
    windowMs: 'number',
  },
};
const SLOT_SEARCH: Fields = { topologyId: 'text', port: 'number', rootTask: 'number', sequence: 'number' };

const POSITIONS: Shape = [{ task: 'number', generation: 'number' }];

export function isWorkerHeartbeat(value: unknown): value is WorkerHeartbeat {
  return hasShape(value, WORKER_HEARTBEAT);
}

export function isFoldedHeartbeat(value: unknown): value is FoldedHeartbeat {
  if (!hasShape(value, FOLDED_HEARTBEAT)) return false;
  const { events } = value as { readonly events?: unknown };
  return events === undefined || areWorkerEvents(events);
}

export function areWorkerEvents(value: unknown): value is readonly WorkerEvent[] {
  return hasShape(value, WORKER_EVENTS);
}

export function isSupervisorRecord(value: unknown): value is SupervisorRecord {
  return hasShape(value, SUPERVISOR);
}

export function isTopologyRecord(value: unknown): value is TopologyRecord {
  return hasShape(value, TOPOLOGY);
}

export function isAssignment(value: unknown): value is Assignment {
  if (!hasShape(value, ASSIGNMENT)) return false;
  const { target, moves } = value as { readonly target?: unknown; readonly moves?: unknown };
  return (
    (target === undefined || hasShape(target, TARGET)) && (moves === undefined || hasShape(moves, MOVES))
  );
}

export function areHandovers(value: unknown): value is readonly Handover[] {
  if (!hasShape(value, HANDOVERS)) return false;
  return (value as readonly { readonly step: { readonly kind: string; readonly state?: unknown } }[]).every(
    ({ step }) => {
      const shape = HANDOVER_STEPS[step.kind];
      if (shape === undefined || !hasShape(step, shape)) return false;
      return (
        !hasShape(step.state, { kind: 'text' }) || isReleasedState(step.state as { readonly kind: string })
      );
    },
  );
}

function isReleasedState(state: { readonly kind: string }): boolean {
  return (
    state.kind === 'none' || state.kind === 'lost' || (state.kind === 'saved' && hasShape(state, SAVED_STATE))
  );
}

export function isStateFile(value: unknown): value is StateFile {
  return hasShape(value, { task: 'number', move: 'number', path: 'text' });
}

export function isStateCopy(value: unknown): value is StateCopy {
  return hasShape(value, { hash: 'text', path: 'text' });
}

export function arePositions(value: unknown): value is readonly StoredPosition[] {
  return hasShape(value, POSITIONS);
}

export function areTexts(value: unknown): value is readonly string[] {
  return hasShape(value, ['text']);
}

export function isSlotTap(value: unknown): value is SlotTap {
  if (!hasShape(value, SLOT_TAP)) return false;
  const { component, where, limit, windowMs } = (value as SlotTap).request;
  return (
    component.length <= MAX_TAP_NAME &&
    (where === null || (where.field.length <= MAX_TAP_NAME && where.value.length <= MAX_TAP_VALUE)) &&
    Number.isInteger(limit) &&
    limit >= 1 &&
    limit <= MAX_TAP_ROWS &&
    windowMs >= MIN_TAP_WINDOW_MS &&
    windowMs <= MAX_TAP_WINDOW_MS
  );
}

export function isSlotSearch(value: unknown): value is SlotSearch {
  return hasShape(value, SLOT_SEARCH);
}
