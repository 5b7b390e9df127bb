/** The operation schedule of the resource-aware scheduler. */
import { z } from 'zod';
import {
  type ClusterSnapshot,
  type PlacedWorker,
  type PlacementOutcome,
  type ResourceAwareResult,
  resourceAwareStrategy,
  type TopologyOrder,
  validateAssignment,
  validateCapacity,
} from '../../../src/scheduling/index.js';
import { agrees, stableText } from '../compare.js';
import type { VectorCase } from '../read-cases.js';
import { configuration, number, type StormConfiguration } from '../storm-configuration.js';
import { exact, type Facts } from './operation.js';
import { checkProperty } from './resource-properties.js';
import { observe } from './resource-use.js';
import { placerName, resourceAwareSchema, simpleName, toResourceSnapshot } from './storm-topology.js';

export function runResourceAware(test: VectorCase): Facts {
  const parsed = resourceAwareSchema.parse(test.input);
  const snapshot = toResourceSnapshot(parsed);
  const conf = configuration(parsed.conf);
  const minimumCpu = number(conf, 'storm.worker.min.cpu.pcore.percent');
  const result = strategyOf(conf)(snapshot);
  const [failure] = result.failures.values();
  if (failure !== undefined) {
    return {
      error: exact(failure instanceof Error ? failure.message : 'a value that is no error was thrown'),
    };
  }
  const scheduled = snapshot.topologies.filter(({ id }) => !result.unplaced.has(id));
  return {
    topologies: {
      check: (expected) => wrongTopologies(snapshot, result, expected, minimumCpu),
    },
    scheduledCount: exact(scheduled.length),
    evicted: { value: Object.fromEntries(result.evicted), compare: 'sets' },
    order: exact(result.order),
    placement: { check: (expected) => wrongPlacement(snapshot, result, expected) },
    orderDependent: { check: () => undefined },
    properties: {
      check: (expected) => {
        const broken = z
          .array(z.unknown())
          .parse(expected)
          .flatMap((one) => checkProperty(one, snapshot, result));
        return broken.length === 0 ? undefined : broken.join('; ');
      },
    },
  };
}

const guaranteesSchema = z.record(z.string(), z.record(z.string(), z.number())).nullish();

function strategyOf(conf: StormConfiguration): (snapshot: ClusterSnapshot) => ResourceAwareResult {
  const attempts = z.int().nullish().parse(conf['resource.aware.scheduler.max.topology.scheduling.attempts']);
  const allowed = z.array(z.string()).nullish().parse(conf['nimbus.scheduler.strategy.class.whitelist']);
  return resourceAwareStrategy({
    asStorm: true,
    topologyOrder: topologyOrderOf(conf['resource.aware.scheduler.priority.strategy']),
    guarantees: new Map(
      Object.entries(guaranteesSchema.parse(conf['resource.aware.scheduler.user.pools']) ?? {}),
    ),
    minimumWorkerCpuPercent: number(conf, 'storm.worker.min.cpu.pcore.percent'),
    maxAttempts: attempts ?? 5,
    maxSearchStates: number(conf, 'resource.aware.scheduler.constraint.max.state.search'),
    ...(allowed == null ? {} : { allowedPlacers: new Set(allowed.map(placerName)) }),
  });
}

function topologyOrderOf(value: unknown): TopologyOrder {
  const name = typeof value === 'string' ? simpleName(value) : '';
  if (name.startsWith('FIFO')) return 'fifo';
  return name.startsWith('Generic') ? 'generic' : 'default';
}

const OUTCOMES: Readonly<Record<PlacementOutcome, string>> = {
  placed: 'scheduled-now',
  'already-placed': 'already-scheduled',
  'not-enough-resources': 'not-enough-resources',
  invalid: 'invalid-topology',
  refused: 'other-failure',
};

/** What is wrong with the facts of each topology, and with what holds in every case. */
function wrongTopologies(
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
  expected: unknown,
  minimumCpu: number,
): string | undefined {
  const problems: string[] = [];
  for (const [id, facts] of Object.entries(z.record(z.string(), z.unknown()).parse(expected))) {
    const topology = snapshot.topologies.find((one) => one.id === id);
    if (topology === undefined) continue;
    const unassigned = result.unplaced.get(id)?.executors.length ?? 0;
    const outcome = result.outcomes.get(id);
    const actual = {
      scheduled: unassigned === 0,
      unassigned,
      outcome: outcome === undefined ? 'none' : OUTCOMES[outcome],
      observed: observe(topology, result.placement.get(id) ?? [], minimumCpu),
    };
    if (!agrees(facts, actual, 'at-least')) problems.push(`${id}: ${stableText(actual)}`);
    // Storm says so of a topology of which only the last executor has no place.
    const saysPlacedInPart = agrees({ outcome: 'scheduled-now', scheduled: false }, facts, 'at-least');
    if (actual.outcome === 'scheduled-now' && unassigned > 0 && !saysPlacedInPart)
      problems.push(`${id} is placed in part`);
  }
  const faults = [
    ...validateAssignment(snapshot, result),
    ...validateCapacity(snapshot, result.placement, { minimumCpuPercent: minimumCpu }),
  ];
  for (const [id, sentences] of faults) problems.push(`${id}: ${sentences.join(', ')}`);
  return problems.length === 0 ? undefined : problems.join('; ');
}

const placedSchema = z.record(
  z.string(),
  z.array(z.object({ node: z.string(), executors: z.array(z.tuple([z.int(), z.int()])) })),
);

/**
 * Workers by supervisor, without ports. Executors of a component ask for the same, so which of them goes first is a
 * tie; Storm follows hash order, Isobar the order of tasks: a worker is compared by its components. What ran already and was not
 * evicted has to be there unchanged.
 */
function wrongPlacement(
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
  expected: unknown,
): string | undefined {
  const problems: string[] = [];
  const evicted = new Set([...result.evicted.values()].flat());
  for (const [id, workers] of Object.entries(placedSchema.parse(expected))) {
    const topology = snapshot.topologies.find((one) => one.id === id);
    const components = new Map(topology?.executors.map(({ range, component }) => [range[0], component]));
    const text = ({ supervisor, executors }: Pick<PlacedWorker, 'supervisor' | 'executors'>): string =>
      `${supervisor}: ${executors
        .map(([first]) => components.get(first))
        .sort()
        .join(' ')}`;
    const wanted = workers.map(({ node, executors }) => text({ supervisor: node, executors })).sort();
    const placed = result.placement.get(id) ?? [];
    const actual = placed.map(text).sort();
    if (!agrees(wanted, actual, 'exact')) problems.push(`${id}: ${stableText(actual)}`);
    const now = new Set(placed.map(exactText));
    const moved = (snapshot.placement.get(id) ?? []).filter((worker) => !now.has(exactText(worker)));
    if (moved.length > 0 && !evicted.has(id))
      problems.push(`${id}: moved ${moved.map(exactText).join(', ')}`);
  }
  return problems.length === 0 ? undefined : problems.join('; ');
}

function exactText({ supervisor, port, executors }: PlacedWorker): string {
  return `${supervisor}:${port}: ${executors
    .map(([first, last]) => `${first}-${last}`)
    .sort()
    .join(' ')}`;
}
