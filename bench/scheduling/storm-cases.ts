/** The cases of Storm's schedulers: fresh clusters, one machine lost, and rounds in which nothing changed. */
import type { Fact, Prepared, SchedulingCase } from './case.js';
import type {
  ClusterSnapshot,
  ClusterTopology,
  Library,
  Placement,
  PlannedExecutor,
  SchedulingResult,
  Strategy,
} from './library.js';
import { readProductionCluster, withPlacer } from './production.js';
import { qualityOf } from './quality.js';
import { roundOf } from './rounds.js';
import { syntheticCluster } from './synthetic.js';

type Make = (library: Library) => Strategy;

/** As an operator gets it, with all improvements. */
function named(name: string): Make {
  return ({ scheduling, settings }) => scheduling.strategyNamed(name, settings);
}

const EVEN = named('even');
const DEFAULT = named('default');
const RESOURCE_AWARE = named('resource-aware');

const LARGE = 'largeCluster01';
const SYNTHETIC = '2000x4-100-topologies';

const large = (file: string): ClusterSnapshot => readProductionCluster(file);
const synthetic = (): ClusterSnapshot =>
  syntheticCluster({ machines: 2000, slots: 4, topologies: 100, executors: 600, workers: 80 });

export const STORM_CASES: readonly SchedulingCase[] = [
  production(
    'resource-aware/fresh',
    'resource-aware/DefaultResourceAwareStrategy/fresh',
    fresh(RESOURCE_AWARE, large),
  ),
  production(
    'resource-aware-round-robin/fresh',
    'resource-aware/RoundRobinResourceAwareStrategy/fresh',
    fresh(RESOURCE_AWARE, (file) => withPlacer(large(file), 'round-robin')),
  ),
  production('even/fresh', 'even/workers estimated/fresh', fresh(EVEN, large)),
  production('default/fresh', 'default/workers estimated/fresh', fresh(DEFAULT, large)),
  own('even/fresh', 'even/80 workers each/fresh', fresh(EVEN, synthetic)),
  own('default/fresh', 'default/80 workers each/fresh', fresh(DEFAULT, synthetic)),
  own('default/one-machine-lost', 'default/80 workers each/one node lost', machineLost(DEFAULT, synthetic)),
  production(
    'default/one-machine-lost',
    'default/workers estimated/one node lost',
    machineLost(DEFAULT, large),
  ),
  production(
    'resource-aware/one-machine-lost',
    'resource-aware/DefaultResourceAwareStrategy/one node lost',
    machineLost(RESOURCE_AWARE, large),
  ),
  own('default/nothing-changed', 'default/80 workers each/steady round', steady(DEFAULT, synthetic)),
  production('default/nothing-changed', 'default/workers estimated/steady round', steady(DEFAULT, large)),
  production(
    'resource-aware/nothing-changed',
    'resource-aware/DefaultResourceAwareStrategy/steady round',
    steady(RESOURCE_AWARE, large),
  ),
  { name: 'million-tasks/even', prepare: millionTasks },
];

function production(name: string, label: string, prepare: SchedulingCase['prepare']): SchedulingCase {
  return {
    name: `${LARGE}/${name}`,
    data: `${LARGE}.json`,
    compare: { peer: 'storm', label: `${LARGE}/${label}` },
    prepare,
  };
}

function own(name: string, label: string, prepare: SchedulingCase['prepare']): SchedulingCase {
  return {
    name: `${SYNTHETIC}/${name}`,
    compare: { peer: 'storm', label: `2000x4, 100 topologies/${label}` },
    prepare,
  };
}

/** Nothing is placed yet. */
function fresh(make: Make, cluster: (file: string) => ClusterSnapshot): SchedulingCase['prepare'] {
  return (library, file) => {
    const [snapshot, strategy] = [cluster(file), make(library)];
    let result: SchedulingResult | undefined;
    return {
      decide: () => (result = strategy(snapshot)),
      facts: () => placementFacts(snapshot, result!.placement),
    };
  };
}

/** All are placed, and the machine with most executors goes with them. */
function machineLost(make: Make, cluster: (file: string) => ClusterSnapshot): SchedulingCase['prepare'] {
  return (library, file) => {
    const [start, strategy] = [cluster(file), make(library)];
    const { placement } = strategy(start);
    const lost = busiestMachine(placement);
    const supervisors = start.supervisors.filter(({ id }) => id !== lost);
    let snapshot = start;
    let result: SchedulingResult | undefined;
    return {
      // What lost something is seen for the first time in each run, as a round hands it to its strategy.
      decide: () => {
        snapshot = { ...start, supervisors, placement: withoutMachine(placement, lost) };
        result = strategy(snapshot);
      },
      facts: () => ({
        ...placementFacts(snapshot, result!.placement),
        'moved-beyond-lost': { value: movedExecutors(snapshot.placement, result!.placement), unit: '' },
      }),
    };
  };
}

