/** Topologies of a resource-aware case, which say in Storm's configuration keys what they need and where they may run. */
import { z } from 'zod';
import type {
  ClusterComponent,
  ClusterSnapshot,
  ClusterTopology,
  PlacementConstraints,
  PlacementRules,
  RequestedResources,
} from '../../../src/scheduling/index.js';
import { configuration, number, type StormConfiguration } from '../storm-configuration.js';
import { configurationSchema, workerSchema } from './operation.js';

const amountsSchema = z.record(z.string(), z.number());

export const resourceAwareSchema = z.object({
  now: z.number().default(0),
  conf: configurationSchema,
  supervisors: z.array(
    z.object({
      id: z.string(),
      host: z.string().optional(),
      rack: z.string().optional(),
      ports: z.array(z.int()),
      resources: z
        .object({
          cpu: z.number().default(0),
          memory: z.number().default(0),
          generic: amountsSchema.default({}),
        })
        .optional(),
    }),
  ),
  topologies: z.array(
    z.object({
      id: z.string(),
      name: z.string().optional(),
      owner: z.string().default('user'),
      launchTime: z.number().default(0),
      conf: configurationSchema,
      components: z.array(
        z.object({
          id: z.string(),
          type: z.enum(['spout', 'bolt']).default('bolt'),
          executors: z.int().default(1),
          cpu: z.number().optional(),
          onHeap: z.number().optional(),
          offHeap: z.number().optional(),
          generic: amountsSchema.default({}),
          inputs: z
            .array(z.object({ from: z.string(), grouping: z.string().default('shuffle') }))
            .default([]),
          sharedMemory: z
            .array(
              z.object({
                name: z.string(),
                onHeap: z.number().default(0),
                offHeapWorker: z.number().default(0),
                offHeapNode: z.number().default(0),
              }),
            )
            .default([]),
        }),
      ),
    }),
  ),
  assignments: z.record(z.string(), z.array(workerSchema)).default({}),
  blacklistedHosts: z.array(z.string()).default([]),
  scheduleOnly: z.array(z.string()).optional(),
});

type ParsedCase = z.infer<typeof resourceAwareSchema>;
type ParsedTopology = ParsedCase['topologies'][number];

export function toResourceSnapshot(parsed: ParsedCase): ClusterSnapshot {
  return {
    supervisors: parsed.supervisors.map(({ id, host, ports, rack, resources }) => ({
      id,
      host: host ?? id,
      ports,
      ...(rack === undefined ? {} : { rack }),
      ...(resources === undefined
        ? {}
        : {
            resources: {
              cpuPercent: resources.cpu,
              memoryMb: resources.memory,
              generic: resources.generic,
            },
          }),
    })),
    topologies: parsed.topologies.map((topology) => toTopology(topology, parsed)),
    placement: new Map(Object.entries(parsed.assignments)),
    blacklistedHosts: new Set(parsed.blacklistedHosts),
    ...(parsed.scheduleOnly === undefined ? {} : { scheduleOnly: new Set(parsed.scheduleOnly) }),
  };
}

/** One task per executor; task numbers run from 1 in the listed order. */
function toTopology(topology: ParsedTopology, { conf: clusterConf, now }: ParsedCase): ClusterTopology {
  const conf = configuration(clusterConf, topology.conf);
  let task = 0;
  return {
    id: topology.id,
    name: topology.name ?? topology.id,
    workers: 1,
    executors: topology.components.flatMap(({ id, executors }) =>
      Array.from({ length: Math.max(0, executors) }, () => {
        task++;
        return { range: [task, task] as const, component: id };
      }),
    ),
    owner: topology.owner,
    priority: number(conf, 'topology.priority'),
    uptimeMs: (now - topology.launchTime) * 1000,
    components: topology.components.map((component) => toComponent(component, conf)),
    rules: rulesOf(conf),
  };
}

function toComponent(
  component: ParsedTopology['components'][number],
  conf: StormConfiguration,
): ClusterComponent {
  const { id, type, inputs, sharedMemory } = component;
  return {
    id,
    kind: id.startsWith('__') ? 'system' : type,
    resources: requestOf(component, conf),
    sharedMemory: sharedMemory.map(({ name, onHeap, offHeapWorker, offHeapNode }) => ({
      name,
      onHeapMb: onHeap,
      offHeapWorkerMb: offHeapWorker,
      offHeapMachineMb: offHeapNode,
    })),
    inputs: inputs.map(({ from, grouping }) => ({ from, grouping: groupingOf(grouping) })),
  };
}

const KINDS = {
  cpu: {
    normal: 'cpu.pcore.percent',
    legacy: 'topology.component.cpu.pcore.percent',
    special: 'cpu.pcore.percent',
  },
  onHeap: {
    normal: 'onheap.memory.mb',
    legacy: 'topology.component.resources.onheap.memory.mb',
    special: 'resources.onheap.memory.mb',
  },
  offHeap: {
    normal: 'offheap.memory.mb',
    legacy: 'topology.component.resources.offheap.memory.mb',
    special: 'resources.offheap.memory.mb',
  },
} as const;

