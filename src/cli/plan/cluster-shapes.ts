/**
 * The shape of a cluster in a file: our own, of which that of the recorded production clusters is a part. Objects are closed,
 * and every message says what is expected. What fields mean together is checked by whoever reads them.
 */
import { z } from 'zod';
import type { InputFaults } from './input-faults.js';

/** Bounds that keep any file from taking all memory or time; docs/plan.md states them. */
export const LIMITS = {
  supervisors: 100_000,
  slotsPerSupervisor: 10_000,
  slots: 2_000_000,
  topologies: 10_000,
  components: 10_000,
  parallelism: 1_000_000,
  executors: 2_000_000,
  amount: 1e12,
  text: 200,
} as const;

const MAX_PORT = 65_535;

function whole(minimum: number, maximum: number): z.ZodType<number> {
  return z.custom<number>(
    (value) => Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum,
    `a whole number from ${minimum} to ${maximum}`,
  );
}

/** @param isOpen 0 is not allowed */
function amount(isOpen = false): z.ZodType<number> {
  return z.custom<number>(
    (value) =>
      typeof value === 'number' &&
      Number.isFinite(value) &&
      (isOpen ? value > 0 : value >= 0) &&
      value <= LIMITS.amount,
    isOpen ? `a number above 0, at most ${LIMITS.amount}` : `a number from 0 to ${LIMITS.amount}`,
  );
}

const text = z.custom<string>(
  (value) =>
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= LIMITS.text &&
    !/[\u0000-\u001f\u007f-\u009f]/.test(value),
  `a text of 1 to ${LIMITS.text} characters without control characters`,
);
const flag = z.boolean('true or false');
const port = whole(1, MAX_PORT);

function list<T>(item: z.ZodType<T>, maximum: number, what: string): z.ZodType<T[]> {
  return z
    .custom<unknown[]>((value) => Array.isArray(value) && value.length <= maximum, {
      error: `a list of at most ${maximum} ${what}`,
      abort: true,
    })
    .pipe(z.array(item)); // what `custom` has let through is a list
}

function closed<S extends z.ZodRawShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  return z.strictObject(shape, { error: ({ code }) => (code === 'invalid_type' ? 'an object' : undefined) });
}

const amounts = z.record(text, amount(), 'an object of amounts by name');
const settings = z.record(z.string(), z.unknown(), 'an object of settings');

const supervisor = closed({
  id: text.exactOptional(),
  host: text.exactOptional(),
  rack: text.exactOptional(),
  count: whole(1, LIMITS.supervisors).exactOptional(),
  slots: whole(1, LIMITS.slotsPerSupervisor).exactOptional(),
  ports: list(port, LIMITS.slotsPerSupervisor, 'ports').exactOptional(),
  cpuPercent: amount(true).exactOptional(),
  memoryMb: amount(true).exactOptional(),
  generic: amounts.exactOptional(),
  /** For `--timeline`: when it offers its slots, ms after the start. */
  offersAtMs: amount().exactOptional(),
});

const resources = {
  cpuPercent: amount().exactOptional(),
  onHeapMb: amount().exactOptional(),
  offHeapMb: amount().exactOptional(),
} as const;

export const GROUPINGS = [
  'shuffle',
  'local-or-shuffle',
  'fields',
  'partial-key',
  'all',
  'global',
  'none',
  'direct',
  'custom',
] as const;
/** As Storm writes them. */
const STORM_GROUPINGS: Readonly<Record<string, (typeof GROUPINGS)[number]>> = {
  localOrShuffle: 'local-or-shuffle',
  local_or_shuffle: 'local-or-shuffle',
  partialKey: 'partial-key',
  custom_object: 'custom',
  custom_serialized: 'custom',
};

/** Our name of a grouping that may be called as Storm does. */
export function stormGrouping(name: string): string {
  return STORM_GROUPINGS[name] ?? name;
}

const grouping = z
  .string(`one of ${GROUPINGS.join(', ')}`)
  .transform(stormGrouping)
  .pipe(z.enum(GROUPINGS, `one of ${GROUPINGS.join(', ')}`));

const input = closed({ from: text, stream: text.exactOptional(), grouping });

const component = closed({
  id: text,
  kind: z.enum(['spout', 'bolt'], '"spout" or "bolt"'),
  parallelism: whole(1, LIMITS.parallelism),
  tasks: whole(1, LIMITS.parallelism).nullable().exactOptional(),
  maxTaskParallelism: whole(1, LIMITS.parallelism).nullable().exactOptional(),
  ...resources,
  generic: amounts.exactOptional(),
  inputs: list(input, LIMITS.components, 'inputs').exactOptional(),
  load: amount().exactOptional(),
  slotSharingGroup: text.exactOptional(),
  coLocationGroup: text.exactOptional(),
  stateful: flag.exactOptional(),
  movable: flag.exactOptional(),
});

const range = z.custom<[number, number]>(
  (value) =>
    Array.isArray(value) && value.length === 2 && value.every((task) => Number.isInteger(task) && task >= 1),
  'the first and the last task of an executor, such as [3, 4]',
);

const placedWorker = closed({
  supervisor: text,
  port,
  executors: list(range, LIMITS.executors, 'executors'),
  startedMs: amount().exactOptional(),
});