function withoutMachine(placement: Placement, lost: string): Placement {
  return new Map(
    [...placement].map(([id, workers]) => {
      const left = workers.filter(({ supervisor }) => supervisor !== lost);
      return [id, left.length === workers.length ? workers : left] as const;
    }),
  );
}

/** A whole round, from stored assignments and heartbeats to the outcome, in which nothing has changed. */
function steady(make: Make, cluster: (file: string) => ClusterSnapshot): SchedulingCase['prepare'] {
  return (library, file) => {
    const round = roundOf(library, cluster(file), make(library));
    const stored = round.first();
    let outcome: ReturnType<typeof round.again> | undefined;
    return {
      decide: () => (outcome = round.again(stored)),
      facts: () => ({
        'assignments-written': {
          value: outcome!.topologies.filter(({ kind }) => kind !== 'unchanged').length,
          unit: '',
        },
      }),
    };
  };
}

/** From task counts to stored assignments. */
function millionTasks(library: Library): Prepared {
  const cluster = {
    machines: 2000,
    slots: 6,
    topologies: 200,
    executors: 1000,
    workers: 50,
    tasksPerExecutor: 5,
  };
  let outcome: { readonly placed: number } | undefined;
  return {
    decide: () => {
      const round = roundOf(library, numbered(library, cluster), EVEN(library));
      const stored = round.first();
      let placed = 0;
      for (const assignment of stored.values())
        for (const { executors } of assignment.slots) placed += executors.length;
      return (outcome = { placed });
    },
    facts: () => ({ 'executors-placed': { value: outcome!.placed, unit: '' } }),
  };
}

/** The cluster with executors as the pipeline makes them from task counts. */
export function numbered(
  { scheduling }: Library,
  options: Parameters<typeof syntheticCluster>[0] & { readonly tasksPerExecutor: number },
): ClusterSnapshot {
  const base = syntheticCluster({ ...options, executors: 0 });
  const components = ['a', 'b', 'c', 'd', 'e'];
  const each = options.executors / components.length;
  return {
    ...base,
    topologies: base.topologies.map((topology): ClusterTopology => {
      const tasks = scheduling.numberTasks(components.map((id) => [id, each * options.tasksPerExecutor]));
      const executors: readonly PlannedExecutor[] = scheduling.computeExecutors(
        tasks,
        new Map(components.map((id) => [id, each])),
      );
      return { ...topology, executors };
    }),
  };
}

function placementFacts(snapshot: ClusterSnapshot, placement: Placement): Record<string, Fact> {
  const quality = qualityOf(snapshot, placement);
  const facts = {
    'topologies-placed': { value: quality.topologiesPlaced, unit: '', ofPeer: 'topologiesPlaced' },
    'executors-placed': { value: quality.executorsPlaced, unit: '', ofPeer: 'executorsPlaced' },
    'machines-used': { value: quality.machinesUsed, unit: '', ofPeer: 'nodesUsed' },
    workers: { value: quality.workers, unit: '', ofPeer: 'workers' },
  };
  if (snapshot.topologies.every(({ components }) => components === undefined)) return facts;
  return { ...facts, 'traffic-cost': { value: quality.trafficCost, unit: '', ofPeer: 'network.cost' } };
}

function busiestMachine(placement: Placement): string {
  const loads = new Map<string, number>();
  for (const workers of placement.values()) {
    for (const { supervisor, executors } of workers)
      loads.set(supervisor, (loads.get(supervisor) ?? 0) + executors.length);
  }
  return [...loads].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))[0]![0];
}

/** Executors that had a place and are elsewhere now. */
export function movedExecutors(before: Placement, after: Placement): number {
  let moved = 0;
  for (const [id, workers] of before) {
    const now = new Map(
      (after.get(id) ?? []).flatMap(({ supervisor, port, executors }) =>
        executors.map(([first]) => [first, `${supervisor}:${port}`] as const),
      ),
    );
    for (const { supervisor, port, executors } of workers)
      for (const [first] of executors) if (now.get(first) !== `${supervisor}:${port}`) moved++;
  }
  return moved;
}
