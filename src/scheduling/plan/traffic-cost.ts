/**
 * What the rows of a placement have to travel, as an estimate from the graph alone.
 *
 * Every executor of a source sends one row along each edge; w(a,b) is the share of it that executor b of the target gets: all of
 * it under `all`, all of it for the first executor under `global`, an equal part otherwise; under `local-or-shuffle` the
 * executors in the sender's own worker share it if there are any. The distance d is 0 within a worker, 1 within a machine,
 * 2 within a rack, 3 between racks. cost = Σ w·d, rows = Σ w.
 */
import {
  type ClusterSnapshot,
  type ClusterTopology,
  type PlacedWorker,
  slotKey,
} from '../cluster-snapshot.js';

export interface Traffic {
  readonly cost: number;
  readonly rows: number;
}

/** The sum over topologies. Cost: O(executors + edges × workers). */
export function trafficCost({ supervisors, topologies, placement }: ClusterSnapshot): Traffic {
  const rackOf = new Map(supervisors.map(({ id, rack }) => [id, rack ?? '']));
  let cost = 0;
  let rows = 0;
  for (const topology of topologies) {
    const one = topologyTraffic(topology, placement.get(topology.id) ?? [], rackOf);
    cost += one.cost;
    rows += one.rows;
  }
  return { cost, rows };
}

/** Where the executors of a component are: how many in each worker, on each machine, in each rack. */
interface Places {
  count: number;
  readonly workers: Map<string, { readonly worker: PlacedWorker; count: number }>;
  readonly machines: Map<string, number>;
  readonly racks: Map<string, number>;
  /** The first executor alone; undefined while this is one itself. */
  first: { readonly task: number; readonly worker: PlacedWorker } | undefined;
}

export function topologyTraffic(
  { components = [], executors }: ClusterTopology,
  workers: readonly PlacedWorker[],
  rackOf: ReadonlyMap<string, string>,
): Traffic {
  if (components.every(({ inputs = [] }) => inputs.length === 0)) return { cost: 0, rows: 0 };
  const places = placesOf(executors, workers, rackOf);
  let cost = 0;
  let rows = 0;
  for (const { id, inputs = [] } of components) {
    const receivers = places.get(id);
    if (receivers === undefined) continue;
    for (const { from, grouping } of inputs) {
      const senders = places.get(from);
      if (senders === undefined) continue;
      const target = grouping === 'global' ? firstOnly(receivers, rackOf) : receivers;
      const share = grouping === 'all' ? 1 : 1 / target.count;
      for (const { worker, count } of senders.workers.values()) {
        const near = target.workers.get(slotKey(worker))?.count ?? 0;
        if (grouping === 'local-or-shuffle' && near > 0) {
          rows += count;
          continue;
        }
        const onMachine = target.machines.get(worker.supervisor) ?? 0;
        const inRack = target.racks.get(rackOf.get(worker.supervisor) ?? '') ?? 0;
        const distance = 3 * (target.count - inRack) + 2 * (inRack - onMachine) + (onMachine - near);
        cost += count * share * distance;
        rows += count * share * target.count;
      }
    }
  }
  return { cost, rows };
}

function placesOf(
  executors: ClusterTopology['executors'],
  workers: readonly PlacedWorker[],
  rackOf: ReadonlyMap<string, string>,
): Map<string, Places> {
  const componentOf = new Map(executors.map(({ range, component }) => [range[0], component]));
  const places = new Map<string, Places>();
  for (const worker of workers) {
    for (const [task] of worker.executors) {
      const component = componentOf.get(task);
      if (component === undefined) continue;
      const known = places.get(component) ?? empty();
      places.set(component, known);
      put(known, worker, rackOf);
      if (known.first === undefined || task < known.first.task) known.first = { task, worker };
    }
  }
  return places;
}

function empty(): Places {
  return { count: 0, workers: new Map(), machines: new Map(), racks: new Map(), first: undefined };
}

function put(places: Places, worker: PlacedWorker, rackOf: ReadonlyMap<string, string>): void {
  const { workers, machines, racks } = places;
  const key = slotKey(worker);
  const rack = rackOf.get(worker.supervisor) ?? '';
  const known = workers.get(key);
  if (known === undefined) workers.set(key, { worker, count: 1 });
  else known.count++;
  machines.set(worker.supervisor, (machines.get(worker.supervisor) ?? 0) + 1);
  racks.set(rack, (racks.get(rack) ?? 0) + 1);
  places.count++;
}

function firstOnly({ first }: Places, rackOf: ReadonlyMap<string, string>): Places {
  const one = empty();
  if (first !== undefined) put(one, first.worker, rackOf);
  return one;
}
