/** Why one executor is where it is: its group, what that asks for, the slot that it got, and whom it exchanges rows with. */
import type { ClusterTopology, PlacedWorker, Slot } from '../cluster-snapshot.js';
import { systemFinder } from '../component-classes.js';
import type { PlannedExecutor } from '../executors.js';
import { executorLoads } from '../load/index.js';
import { rangeKey } from '../order.js';
import type { ClusterComponent, LoadSource } from '../resources.js';
import type { Lack } from './lacks.js';
import type { Move } from './placement-moves.js';
import type { ClusterPlan } from './plan-cluster.js';

/** A component that it exchanges rows with, and how far its executors are. */
export interface Neighbour {
  readonly component: string;
  readonly direction: 'from' | 'to';
  readonly grouping: string;
  readonly sameWorker: number;
  readonly sameMachine: number;
  readonly sameRack: number;
  readonly otherRack: number;
}

export interface Explanation {
  readonly topologyId: string;
  readonly executor: PlannedExecutor;
  readonly load: number;
  /** Where that comes from; `estimated`: loads are measured, but not this one yet. */
  readonly loadSource: LoadSource | 'estimated' | 'system';
  readonly component: ClusterComponent | null;
  /** How executors are dealt to slots; null: the strategy does not look at slot sharing. */
  readonly sharing: string | null;
  /** Workers wanted, and workers that there are. */
  readonly workers: { readonly wanted: number; readonly planned: number };
  /** Where it was before the plan; null: nowhere. */
  readonly before: Slot | null;
  /** Where it is after it, with those that share its slot; null: nowhere. */
  readonly after: (Slot & { readonly executors: readonly PlannedExecutor[]; readonly load: number }) | null;
  /** Its machine and others that could have taken the worker, least loaded first, after the plan. */
  readonly machines: readonly {
    readonly id: string;
    readonly load: number;
    readonly freeSlots: number;
    readonly isChosen: boolean;
  }[];
  /** Those of its moves, in order. */
  readonly moves: readonly Move[];
  readonly lack: Lack | null;
  readonly neighbours: readonly Neighbour[];
}

const MAX_MACHINES = 5;

/** Undefined if the topology has no such task. Cost: O(executors of the topology + machines log machines). */
export function explainExecutor(
  plan: ClusterPlan,
  topologyId: string,
  task: number,
): Explanation | undefined {
  const topology = plan.snapshot.topologies.find(({ id }) => id === topologyId);
  const executor = topology?.executors.find(({ range }) => range[0] <= task && task <= range[1]);
  const planned = plan.topologies.find(({ id }) => id === topologyId);
  if (topology === undefined || executor === undefined || planned === undefined) return undefined;
  const key = rangeKey(executor.range);
  const loadOf = executorLoads(topology);
  const workers = plan.snapshot.placement.get(topologyId) ?? [];
  const worker = workers.find((one) => one.executors.some((range) => rangeKey(range) === key));
  const before = planned.stored?.slots.find((one) => one.executors.some((range) => rangeKey(range) === key));
  const byFirst = new Map(topology.executors.map((one) => [one.range[0], one]));
  const mode = topology.balance?.mode ?? 'tasks';
  const sharing = topology.balance?.sharing ?? (mode === 'tasks' ? 'task-balanced' : 'local-input-preferred');
  return {
    topologyId,
    executor,
    load: loadOf(executor.range[0]),
    loadSource: sourceOf(topology, executor),
    component: topology.components?.find(({ id }) => id === executor.component) ?? null,
    sharing: plan.strategy === 'balanced' ? sharing : null,
    workers: { wanted: topology.workers, planned: workers.length },
    before: before === undefined ? null : { supervisor: before.supervisor, port: before.port },
    after:
      worker === undefined
        ? null
        : {
            supervisor: worker.supervisor,
            port: worker.port,
            executors: worker.executors.flatMap(([first]) => byFirst.get(first) ?? []),
            load: worker.executors.reduce((sum, [first]) => sum + loadOf(first), 0),
          },
    machines: machinesOf(plan, worker),
    moves: plan.moves.filter(
      (move) => move.topologyId === topologyId && move.executors.some(({ range }) => rangeKey(range) === key),
    ),
    lack:
      plan.lacks.find(
        (lack) =>
          lack.topologyId === topologyId && lack.executors.some(({ range }) => rangeKey(range) === key),
      ) ?? null,
    neighbours: worker === undefined ? [] : neighboursOf(plan, topology, executor, worker),
  };
}

function sourceOf(
  { components, balance, measured }: ClusterTopology,
  { component, range }: PlannedExecutor,
): Explanation['loadSource'] {
  if (systemFinder(components)(component)) return 'system';
  const source = balance?.load ?? 'declared';
  return source !== 'measured' || measured?.byTask.has(range[0]) === true ? source : 'estimated';
}

function machinesOf({ after }: ClusterPlan, worker: PlacedWorker | undefined): Explanation['machines'] {
  const all = after.machines.map(({ id, load, slots, workers }) => ({
    id,
    load,
    freeSlots: Math.max(0, slots - workers),
    isChosen: id === worker?.supervisor,
  }));
  const others = all.filter(({ isChosen, freeSlots }) => !isChosen && freeSlots > 0);
  others.sort((a, b) => a.load - b.load || (a.id < b.id ? -1 : 1));
  return [...all.filter(({ isChosen }) => isChosen), ...others.slice(0, MAX_MACHINES)];
}

function neighboursOf(
  { snapshot }: ClusterPlan,
  { id, components = [], executors }: ClusterTopology,
  { component }: PlannedExecutor,
  worker: PlacedWorker,
): Neighbour[] {
  const rackOf = new Map(snapshot.supervisors.map((one) => [one.id, one.rack ?? '']));
  const componentOf = new Map(executors.map((one) => [one.range[0], one.component]));
  const workers = snapshot.placement.get(id) ?? [];
  const count = (other: string): Omit<Neighbour, 'component' | 'direction' | 'grouping'> => {
    const counts = { sameWorker: 0, sameMachine: 0, sameRack: 0, otherRack: 0 };
    for (const one of workers) {
      const here = one.executors.filter(([first]) => componentOf.get(first) === other).length;
      if (here === 0) continue;
      if (one.supervisor === worker.supervisor)
        counts[one.port === worker.port ? 'sameWorker' : 'sameMachine'] += here;
      else
        counts[rackOf.get(one.supervisor) === rackOf.get(worker.supervisor) ? 'sameRack' : 'otherRack'] +=
          here;
    }
    return counts;
  };
  const inputs = components.find((one) => one.id === component)?.inputs ?? [];
  const outputs = components.flatMap((one) =>
    (one.inputs ?? []).flatMap(({ from, grouping }) =>
      from === component ? [{ to: one.id, grouping }] : [],
    ),
  );
  return [
    ...inputs.map(({ from, grouping }) => ({
      component: from,
      direction: 'from' as const,
      grouping,
      ...count(from),
    })),
    ...outputs.map(({ to, grouping }) => ({
      component: to,
      direction: 'to' as const,
      grouping,
      ...count(to),
    })),
  ];
}
