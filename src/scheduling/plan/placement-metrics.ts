/** A placement in numbers: what each machine carries, how evenly, and how far its rows travel. */
import { largestLoadBound } from '../balance/index.js';
import type { ClusterSnapshot } from '../cluster-snapshot.js';
import { type ComponentClass, classOf, systemFinder } from '../component-classes.js';
import { executorLoads } from '../load/index.js';
import { useOfSupervisors } from '../resource-use.js';
import { type Traffic, trafficCost } from './traffic-cost.js';

export interface MachineUse {
  readonly id: string;
  readonly host: string;
  readonly rack: string;
  /** Slots that it offers. */
  readonly slots: number;
  readonly workers: number;
  readonly executors: number;
  readonly load: number;
  /** What its executors ask for. */
  readonly cpuPercent: number;
  readonly memoryMb: number;
  /** What it offers; null: not known. */
  readonly offeredCpuPercent: number | null;
  readonly offeredMemoryMb: number | null;
}

export interface Levels {
  readonly max: number;
  readonly min: number;
  readonly mean: number;
}

export interface PlacementMetrics {
  /** In order of id. */
  readonly machines: readonly MachineUse[];
  readonly machinesUsed: number;
  readonly racks: number;
  readonly slots: number;
  readonly workers: number;
  readonly executors: number;
  /** Over all machines. */
  readonly machineLoad: Levels;
  /** Over all machines, of the executors of each class. */
  readonly classLoads: Readonly<Record<ComponentClass, Levels>>;
  /** No placement of the same workers on these machines has a smaller largest load. */
  readonly lowestMaxLoad: number;
  /** Over all workers. */
  readonly workerLoad: Levels;
  /** User components that are placed, and those of which no machine has more executors than an equal part, rounded up. */
  readonly components: { readonly placed: number; readonly spread: number };
  readonly traffic: Traffic;
}

/** Cost: O(executors + machines log machines). */
export function placementMetrics(snapshot: ClusterSnapshot): PlacementMetrics {
  const workerLoads: number[] = [];
  const carried = new Map<string, { workers: number; executors: number; load: number }>();
  for (const topology of snapshot.topologies) {
    const loadOf = executorLoads(topology);
    for (const { supervisor, executors } of snapshot.placement.get(topology.id) ?? []) {
      const load = executors.reduce((sum, [first]) => sum + loadOf(first), 0);
      const machine = carried.get(supervisor) ?? { workers: 0, executors: 0, load: 0 };
      carried.set(supervisor, machine);
      machine.workers++;
      machine.executors += executors.length;
      machine.load += load;
      workerLoads.push(load);
    }
  }
  const uses = useOfSupervisors(snapshot, snapshot.placement);
  const machines = snapshot.supervisors
    .map(({ id, host, rack = '', ports, resources, otherLoad = 0 }): MachineUse => {
      const { workers = 0, executors = 0, load = 0 } = carried.get(id) ?? {};
      const { cpuPercent = 0, memoryMb = 0 } = uses.get(id) ?? {};
      return {
        id,
        host,
        rack,
        slots: ports.length,
        workers,
        executors,
        load: load + otherLoad,
        cpuPercent,
        memoryMb,
        offeredCpuPercent: resources?.cpuPercent ?? null,
        offeredMemoryMb: resources?.memoryMb ?? null,
      };
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const lowestMaxLoad = largestLoadBound({
    fixedLoads: Float64Array.from(snapshot.supervisors, ({ otherLoad = 0 }) => otherLoad),
    places: Int32Array.from(snapshot.supervisors, ({ ports }) => ports.length),
    loads: Float64Array.from(workerLoads),
    current: new Int32Array(workerLoads.length).fill(-1),
  });
  return {
    machines,
    machinesUsed: machines.filter(({ workers }) => workers > 0).length,
    racks: new Set(machines.map(({ rack }) => rack)).size,
    slots: machines.reduce((sum, { slots }) => sum + slots, 0),
    workers: workerLoads.length,
    executors: machines.reduce((sum, { executors }) => sum + executors, 0),
    machineLoad: levels(machines.map(({ load }) => load)),
    classLoads: {
      sources: classLevels(snapshot, 'sources'),
      stateful: classLevels(snapshot, 'stateful'),
      stateless: classLevels(snapshot, 'stateless'),
    },
    lowestMaxLoad,
    workerLoad: levels(workerLoads),
    components: componentSpread(snapshot),
    traffic: trafficCost(snapshot),
  };
}

function classLevels({ supervisors, topologies, placement }: ClusterSnapshot, name: ComponentClass): Levels {
  const loads = new Map(supervisors.map(({ id }) => [id, 0]));
  for (const topology of topologies) {
    const { components = [], executors } = topology;
    const ids = new Set(components.filter((one) => classOf(one) === name).map(({ id }) => id));
    if (ids.size === 0) continue;
    const loadOf = executorLoads(topology);
    const members = new Set(
      executors.filter(({ component }) => ids.has(component)).map(({ range }) => range[0]),
    );
    for (const { supervisor, executors: ranges } of placement.get(topology.id) ?? []) {
      for (const [first] of ranges)
        if (members.has(first)) loads.set(supervisor, (loads.get(supervisor) ?? 0) + loadOf(first));
    }
  }
  return levels([...loads.values()]);
}

function componentSpread({
  supervisors,
  topologies,
  placement,
}: ClusterSnapshot): PlacementMetrics['components'] {
  const machines = supervisors.filter(({ ports }) => ports.length > 0).length;
  let [placed, spread] = [0, 0];
  for (const { id, executors, components } of topologies) {
    const isSystem = systemFinder(components);
    const componentOf = new Map(executors.map(({ range, component }) => [range[0], component]));
    const counts = new Map<string, Map<string, number>>();
    for (const { supervisor, executors: ranges } of placement.get(id) ?? []) {
      for (const [first] of ranges) {
        const component = componentOf.get(first);
        if (component === undefined || isSystem(component)) continue;
        const there = counts.get(component) ?? new Map<string, number>();
        counts.set(component, there.set(supervisor, (there.get(supervisor) ?? 0) + 1));
      }
    }
    for (const there of counts.values()) {
      const total = [...there.values()].reduce((sum, count) => sum + count, 0);
      placed++;
      if (Math.max(...there.values()) <= Math.ceil(total / Math.max(1, machines))) spread++;
    }
  }
  return { placed, spread };
}

function levels(values: readonly number[]): Levels {
  if (values.length === 0) return { max: 0, min: 0, mean: 0 };
  let [max, min, sum] = [-Infinity, Infinity, 0];
  for (const value of values) {
    max = Math.max(max, value);
    min = Math.min(min, value);
    sum += value;
  }
  return { max, min, mean: sum / values.length };
}
