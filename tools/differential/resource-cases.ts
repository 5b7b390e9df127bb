/**
 * Random inputs of the resource-aware scheduler in the shape of the vectors: hosts with several supervisors, racks, shared
 * memory, resources by name, every strategy and rule, users with guarantees, and what is left of an earlier placement.
 */
import fc from 'fast-check';
import { resourceAwareStrategy } from '../../src/scheduling/index.js';
import { resourceAwareSchema, toResourceSnapshot } from '../vectors/operations/storm-topology.js';

export type CaseInput = Readonly<Record<string, unknown>>;

const NOW = 1_750_000_000;
const OWNERS = ['ann', 'bob', 'cho'];

const supervisor = fc.record({
  host: fc.nat(5),
  ports: fc.integer({ min: 0, max: 4 }),
  cpu: fc.constantFrom(50, 100, 100, 200, 400),
  memory: fc.constantFrom(256, 512, 1024, 1024, 2048),
  gpus: fc.constantFrom(0, 0, 0, 2),
  licences: fc.constantFrom(0, 0, 0, 0, 3),
});

const component = fc.record({
  executors: fc.integer({ min: 1, max: 5 }),
  cpu: fc.constantFrom(0, 5, 10, 25, 40, 50),
  onHeap: fc.constantFrom(32, 64, 100, 128, 200),
  offHeap: fc.constantFrom(0, 0, 16, 64),
  gpus: fc.constantFrom(0, 0, 0, 0, 1),
  licences: fc.constantFrom(0, 0, 0, 0, 0, 1),
  shared: fc.constantFrom(0, 0, 0, 0, 50),
  sharedKind: fc.constantFrom('onHeap', 'offHeapWorker', 'offHeapNode'),
  sharedName: fc.constantFrom('m', 'n'),
  inputs: fc.array(
    fc.record({
      from: fc.nat(4),
      grouping: fc.constantFrom('shuffle', 'localOrShuffle', 'fields', 'all', 'global'),
    }),
    { minLength: 1, maxLength: 2 },
  ),
});

const topology = fc.record({
  components: fc.array(component, { minLength: 1, maxLength: 4 }),
  ackers: fc.constantFrom(0, 0, 1, 2),
  ackersPerWorker: fc.integer({ min: 1, max: 2 }),
  owner: fc.nat(2),
  priority: fc.constantFrom(0, 10, 20),
  launched: fc.nat(5000),
  strategy: fc.constantFrom(
    'DefaultResourceAwareStrategy',
    'DefaultResourceAwareStrategy',
    'GenericResourceAwareStrategy',
    'DefaultResourceAwareStrategyOld',
    'GenericResourceAwareStrategyOld',
    'ConstraintSolverStrategy',
    'ConstraintSolverStrategy',
    'RoundRobinResourceAwareStrategy',
  ),
  heap: fc.constantFrom(200, 400, 768, 2000),
  mode: fc.constantFrom('', '', '', 'executor', 'component'),
  proximity: fc.boolean(),
  constraints: fc.constantFrom('none', 'pairs', 'limits', 'limits', 'spread'),
  most: fc.integer({ min: 1, max: 3 }),
  favoured: fc.nat(20),
  unfavoured: fc.nat(20),
});

const cluster = fc.record({
  supervisors: fc.array(supervisor, { minLength: 1, maxLength: 8 }),
  racks: fc.array(fc.nat(2), { minLength: 6, maxLength: 6 }),
  topologies: fc.array(topology, { minLength: 1, maxLength: 4 }),
  blacklisted: fc.nat(20),
  users: fc.integer({ min: 1, max: 3 }),
  guarantees: fc.array(fc.record({ cpu: fc.nat(400), memory: fc.nat(2000), 'gpu.count': fc.nat(2) }), {
    minLength: 3,
    maxLength: 3,
  }),
  order: fc.constantFrom('Default', 'Default', 'Default', 'FIFO', 'GenericResourceAware'),
  minimumCpu: fc.constantFrom(0, 0, 0, 0, 20, 50),
});

type Drawn<T> = T extends fc.Arbitrary<infer Value> ? Value : never;

/** A cluster whose topologies are all new. */
export const freshInputs: fc.Arbitrary<CaseInput> = cluster.map(toInput);