const measuredLoad = z.custom<[number, number]>(
  (value) =>
    Array.isArray(value) &&
    value.length === 2 &&
    Number.isInteger(value[0]) &&
    value[0] >= 1 &&
    typeof value[1] === 'number' &&
    value[1] >= 0 &&
    value[1] <= 1,
  'the first task of an executor and the part of its time in which it is busy, such as [3, 0.25]',
);

const rules = closed({
  strategy: text.exactOptional(),
  oneExecutorPerWorker: flag.exactOptional(),
  oneComponentPerWorker: flag.exactOptional(),
  ackersPerWorker: whole(0, LIMITS.parallelism).exactOptional(),
  favouredHosts: list(text, LIMITS.supervisors, 'hosts').exactOptional(),
  unfavouredHosts: list(text, LIMITS.supervisors, 'hosts').exactOptional(),
  orderByProximity: flag.exactOptional(),
  isolatedMachines: whole(1, LIMITS.supervisors).exactOptional(),
  spreadComponents: list(text, LIMITS.components, 'components').exactOptional(),
  incompatible: list(
    z.custom<[string, string]>(
      (value) => Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string'),
      'a pair of components',
    ),
    LIMITS.components,
    'pairs',
  ).exactOptional(),
  maxPerSupervisor: z.record(text, whole(1, LIMITS.parallelism), 'an object of counts').exactOptional(),
  maxSearchStates: whole(1, 10_000_000).exactOptional(),
});

const topology = closed({
  id: text,
  name: text.exactOptional(),
  owner: text.exactOptional(),
  workers: z
    .union(
      [whole(1, 100_000), z.literal('max-parallelism')],
      'a whole number from 1 to 100000, or "max-parallelism"',
    )
    .exactOptional(),
  priority: whole(0, LIMITS.parallelism).exactOptional(),
  workerMaxHeapMb: amount(true).exactOptional(),
  ackers: whole(0, LIMITS.parallelism).nullable().exactOptional(),
  /** Accepted, since recorded clusters have it; there are no event loggers here. */
  eventLoggers: whole(0, LIMITS.parallelism).nullable().exactOptional(),
  maxTaskParallelism: whole(1, LIMITS.parallelism).nullable().exactOptional(),
  defaults: closed(resources).exactOptional(),
  ackerResources: closed(resources).exactOptional(),
  settings: settings.exactOptional(),
  rules: rules.exactOptional(),
  components: list(component, LIMITS.components, 'components').exactOptional(),
  /** A topology of this product, as it was submitted; in place of `components`. */
  description: z.unknown().optional(),
  /** What a rebalance has made of it. */
  desired: closed({
    workers: whole(1, 1_000_000).exactOptional(),
    executors: z.record(text, whole(1, LIMITS.parallelism), 'an object of counts').exactOptional(),
  }).exactOptional(),
  uptimeMs: amount().exactOptional(),
  placement: list(placedWorker, LIMITS.slots, 'workers').exactOptional(),
  /** What executors have been measured to use. */
  measured: list(measuredLoad, LIMITS.executors, 'measured executors').exactOptional(),
});

export const clusterShape = closed({
  format: z.literal(1, '1').exactOptional(),
  /** Where it comes from; nobody reads it. */
  source: z.string('a text').exactOptional(),
  atMs: amount().exactOptional(),
  settings: settings.exactOptional(),
  supervisors: list(supervisor, LIMITS.supervisors, 'supervisors').exactOptional(),
  topologies: list(topology, LIMITS.topologies, 'topologies').exactOptional(),
});

export type ClusterFile = z.infer<typeof clusterShape>;
export type SupervisorEntry = NonNullable<ClusterFile['supervisors']>[number];
export type TopologyEntry = NonNullable<ClusterFile['topologies']>[number];
export type ComponentEntry = NonNullable<TopologyEntry['components']>[number];

/** The entry, if its shape has no fault. */
export function soundSupervisor(value: unknown): SupervisorEntry | undefined {
  return supervisor.safeParse(value).data;
}

/** The entry, if its shape has no fault. */
export function soundComponent(value: unknown): ComponentEntry | undefined {
  return component.safeParse(value).data;
}

/** Keys of the object at a path, for "did you mean". */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  '': Object.keys(clusterShape.shape),
  supervisors: Object.keys(supervisor.shape),
  topologies: Object.keys(topology.shape),
  components: Object.keys(component.shape),
  inputs: Object.keys(input.shape),
  placement: Object.keys(placedWorker.shape),
  rules: Object.keys(rules.shape),
  defaults: Object.keys(resources),
  ackerResources: Object.keys(resources),
  desired: ['workers', 'executors'],
};

/** Checks a value; undefined if it has faults, which have been added. */
export function parseShape<T>(
  shape: z.ZodType<T>,
  value: unknown,
  file: string,
  faults: InputFaults,
): T | undefined {
  const parsed = shape.safeParse(value, { reportInput: true });
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const where = place(file, issue.path);
    if (issue.code === 'unrecognized_keys') {
      const names = issue.path.filter((part) => typeof part === 'string');
      for (const key of issue.keys) faults.addUnknownKey(where, key, KEYS[names.at(-1) ?? ''] ?? []);
    } else faults.add(where, issue.message, valueAt(value, issue.path));
  }
  return undefined;
}

/** `cluster.json: topologies[0].workers`. */
export function place(file: string, path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) {
    text += typeof part === 'number' ? `[${part}]` : text === '' ? String(part) : `.${String(part)}`;
  }
  return text === '' ? file : `${file}: ${text}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Readonly<Record<PropertyKey, unknown>>)[part];
  }
  return at;
}
