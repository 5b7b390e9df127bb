/**
 * Executors for which there is no slot join workers of their own topology that run: those on the machine that carries least, over
 * all topologies, so that what was lost or given up does not pile up in one place.
 *
 * J1  Executors of a slot sharing group join workers of that group, and others only where the topology has no such worker.
 * J2  What is co-located stays so.
 * J3  Executors that weigh nothing are spread by their number.
 */
import type { ExecutorRange } from '../../assignment.js';
import type { WorkingCluster } from '../../cluster.js';
import type { PlacedWorker } from '../../cluster-snapshot.js';
import type { GroupableTopology } from './slot-groups.js';

/** Executors that go to the same worker. */
interface Unit {
  readonly executors: ExecutorRange[];
  readonly vertex: number;
  readonly sharingGroup: string;
  load: number;
  /** What it has to stay with runs there. */
  home: Host | undefined;
}

interface Host {
  readonly worker: PlacedWorker;
  readonly machine: Machine;
  readonly sharingGroups: ReadonlySet<string>;
  load: number;
  executors: number;
  /** How many executors of each vertex it has. */
  readonly counts: Map<number, number>;
  readonly added: ExecutorRange[];
}

interface Machine {
  readonly id: string;
  readonly counts: Map<number, number>;
}

/**
 * Places every executor of the topology that has no slot, as far as it has a worker on a slot that is offered.
 *
 * @param machineLoads by supervisor; what joins is added
 */
export function joinWorkers(
  cluster: WorkingCluster,
  topologyId: string,
  own: GroupableTopology,
  machineLoads: Map<string, number>,
): void {
  if (!cluster.hasUnassigned(topologyId)) return;
  const hosts = hostsOf(cluster, topologyId, own);
  if (hosts.length === 0) return;
  const units = unitsOf(cluster, topologyId, own, hosts);
  const candidates = new Map<string, readonly Host[]>();
  const hostsFor = (sharingGroup: string): readonly Host[] => {
    const known = candidates.get(sharingGroup);
    if (known !== undefined) return known;
    const found = hosts.filter(({ sharingGroups }) => sharingGroups.has(sharingGroup));
    const all = found.length > 0 ? found : hosts;
    candidates.set(sharingGroup, all);
    return all;
  };
  for (const unit of [...units].sort((a, b) => b.load - a.load)) {
    const host = unit.home ?? bestHost(unit, hostsFor(unit.sharingGroup), machineLoads);
    machineLoads.set(host.machine.id, (machineLoads.get(host.machine.id) ?? 0) + unit.load);
    host.load += unit.load;
    host.executors += unit.executors.length;
    host.added.push(...unit.executors);
    for (const [first] of unit.executors) {
      addOne(host.counts, own.vertexOf(first));
      addOne(host.machine.counts, own.vertexOf(first));
    }
  }
  for (const { worker, added } of hosts) if (added.length > 0) cluster.extend(worker, topologyId, added);
}

function addOne(counts: Map<number, number>, vertex: number): void {
  counts.set(vertex, (counts.get(vertex) ?? 0) + 1);
}

function hostsOf(cluster: WorkingCluster, topologyId: string, own: GroupableTopology): readonly Host[] {
  const machines = new Map<string, Machine>();
  const hosts: Host[] = [];
  for (const worker of cluster.workersOf(topologyId)) {
    if (!cluster.isAssignable(worker)) continue;
    const machine = machines.get(worker.supervisor) ?? { id: worker.supervisor, counts: new Map() };
    machines.set(worker.supervisor, machine);
    const counts = new Map<number, number>();
    for (const [first] of worker.executors) {
      addOne(counts, own.vertexOf(first));
      addOne(machine.counts, own.vertexOf(first));
    }
    hosts.push({
      worker,
      machine,
      sharingGroups: sharingGroupsOf(own, worker.executors),
      load: own.weigh(worker.executors).load,
      executors: worker.executors.length,
      counts,
      added: [],
    });
  }
  return hosts;
}

/** Slot sharing groups of these executors. */
export function sharingGroupsOf(
  own: GroupableTopology,
  executors: readonly ExecutorRange[],
): ReadonlySet<string> {
  const groups = new Set(executors.map(([first]) => sharingGroupOf(own, first)));
  groups.delete(ANY_GROUP);
  return groups;
}

/** Of system components, which share any slot. */
const ANY_GROUP = '';

function sharingGroupOf({ graph: { sizing }, vertexOf }: GroupableTopology, firstTask: number): string {
  return sizing.vertices[vertexOf(firstTask)]?.slotSharingGroup ?? ANY_GROUP;
}

function unitsOf(
  cluster: WorkingCluster,
  topologyId: string,
  own: GroupableTopology,
  hosts: readonly Host[],
): readonly Unit[] {
  const { graph, vertexOf, loadOf } = own;
  const bonds = bondsOf(graph);
  const homes = new Map<string, Host>();
  if (bonds.size > 0) {
    for (const host of hosts)
      for (const [first] of host.worker.executors) {
        const bond = bonds.get(first);
        if (bond !== undefined) homes.set(bond, host);
      }
  }
  const units: Unit[] = [];
  const bonded = new Map<string, Unit>();
  for (const { range } of cluster.unassignedExecutors(topologyId)) {
    const [first] = range;
    const bond = bonds.get(first);
    const known = bond === undefined ? undefined : bonded.get(bond);
    if (known !== undefined) {
      known.executors.push(range);
      known.load += loadOf(first);
      continue;
    }
    const unit: Unit = {
      executors: [range],
      vertex: vertexOf(first),
      sharingGroup: sharingGroupOf(own, first),
      load: loadOf(first),
      home: bond === undefined ? undefined : homes.get(bond),
    };
    units.push(unit);
    if (bond !== undefined) bonded.set(bond, unit);
  }
  return units;
}

/** By first task: what it must share a worker with, as a name. */
function bondsOf({ graph, executors }: GroupableTopology['graph']): ReadonlyMap<number, string> {
  const bonds = new Map<number, string>();
  for (const [vertex, { coLocationGroup }] of graph.vertices.entries()) {
    if (coLocationGroup === null) continue;
    for (const [index, { range }] of executors[vertex]!.entries())
      bonds.set(range[0], `${index} ${coLocationGroup}`);
  }
  return bonds;
}

/** Cost: O(hosts). */
function bestHost(unit: Unit, hosts: readonly Host[], machineLoads: ReadonlyMap<string, number>): Host {
  const loadOf = ({ machine }: Host): number => machineLoads.get(machine.id) ?? 0;
  const alike = ({ counts }: { readonly counts: ReadonlyMap<number, number> }): number =>
    counts.get(unit.vertex) ?? 0;
  let best = hosts[0]!;
  for (const host of hosts) {
    const order =
      unit.load > 0
        ? loadOf(host) - loadOf(best) || host.load - best.load || alike(host) - alike(best)
        : alike(host.machine) - alike(best.machine) ||
          alike(host) - alike(best) ||
          host.executors - best.executors;
    if (order < 0) best = host;
  }
  return best;
}