/** Some time later: a supervisor, some workers, and the placement of one topology are gone. */
export const laterInputs: fc.Arbitrary<CaseInput> = fc
  .record({
    drawn: cluster,
    lost: fc.nat(12),
    kept: fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
    late: fc.nat(3),
  })
  .map(({ drawn, lost, kept, late }) => {
    const input = toInput(drawn);
    const snapshot = toResourceSnapshot(resourceAwareSchema.parse(input));
    const { placement } = resourceAwareStrategy({
      asStorm: true,
      topologyOrder: 'default',
      guarantees: new Map(),
      minimumWorkerCpuPercent: drawn.minimumCpu,
      maxAttempts: 5,
      maxSearchStates: 1000,
    })({ ...snapshot, topologies: snapshot.topologies.filter((_, index) => index !== late) });
    let turn = 0;
    const survivors = [...placement].map(
      ([id, workers]) =>
        [
          id,
          workers
            .filter(({ supervisor: id }) => id !== `s${lost}` && (kept[turn++ % kept.length] ?? true))
            .map(({ supervisor: node, port, executors }) => ({ node, port, executors })),
        ] as const,
    );
    return {
      ...input,
      supervisors: (input['supervisors'] as { readonly id: string }[]).filter(({ id }) => id !== `s${lost}`),
      assignments: Object.fromEntries<unknown>(survivors.filter(([, workers]) => workers.length > 0)),
    };
  });

function toInput(drawn: Drawn<typeof cluster>): CaseInput {
  const pools = OWNERS.slice(0, drawn.users).map((owner, index) => [owner, drawn.guarantees[index]] as const);
  return {
    op: 'schedule',
    now: NOW,
    conf: {
      'storm.worker.min.cpu.pcore.percent': drawn.minimumCpu,
      'resource.aware.scheduler.priority.strategy': `org.apache.storm.scheduler.resource.strategies.priority.${drawn.order}SchedulingPriorityStrategy`,
      ...(drawn.users > 1
        ? { 'resource.aware.scheduler.user.pools': Object.fromEntries<unknown>(pools) }
        : {}),
    },
    supervisors: drawn.supervisors.map(({ host, ports, cpu, memory, gpus, licences }, index) => ({
      id: `s${index}`,
      host: `h${host}`,
      rack: `r${drawn.racks[host]}`,
      ports: Array.from({ length: ports }, (_, port) => 6700 + port),
      resources: { cpu, memory, generic: generics(gpus, licences) },
    })),
    topologies: drawn.topologies.map((one, index) => toTopology(one, index, drawn.users)),
    blacklistedHosts: [`h${drawn.blacklisted}`],
  };
}

function generics(gpus: number, licences: number): Record<string, number> {
  return { ...(gpus > 0 ? { 'gpu.count': gpus } : {}), ...(licences > 0 ? { licence: licences } : {}) };
}

function toTopology(drawn: Drawn<typeof topology>, index: number, users: number): Record<string, unknown> {
  const components: Record<string, unknown>[] = drawn.components.map(toComponent);
  if (drawn.ackers > 0) components.push({ id: '__acker', executors: drawn.ackers });
  return {
    id: `t${index}`,
    owner: OWNERS[drawn.owner % users],
    launchTime: NOW - drawn.launched,
    conf: {
      'topology.priority': drawn.priority,
      'topology.scheduler.strategy': drawn.strategy,
      'topology.worker.max.heap.size.mb': drawn.heap,
      'topology.ras.one.executor.per.worker': drawn.mode === 'executor',
      'topology.ras.one.component.per.worker': drawn.mode === 'component',
      'topology.ras.order.executors.by.proximity.needs': drawn.proximity,
      'topology.ras.acker.executors.per.worker': drawn.ackersPerWorker,
      'topology.acker.executors': drawn.ackers,
      'topology.acker.resources.onheap.memory.mb': 32,
      'topology.acker.cpu.pcore.percent': 5,
      'topology.ras.constraint.max.state.search': 1000,
      'topology.scheduler.favored.nodes': [`h${drawn.favoured}`],
      'topology.scheduler.unfavored.nodes': [`h${drawn.unfavoured}`],
      ...constraintsOf(drawn),
    },
    components,
  };
}

function constraintsOf({ constraints, most, components }: Drawn<typeof topology>): Record<string, unknown> {
  switch (constraints) {
    case 'none':
      return {};
    case 'pairs':
      return { 'topology.ras.constraints': [['c0', `c${components.length - 1}`]] };
    case 'limits':
      return {
        'topology.ras.constraints': {
          c0: { maxNodeCoLocationCnt: most, ...(most === 2 ? { incompatibleComponents: 'c1' } : {}) },
        },
      };
    case 'spread':
      return { 'topology.spread.components': ['c0'] };
  }
}

function toComponent(drawn: Drawn<typeof component>, index: number): Record<string, unknown> {
  return {
    id: `c${index}`,
    type: index === 0 ? 'spout' : 'bolt',
    executors: drawn.executors,
    cpu: drawn.cpu,
    onHeap: drawn.onHeap,
    offHeap: drawn.offHeap,
    generic: generics(drawn.gpus, drawn.licences),
    ...(drawn.shared > 0
      ? {
          sharedMemory: [
            { name: `${drawn.sharedName}${drawn.sharedKind}`, [drawn.sharedKind]: drawn.shared },
          ],
        }
      : {}),
    ...(index === 0
      ? {}
      : { inputs: drawn.inputs.map(({ from, grouping }) => ({ from: `c${from % index}`, grouping })) }),
  };
}
