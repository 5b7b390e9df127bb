/** What the bodies of requests must look like: they may come from another version, or from anybody of the same user. */
import { z } from 'zod';
import { IsobarError } from '../base/index.js';
import { MAX_TAP_ROWS, MAX_TAP_WINDOW_MS, MIN_TAP_WINDOW_MS } from '../coordination/index.js';
import type { ControlRequests } from './contract.js';

/** A wait of more than a year is a mistake in the unit. */
const MAX_WAIT_MS = 366 * 86_400_000;

const name = z.string('the name of a topology');
const content = z.custom<Uint8Array | string>(
  (value) => typeof value === 'string' || value instanceof Uint8Array,
  'text or bytes',
);
const settings = z.record(z.string(), z.unknown(), 'an object of settings');
const waitMs = z.number().min(0).max(MAX_WAIT_MS).nullable();
/** Numbers are checked by Nimbus, which says what is wrong with which of them. */
const counts = z.record(z.string(), z.number());
const requestId = z.string().max(200).exactOptional();

const SHAPES = {
  ping: z.unknown(),
  submit: z.object({
    description: z.unknown(),
    code: content,
    sourceMap: content.exactOptional(),
    settings,
    inactive: z.boolean().exactOptional(),
    requestId,
    codeHash: z.string().exactOptional(),
  }),
  activate: name,
  deactivate: name,
  rebalance: z.object({
    name,
    request: z.object({
      workers: z.number().exactOptional(),
      executors: counts,
      resources: z.record(z.string(), counts),
      waitMs,
      fromScratch: z.boolean(),
      preview: z.boolean(),
      requestId,
    }),
  }),
  kill: z.object({ name, waitMs }),
  drain: name,
  stop: name,
  status: z.unknown(),
  supervisors: z.unknown(),
  list: z.unknown(),
  picture: z.unknown(),
  describe: name,
  holder: name,
  events: z.object({ name: name.nullable(), sinceMs: z.number().nullable(), after: z.number().nullable() }),
  tap: z.object({
    name,
    component: z.string(),
    taken: z.boolean(),
    where: z.object({ field: z.string(), value: z.string() }).nullable(),
    limit: z.number().int().min(1).max(MAX_TAP_ROWS),
    windowMs: z.number().min(MIN_TAP_WINDOW_MS).max(MAX_TAP_WINDOW_MS),
  }),
  config: name.nullable(),
} as const satisfies Record<keyof ControlRequests, z.ZodType>;

export function isControlRequest(method: string): method is keyof ControlRequests {
  return Object.hasOwn(SHAPES, method);
}

/** @throws USAGE for a body of another shape */
export function parseBody<M extends keyof ControlRequests>(
  method: M,
  body: unknown,
): ControlRequests[M]['body'] {
  const parsed = SHAPES[method].safeParse(body);
  // Each shape is that of the body of the request that it is named for.
  if (parsed.success) return parsed.data as ControlRequests[M]['body'];
  const faults = parsed.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw new IsobarError('USAGE', `the request "${method}" is not understood`, {
    expected: `the shape of "${method}"`,
    found: faults.slice(0, 5).join('; '),
    where: method,
  });
}
