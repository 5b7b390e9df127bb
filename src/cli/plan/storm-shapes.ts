/** The answers of a Storm UI that say something about placement: only what is read is checked, the rest may be anything. */
import { z } from 'zod';
import { LIMITS } from './cluster-shapes.js';

const count = z.custom<number>(
  (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= LIMITS.executors,
  `a whole number from 0 to ${LIMITS.executors}`,
);
const amount = z.custom<number>(
  (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= LIMITS.amount,
  `a number from 0 to ${LIMITS.amount}`,
);
const text = z
  .string('a text')
  .min(1, 'a text of at least 1 character')
  .max(LIMITS.text, `a text of at most ${LIMITS.text} characters`);
const port = z.custom<number>(
  (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65_535,
  'a port from 1 to 65535',
);

const worker = z.looseObject({
  supervisorId: text,
  port,
  topologyId: text,
  componentNumTasks: z.record(z.string(), count, 'an object of task counts').optional(),
});

const requested = {
  executors: count,
  tasks: count,
  requestedMemOnHeap: amount.optional(),
  requestedMemOffHeap: amount.optional(),
  requestedCpu: amount.optional(),
} as const;

/** `/api/v1/supervisor/summary`, `/api/v1/supervisor`. */
export const supervisorsAnswer = z.looseObject({
  supervisors: z.array(
    z.looseObject({
      id: text,
      host: text,
      slotsTotal: count,
      uptimeSeconds: amount.optional(),
      blacklisted: z.boolean('true or false').optional(),
      totalMem: amount.optional(),
      totalCpu: amount.optional(),
    }),
    'a list of supervisors',
  ),
  workers: z.array(worker, 'a list of workers').optional(),
});

/** `/api/v1/topology/{id}`. */
export const topologyAnswer = z.looseObject({
  id: text,
  name: text,
  owner: z.string('a text').optional(),
  status: z.string('a text').optional(),
  uptimeSeconds: amount.optional(),
  workersTotal: count,
  spouts: z.array(z.looseObject({ spoutId: text, ...requested }), 'a list of spouts'),
  bolts: z.array(z.looseObject({ boltId: text, ...requested }), 'a list of bolts'),
  workers: z.array(worker, 'a list of workers').optional(),
  configuration: z.record(z.string(), z.unknown(), 'an object of settings').optional(),
});

/** `/api/v1/topology/{id}/component/{component}`. */
export const componentAnswer = z.looseObject({
  id: text,
  topologyId: text,
  executorStats: z.array(
    z.looseObject({
      id: z.string('an executor such as [3-4]').regex(/^\[\d{1,9}-\d{1,9}\]$/, 'an executor such as [3-4]'),
      host: text,
      port,
    }),
    'a list of executors',
  ),
  inputStats: z
    .array(z.looseObject({ component: text, stream: text.optional() }), 'a list of inputs')
    .optional(),
});

/** `/api/v1/topology/{id}/visualization`. */
export const visualizationAnswer = z.record(
  text,
  z.looseObject({
    ':type': z.string('"spout" or "bolt"'),
    ':inputs': z.array(
      z.looseObject({ ':component': text, ':grouping': z.string('a grouping') }),
      'a list of inputs',
    ),
  }),
);

export type SupervisorsAnswer = z.infer<typeof supervisorsAnswer>;
export type TopologyAnswer = z.infer<typeof topologyAnswer>;
export type ComponentAnswer = z.infer<typeof componentAnswer>;
export type VisualizationAnswer = z.infer<typeof visualizationAnswer>;

export type AnswerKind = 'supervisors' | 'topologies' | 'topology' | 'component' | 'visualization' | 'other';

/** Which answer it is meant to be, by the fields that only that one has; undefined: none. */
export function answerKind(value: unknown): AnswerKind | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const has = (...keys: readonly string[]): boolean => keys.every((key) => Object.hasOwn(value, key));
  if (has('spouts', 'bolts')) return 'topology';
  if (has('executorStats', 'topologyId')) return 'component';
  if (has('supervisors', 'schedulerDisplayResource') || firstHas(value, 'supervisors', 'slotsTotal'))
    return 'supervisors';
  if (firstHas(value, 'topologies', 'workersTotal')) return 'topologies';
  if (has('stormVersion') || has('nimbuses') || has('storm.zookeeper.servers')) return 'other';
  const [first] = Object.values(value) as unknown[];
  const isGraph = typeof first === 'object' && first !== null && ':type' in first && ':inputs' in first;
  return isGraph ? 'visualization' : undefined;
}

function firstHas(value: object, list: string, key: string): boolean {
  const entries: unknown = (value as Readonly<Record<string, unknown>>)[list];
  const first: unknown = Array.isArray(entries) ? entries[0] : undefined;
  return typeof first === 'object' && first !== null && key in first;
}
