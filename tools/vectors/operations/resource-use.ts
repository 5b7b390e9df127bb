/** What a placed topology uses, added up from its placement alone: a second opinion on the strategy's own books. */
import type { ClusterComponent, ClusterTopology, PlacedWorker } from '../../../src/scheduling/index.js';

export interface WorkerUse {
  readonly worker: PlacedWorker;
  /** One entry per executor, sorted. */
  readonly components: readonly string[];
  readonly cpu: number;
  readonly onHeapMb: number;
  readonly offHeapMb: number;
  readonly generic: ReadonlyMap<string, number>;
}

/** The use of each worker, shared parts of the worker included. `minimumCpu`: what each takes at least. */
export function useOfWorkers(
  topology: ClusterTopology,
  workers: readonly PlacedWorker[],
  minimumCpu = 0,
): WorkerUse[] {
  const componentOf = new Map(topology.executors.map(({ range, component }) => [range[0], component]));
  const described = new Map((topology.components ?? []).map((component) => [component.id, component]));
  return workers.map((worker) => {
    const components = worker.executors.flatMap(([first]) => componentOf.get(first) ?? []).sort();
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
      cpu: Math.max(minimumCpu, sum(all.map(({ resources }) => resources.cpuPercent))),
      onHeapMb: sum([
        ...all.map(({ resources }) => resources.onHeapMb),
        ...shared.map(({ onHeapMb }) => onHeapMb),
      ]),
      offHeapMb: sum([
        ...all.map(({ resources }) => resources.offHeapMb),
        ...shared.map(({ offHeapWorkerMb }) => offHeapWorkerMb),
      ]),
      generic,
    };
  });
}

/** Memory that the topology shares on each supervisor, MB. */
export function sharedOnSupervisors(
  topology: ClusterTopology,
  uses: readonly WorkerUse[],
): ReadonlyMap<string, number> {
  const described = new Map((topology.components ?? []).map((component) => [component.id, component]));
  const there = new Map<string, ClusterComponent[]>();
  for (const { worker, components } of uses) {
    const list = there.get(worker.supervisor) ?? [];
    there.set(worker.supervisor, list);
    list.push(...components.flatMap((id) => described.get(id) ?? []));
  }
  return new Map(
    [...there].map(([supervisor, components]) => [
      supervisor,
      sum(sharedRegions(components).map(({ offHeapMachineMb }) => offHeapMachineMb)),
    ]),
  );
}

/** The facts `observed` of a topology. */
export function observe(
  topology: ClusterTopology,
  workers: readonly PlacedWorker[],
  minimumCpu = 0,
): Record<string, unknown> {
  const uses = useOfWorkers(topology, workers, minimumCpu);
  return {
    workers: workers.length,
    nodes: new Set(workers.map(({ supervisor }) => supervisor)).size,
    executorsPerWorker: workers.map(({ executors }) => executors.length).sort((a, b) => b - a),
    workerComponents: uses
      .map(({ components }) => components)
      .sort((a, b) => compare(JSON.stringify(a), JSON.stringify(b))),
    cpu: round(sum(uses.map(({ cpu }) => cpu))),
    onHeapMb: round(sum(uses.map(({ onHeapMb }) => onHeapMb))),
    offHeapMb: round(sum(uses.map(({ offHeapMb }) => offHeapMb))),
    sharedOffHeapNodeMb: round(sum([...sharedOnSupervisors(topology, uses).values()])),
  };
}

/** Each region once, however many components use it. */
function sharedRegions(
  components: readonly ClusterComponent[],
): NonNullable<ClusterComponent['sharedMemory']>[number][] {
  const regions = components.flatMap(({ sharedMemory }) => sharedMemory ?? []);
  return [...new Map(regions.map((region) => [region.name, region])).values()];
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
