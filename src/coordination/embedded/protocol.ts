/**
 * What clients and the embedded coordinator say to each other over a control channel.
 *
 * Requests: the methods of {@link REQUEST_SCHEMAS}, `open` first. Events to the server: `watch`, `unwatch` (a path).
 * Event to the client: `changed` (watched paths, each with the names of its children that have changed).
 */
import { z } from 'zod';
import { IsobarError } from '../../base/index.js';

/** Slash-separated names of printable ASCII: what ZooKeeper takes as well. */
const path = z
  .string()
  .max(8192)
  .regex(/^(?:\/[\x21-\x2e\x30-\x7e]+)+$/);
const data = z.custom<Uint8Array>((value) => value instanceof Uint8Array, 'expected bytes');
const version = z.int().min(-1);
/** Watches that one connection can have. */
export const MAX_WATCHES = 10_000;

export const REQUEST_SCHEMAS = {
  /** Starts a session, or goes on with `session`, and watches `watches`. Answer: {@link openAnswerSchema}. */
  open: z.object({
    session: z.string().max(100).nullable(),
    timeoutMs: z.number().min(1).max(86_400_000),
    process: z.object({ pid: z.int().min(1), startTime: z.string().max(100) }),
    watches: z.array(path).max(MAX_WATCHES),
  }),
  /** Keeps the session alive. Answer: null. */
  ping: z.null(),
  create: z.object({ path, data, kind: z.enum(['durable', 'ephemeral', 'volatile']) }),
  /** Answer: {@link readAnswerSchema}. */
  read: z.object({ path }),
  /** Answer: the new version. */
  write: z.object({ path, data, version }),
  remove: z.object({ path, version }),
  /** Answer: names. */
  children: z.object({ path }),
  /** Ends the session. */
  close: z.null(),
} as const;

export type RequestMethod = keyof typeof REQUEST_SCHEMAS;
export type RequestBody<M extends RequestMethod> = z.infer<(typeof REQUEST_SCHEMAS)[M]>;

export const watchSchema = path;
export const changedSchema = z.array(z.tuple([z.string(), z.array(z.string())]));
export const openAnswerSchema = z.object({ session: z.string(), timeoutMs: z.number() });
export const readAnswerSchema = z
  .object({ data, version: z.number(), owner: z.enum(['nobody', 'this-session', 'another-session']) })
  .nullable();
export const writeAnswerSchema = z.number();
export const childrenAnswerSchema = z.array(z.string());

export type OpenAnswer = z.infer<typeof openAnswerSchema>;

export function isRequestMethod(method: string): method is RequestMethod {
  return Object.hasOwn(REQUEST_SCHEMAS, method);
}

/** @throws PEER_PROTOCOL_ERROR for a message of another shape; NODE_TOO_LARGE */
export function parseMessage<S extends z.ZodType>(schema: S, what: string, body: unknown): z.infer<S> {
  const parsed = schema.safeParse(body);
  if (!parsed.success) {
    throw new IsobarError('PEER_PROTOCOL_ERROR', `"${what}" has another shape than expected`, {
      expected: `the shape of "${what}"`,
      found: parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; '),
      where: 'coordinator protocol',
    });
  }
  return parsed.data;
}
