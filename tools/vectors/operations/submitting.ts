/** Operations about a submitted graph: normalise, systemTopology. */
import { z } from 'zod';
import {
  type Graph,
  type GraphComponent,
  normaliseSubmission,
  type SubmittedComponent,
  type SubmittedCount,
  type SystemTopologyOptions,
  systemTopology,
} from '../../../src/scheduling/index.js';
import {
  configuration,
  metricsConsumers,
  numberOrNull,
  type StormConfiguration,
} from '../storm-configuration.js';
import { configurationSchema, exact, type Operation, sets } from './operation.js';

const CHECKED_COUNTS: readonly (readonly [key: string, minimum: 0 | 1])[] = [
  ['topology.workers', 1],
  ['topology.tasks', 0],
  ['topology.max.task.parallelism', 1],
  ['topology.acker.executors', 0],
  ['topology.eventlogger.executors', 0],
  ['topology.ras.acker.executors.per.worker', 0],
];

/** With exactly this scheduler the limit of workers does not hold. */
const RESOURCE_AWARE = 'org.apache.storm.scheduler.resource.ResourceAwareScheduler';

const normaliseSchema = z.object({
  topologyName: z.string().default('topology'),
  topologyConf: configurationSchema,
  clusterConf: configurationSchema,
  resourceAware: z.boolean().default(false),
  components: z.array(
    z.object({
      id: z.string(),
      type: z.enum(['spout', 'bolt']),
      parallelismHint: z.number().nullish(),
      conf: configurationSchema,
      streams: z.array(z.string()).default(['default']),
      fields: z.record(z.string(), z.array(z.string())).default({}),
      inputs: z
        .array(
          z.object({
            component: z.string(),
            stream: z.string().default('default'),
            fields: z.array(z.string()).nullish(),
          }),
        )
        .default([]),
    }),
  ),
});

export const runNormalise: Operation = ({ input }) => {
  const { topologyName, topologyConf, clusterConf, resourceAware, components } = normaliseSchema.parse(input);
  const conf = configuration(clusterConf, topologyConf);
  const counts = CHECKED_COUNTS.map(
    ([key, minimum]): SubmittedCount => ({ key, minimum, value: topologyConf[key] }),
  );
  const outcome = normaliseSubmission({
    name: topologyName,
    counts,
    components: components.map((component): SubmittedComponent => {
      const own = { ...conf, ...component.conf };
      return {
        id: component.id,
        kind: component.type,
        // As Storm's client does, numbers are cut to integers.
        hint: component.parallelismHint == null ? null : Math.trunc(component.parallelismHint),
        tasks: numberIfValid(own, 'topology.tasks'),
        maxTasks: numberIfValid(own, 'topology.max.task.parallelism'),
        streams: new Map(component.streams.map((name) => [name, component.fields[name] ?? []])),
        inputs: component.inputs.map((one) => ({
          source: one.component,
          stream: one.stream,
          fields: one.fields ?? null,
        })),
      };
    }),
    system: systemOptions(conf),
    workers: numberIfValid(topologyConf, 'topology.workers') ?? 1,
    maxWorkers:
      resourceAware || conf['storm.scheduler'] === RESOURCE_AWARE
        ? null
        : numberOrNull(conf, 'nimbus.slots.perTopology'),
    maxExecutors: numberOrNull(conf, 'nimbus.executors.perTopology'),
  });
  if (outcome.kind === 'refused') return { error: exact('InvalidTopology'), reason: exact(outcome.reason) };
  const { components: accepted } = outcome;
  const each = (value: (one: (typeof accepted)[number]) => number): Record<string, number> =>
    Object.fromEntries(accepted.map((one) => [one.id, value(one)]));
  return {
    tasks: exact(each(({ tasks }) => tasks)),
    storedExecutors: exact(each(({ storedExecutors }) => storedExecutors)),
    effectiveExecutors: exact(each(({ executors }) => executors)),
    executorCountForLimit: exact(outcome.executorCountForLimit),
  };
};

/** A number, or null for anything else: what is wrong with it is for the product to say. */
function numberIfValid(conf: StormConfiguration, key: string): number | null {
  const value = conf[key];
  return typeof value === 'number' ? value : null;
}

function systemOptions(conf: StormConfiguration): SystemTopologyOptions {
  const eventLoggers = numberIfValid(conf, 'topology.eventlogger.executors');
  return {
    eventLogger: eventLoggers === null || eventLoggers > 0,
    metricsConsumers: metricsConsumers(conf),
    upstreamFeedback: conf['topology.upstream.feedback.enable'] === true,
  };
}

const systemTopologySchema = z.object({
  spouts: z.array(z.string()).default([]),
  bolts: z.array(z.string()).default([]),
  eventLoggers: z.int().nullish(),
  metricsConsumers: z
    .array(z.union([z.string(), z.object({ class: z.string(), 'parallelism.hint': z.int().optional() })]))
    .default([]),
  topologyConf: configurationSchema,
});

export const runSystemTopology: Operation = ({ input }) => {
  const parsed = systemTopologySchema.parse(input);
  const component = (kind: 'spout' | 'bolt'): GraphComponent => ({ kind, streams: new Map(), inputs: [] });
  const user: Graph = new Map([
    ...parsed.spouts.map((id) => [id, component('spout')] as const),
    ...parsed.bolts.map((id) => [id, component('bolt')] as const),
  ]);
  const conf = configuration(parsed.topologyConf, {
    ...('eventLoggers' in input ? { 'topology.eventlogger.executors': parsed.eventLoggers } : {}),
    'topology.metrics.consumer.register': parsed.metricsConsumers.map((one) =>
      typeof one === 'string' ? { class: one } : one,
    ),
  });
  const graph = [...systemTopology(user, systemOptions(conf))];
  const streams = graph.map(([id, one]) => [
    id,
    Object.fromEntries([...one.streams].map(([name, { fields }]) => [name, fields])),
  ]);
  const inputs = graph
    .filter(([, one]) => one.inputs.length > 0)
    .map(([id, one]) => [id, one.inputs.map(({ source, stream, grouping }) => [source, stream, grouping])]);
  const direct = graph.flatMap(([id, one]) =>
    [...one.streams].filter(([, stream]) => stream.direct).map(([name]) => [id, name]),
  );
  return {
    addedStreams: exact(Object.fromEntries(streams)),
    addedInputs: sets(Object.fromEntries(inputs)),
    directStreams: sets(direct),
  };
};