/** The component's own request over what the topology's configuration says for such components, over the defaults. */
function requestOf(
  component: ParsedTopology['components'][number],
  conf: StormConfiguration,
): RequestedResources {
  const shared = amountsSchema.default({}).parse(conf['topology.component.resources.map'] ?? {});
  const prefix =
    component.id === '__acker'
      ? 'topology.acker.'
      : component.id.startsWith('__metrics_')
        ? 'topology.metrics.consumer.'
        : undefined;
  const amount = (kind: keyof typeof KINDS): number => {
    const { normal, legacy, special } = KINDS[kind];
    const forSystem =
      prefix === undefined
        ? undefined
        : z
            .number()
            .nullish()
            .parse(conf[prefix + special]);
    return (
      component.generic[normal] ??
      component.generic[legacy] ??
      component[kind] ??
      forSystem ??
      shared[normal] ??
      shared[legacy] ??
      number(conf, legacy)
    );
  };
  const standard = new Set<string>(Object.values(KINDS).flatMap(({ normal, legacy }) => [normal, legacy]));
  const generic = Object.entries({ ...shared, ...component.generic }).filter(([name]) => !standard.has(name));
  return {
    cpuPercent: amount('cpu'),
    onHeapMb: amount('onHeap'),
    offHeapMb: amount('offHeap'),
    generic: Object.fromEntries(generic),
  };
}

function groupingOf(name: string): NonNullable<ClusterComponent['inputs']>[number]['grouping'] {
  switch (name) {
    case 'fields':
    case 'all':
    case 'none':
    case 'direct':
    case 'custom':
    case 'global':
      return name;
    case 'localOrShuffle':
      return 'local-or-shuffle';
    default:
      return 'shuffle';
  }
}

const STRATEGIES: ReadonlyMap<string, string> = new Map([
  ['DefaultResourceAwareStrategy', 'default'],
  ['DefaultResourceAwareStrategyOld', 'default-old'],
  ['GenericResourceAwareStrategy', 'generic'],
  ['GenericResourceAwareStrategyOld', 'generic-old'],
  ['RoundRobinResourceAwareStrategy', 'round-robin'],
  ['ConstraintSolverStrategy', 'constraint-solver'],
]);

const namesSchema = z.array(z.string()).nullish();

function rulesOf(conf: StormConfiguration): PlacementRules {
  const strategy = z.string().parse(conf['topology.scheduler.strategy']);
  const isolated = z.int().nullish().parse(conf['topology.isolate.machines']);
  return {
    strategy: placerName(strategy),
    workerMaxHeapMb: number(conf, 'topology.worker.max.heap.size.mb'),
    oneExecutorPerWorker: conf['topology.ras.one.executor.per.worker'] === true,
    oneComponentPerWorker: conf['topology.ras.one.component.per.worker'] === true,
    ackersPerWorker: number(conf, 'topology.ras.acker.executors.per.worker'),
    favouredHosts: namesSchema.parse(conf['topology.scheduler.favored.nodes']) ?? [],
    unfavouredHosts: namesSchema.parse(conf['topology.scheduler.unfavored.nodes']) ?? [],
    orderByProximity: conf['topology.ras.order.executors.by.proximity.needs'] === true,
    ...(isolated == null ? {} : { isolatedMachines: isolated }),
    spreadComponents: stringsIn(conf['topology.spread.components']),
    constraints: constraintsOf(conf['topology.ras.constraints']),
    maxSearchStates: number(conf, 'topology.ras.constraint.max.state.search'),
  };
}

/** The name here of one of Storm's strategies; of any other class, its own. */
export function placerName(className: string): string {
  const isStorms = !className.includes('.') || className.startsWith('org.apache.storm.');
  return (isStorms ? STRATEGIES.get(simpleName(className)) : undefined) ?? className;
}

/** A class's name without its package. */
export function simpleName(className: string): string {
  return className.slice(className.lastIndexOf('.') + 1);
}

/** Pairs, or limits by component. What Storm would log and ignore is left out. */
function constraintsOf(value: unknown): PlacementConstraints {
  const incompatible: [string, string][] = [];
  const maxPerSupervisor = new Map<string, number>();
  if (Array.isArray(value)) {
    for (const pair of value) {
      const [one, other] = stringsIn(pair);
      if (one !== undefined && other !== undefined) incompatible.push([one, other]);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [component, rules] of Object.entries(value)) {
      const { maxNodeCoLocationCnt, incompatibleComponents } = z
        .looseObject({
          maxNodeCoLocationCnt: z.unknown().optional(),
          incompatibleComponents: z.unknown().optional(),
        })
        .parse(rules);
      const most = Number(maxNodeCoLocationCnt);
      if (Number.isInteger(most) && most >= 1) maxPerSupervisor.set(component, most);
      const others =
        typeof incompatibleComponents === 'string'
          ? [incompatibleComponents]
          : stringsIn(incompatibleComponents);
      for (const other of others) incompatible.push([component, other]);
    }
  }
  return { incompatible, maxPerSupervisor };
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
