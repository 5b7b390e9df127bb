/**
 * What placed workers use, added up from a placement alone: the books of a strategy are not asked, so that this can check
 * them.
 */
import type { ClusterSnapshot, ClusterTopology, PlacedWorker, Placement } from './cluster-snapshot.js';
import { indexExecutors } from './executor-index.js';
import type { ClusterComponent, SharedMemory } from './resources.js';

/** Amounts are added up in another order than strategies do. */
const TOLERANCE = 1e-3;

/** Is that more than there may be? */
export function isBeyond(amount: number, most: number): boolean {
  return amount > most + TOLERANCE;
}

export interface WorkerUse {
  readonly worker: PlacedWorker;
  /** Component ids, one per executor, sorted. */
  readonly components: readonly string[];
  readonly cpuPercent: number;
  /** With what executors of this worker share. */
  readonly onHeapMb: number;
  /** With what executors of this worker share, without what the topology shares on the supervisor. */
  readonly offHeapMb: number;
  readonly generic: ReadonlyMap<string, number>;
}

/** The use of each worker, which takes at least `minimumCpuPercent`. Executors that the topology does not have use nothing. */
export function useOfWorkers(
  topology: ClusterTopology,
  workers: readonly PlacedWorker[],
  minimumCpuPercent = 0,
): WorkerUse[] {
  if (workers.length === 0) return [];
  const index = indexExecutors(topology.executors);
  const described = describedComponents(topology);
  return workers.map((worker) => {
    const components = worker.executors
      .flatMap(([first]) => index.executors[index.placeOfFirst(first)]?.component ?? [])
      .sort();
    const all = components.flatMap((id) => described.get(id) ?? []);
    const shared = sharedRegions(all);
    const generic = new Map<string, number>();
    for (const { resources } of all) {
      for (const [name, amount] of Object.entries(resources.generic ?? {})) {
        generic.set(name, (generic.get(name) ?? 0) + amount);
      }
    }
    return {
      worker,
      components,
      cpuPercent: Math.max(
        minimumCpuPercent,
        sum(all, ({ resources }) => resources.cpuPercent),
      ),
      onHeapMb: sum(all, ({ resources }) => resources.onHeapMb) + sum(shared, ({ onHeapMb }) => onHeapMb),
      offHeapMb:
        sum(all, ({ resources }) => resources.offHeapMb) +
        sum(shared, ({ offHeapWorkerMb }) => offHeapWorkerMb),
      generic,
    };
  });
}

/** Memory that the topology shares on each supervisor, MB. */
export function sharedOnSupervisors(
  topology: ClusterTopology,
  uses: readonly WorkerUse[],
): ReadonlyMap<string, number> {
  const described = describedComponents(topology);
  const there = new Map<string, Set<string>>();
  for (const { worker, components } of uses) {
    const ids = there.get(worker.supervisor) ?? new Set();
    there.set(worker.supervisor, ids);
    for (const id of components) ids.add(id);
  }
  return new Map(
    [...there].map(([supervisor, ids]) => [
      supervisor,
      sum(sharedRegions([...ids].flatMap((id) => described.get(id) ?? [])), (one) => one.offHeapMachineMb),
    ]),
  );
}

export interface SupervisorUse {
  cpuPercent: number;
  memoryMb: number;
  readonly generic: Map<string, number>;
}

/** The use of each supervisor that holds a worker; `only`: of these alone, which leaves the executors of all others unread. */
export function useOfSupervisors(
  { topologies }: Pick<ClusterSnapshot, 'topologies'>,
  placement: Placement,
  minimumCpuPercent = 0,
  only?: ReadonlySet<string>,
): ReadonlyMap<string, SupervisorUse> {
  const sums = new Map<string, SupervisorUse>();
  const of = (supervisor: string): SupervisorUse => {
    const known = sums.get(supervisor) ?? { cpuPercent: 0, memoryMb: 0, generic: new Map<string, number>() };
    sums.set(supervisor, known);
    return known;
  };
  for (const topology of topologies) {
    const all = placement.get(topology.id) ?? [];
    const workers = only === undefined ? all : all.filter(({ supervisor }) => only.has(supervisor));
    const uses = useOfWorkers(topology, workers, minimumCpuPercent);
    for (const { worker, cpuPercent, onHeapMb, offHeapMb, generic } of uses) {
      const use = of(worker.supervisor);
      use.cpuPercent += cpuPercent;
      use.memoryMb += onHeapMb + offHeapMb;
      for (const [name, amount] of generic) use.generic.set(name, (use.generic.get(name) ?? 0) + amount);
    }
    for (const [supervisor, memoryMb] of sharedOnSupervisors(topology, uses))
      of(supervisor).memoryMb += memoryMb;
  }
  return sums;
}

function describedComponents({ components }: ClusterTopology): ReadonlyMap<string, ClusterComponent> {
  return new Map((components ?? []).map((component) => [component.id, component]));
}

/** Each region once, however many components use it. */
function sharedRegions(components: readonly ClusterComponent[]): SharedMemory[] {
  const regions = new Map<string, SharedMemory>();
  for (const { sharedMemory } of components) {
    for (const region of sharedMemory ?? []) if (!regions.has(region.name)) regions.set(region.name, region);
  }
  return [...regions.values()];
}

function sum<T>(items: readonly T[], read: (item: T) => number): number {
  return items.reduce((total, item) => total + read(item), 0);
}
