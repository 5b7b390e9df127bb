/**
 * What a placement is worth: who is placed, machines and workers used, and the estimated cost of its traffic.
 *
 * Each input (source A, target B, grouping) is an edge on which every executor of A sends one row: executor b of B gets the
 * share 1/|B|, with `all` 1, with `global` 1 for the first, with `local-or-shuffle` 1/(number of B in the worker of a) if there is one.
 * A share costs 0 within a worker, 1 within a machine, 2 within a rack, 3 between racks. The formula is the one of Storm's peer bench.
 */
import type { ClusterSnapshot, Placement } from './library.js';

/** Where an executor is: three names that are equal where it is in the same worker, machine, rack. */
interface Place {
  readonly worker: string;
  readonly machine: string;
  readonly rack: string;
}

export interface PlacementQuality {
  readonly topologiesPlaced: number;
  readonly executorsPlaced: number;
  readonly workers: number;
  readonly machinesUsed: number;
  readonly trafficCost: number;
}

export function qualityOf(
  { supervisors, topologies }: ClusterSnapshot,
  placement: Placement,
): PlacementQuality {
  const rackOf = new Map(supervisors.map(({ id, rack }) => [id, rack ?? '']));
  const machines = new Set<string>();
  let workers = 0;
  let executorsPlaced = 0;
  let topologiesPlaced = 0;
  let trafficCost = 0;
  for (const { id, executors, components = [] } of topologies) {
    const places = new Map<number, Place>();
    for (const { supervisor, port, executors: ranges } of placement.get(id) ?? []) {
      machines.add(supervisor);
      workers++;
      const place = {
        worker: `${supervisor}:${port}`,
        machine: supervisor,
        rack: rackOf.get(supervisor) ?? '',
      };
      for (const [first] of ranges) places.set(first, place);
    }
    executorsPlaced += places.size;
    if (places.size === executors.length) topologiesPlaced++;
    const byComponent = new Map<string, Place[]>();
    for (const { range, component } of executors) {
      const place = places.get(range[0]);
      if (place === undefined) continue;
      const list = byComponent.get(component);
      if (list === undefined) byComponent.set(component, [place]);
      else list.push(place);
    }
    for (const { id: component, inputs = [] } of components) {
      const targets = byComponent.get(component) ?? [];
      for (const { from, grouping } of inputs) {
        const sources = byComponent.get(from) ?? [];
        if (sources.length > 0 && targets.length > 0) trafficCost += edgeCost(sources, targets, grouping);
      }
    }
  }
  return { topologiesPlaced, executorsPlaced, workers, machinesUsed: machines.size, trafficCost };
}

function edgeCost(sources: readonly Place[], targets: readonly Place[], grouping: string): number {
  switch (grouping) {
    case 'all':
      return pairCost(sources, targets, 1);
    case 'global':
      return pairCost(sources, targets.slice(0, 1), 1);
    case 'local-or-shuffle': {
      const local = new Set(targets.map(({ worker }) => worker));
      const remote = sources.filter(({ worker }) => !local.has(worker));
      return pairCost(remote, targets, 1 / targets.length);
    }
    default:
      return pairCost(sources, targets, 1 / targets.length);
  }
}

/** By counting instead of visiting: 3 for each pair, one less for each of rack, machine and worker that is the same. */
function pairCost(sources: readonly Place[], targets: readonly Place[], share: number): number {
  const pairs = sources.length * targets.length;
  const same =
    common(sources, targets, 'worker') +
    common(sources, targets, 'machine') +
    common(sources, targets, 'rack');
  return share * (3 * pairs - same);
}

function common(sources: readonly Place[], targets: readonly Place[], what: keyof Place): number {
  const there = new Map<string, number>();
  for (const place of targets) there.set(place[what], (there.get(place[what]) ?? 0) + 1);
  return sources.reduce((sum, place) => sum + (there.get(place[what]) ?? 0), 0);
}
