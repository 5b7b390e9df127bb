/**
 * What workers that weigh the same are told apart by: classes of components are balanced each for itself, executors of one
 * component go to different machines, and components that exchange rows to the same one. None of it costs load or moves.
 */
import {
  type Amounts,
  arrangeGroups,
  type Arrangement,
  EvenAmounts,
  type Ends,
  NearNeighbours,
} from '../../balance/index.js';
import type { ExecutorRange } from '../../assignment.js';
import type { ComponentClass } from '../../component-classes.js';
import type { GroupableTopology } from './slot-groups.js';

export interface ArrangingOptions {
  /** Classes of components whose load is spread over machines each for itself. */
  readonly classes: readonly ComponentClass[];
  /** Executors of one component on as many machines as possible. */
  readonly spreadsComponents: boolean;
  /** Executors that send each other rows on one machine, else in one rack. */
  readonly keepsNeighbours: boolean;
}

export interface WorkerToArrange {
  readonly topology: GroupableTopology;
  readonly executors: readonly ExecutorRange[];
}

export interface ArrangedWorkers {
  readonly assigned: Int32Array;
  readonly exchanges: number;
}

/**
 * Exchanges places of the first workers, as many as `arrangement` has groups.
 *
 * @param workers those, and behind them all others that run, which stay where they are
 * @param fixedMachines by worker behind those: its machine
 * @param rackOf by machine: the number of its rack
 */
export function arrangeWorkers(
  arrangement: Arrangement,
  workers: readonly WorkerToArrange[],
  fixedMachines: readonly number[],
  rackOf: Int32Array,
  { classes, spreadsComponents, keepsNeighbours }: ArrangingOptions,
): ArrangedWorkers {
  const machineOf = Int32Array.from([...arrangement.assigned, ...fixedMachines]);
  const contents = new Contents();
  const touched = touchedMachines(arrangement);
  const isSeen = (index: number): boolean => touched === undefined || touched.has(machineOf[index]!);
  const seenAt = machineOf.map((machine, index) => (isSeen(index) ? machine : -1));
  const objectives = [];
  if (classes.length > 0) {
    const loads = workers.map((worker, index) => (isSeen(index) ? contents.loads(worker, classes) : []));
    objectives.push(new EvenAmounts(rackOf.length, loads, seenAt));
  }
  if (spreadsComponents) {
    const counts = workers.map((worker, index) => (isSeen(index) ? contents.counts(worker) : []));
    objectives.push(new EvenAmounts(rackOf.length, counts, seenAt));
  }
  if (keepsNeighbours) {
    // Between racks everything counts that is in them.
    const seesAll = rackOf.some((rack) => rack !== rackOf[0]);
    const ends = workers.map((worker, index) => (seesAll || isSeen(index) ? contents.ends(worker) : NO_ENDS));
    objectives.push(new NearNeighbours(rackOf, ends, seesAll ? machineOf : seenAt));
  }
  return arrangeGroups(arrangement, objectives);
}

const NO_ENDS: Ends = { outgoing: [], incoming: [] };

/** Machines between which something can be exchanged; undefined: all, since a worker that has not run may go anywhere. */
function touchedMachines({ assigned, current }: Arrangement): ReadonlySet<number> | undefined {
  const touched = new Set<number>();
  for (const [group, machine] of assigned.entries()) {
    if (machine < 0 || machine === current[group]) continue;
    if (current[group]! < 0) return undefined;
    touched.add(machine).add(current[group]!);
  }
  return touched;
}

/** Numbers components and edges of all topologies, and says what workers have of them. */
class Contents {
  readonly #first = new Map<GroupableTopology, { readonly component: number; readonly edge: number }>();
  #components = 0;
  #edges = 0;

  /** Load by class, in order of `classes`. */
  loads({ topology, executors }: WorkerToArrange, classes: readonly ComponentClass[]): Amounts {
    const sums = classes.map(() => 0);
    for (const [first] of executors) {
      const name = topology.graph.classes[topology.vertexOf(first)];
      const index = name === undefined ? -1 : classes.indexOf(name);
      if (index >= 0) sums[index]! += topology.loadOf(first);
    }
    return sums.flatMap((load, index) => (load === 0 ? [] : [[index, load] as const]));
  }

  /** Executors by user component. */
  counts({ topology, executors }: WorkerToArrange): Amounts {
    const { component } = this.#numbersOf(topology);
    const user = topology.graph.sizing.vertices.length;
    return [...byVertex(topology, executors)]
      .filter(([vertex]) => vertex < user)
      .map(([vertex, { count }]) => [component + vertex, count] as const);
  }

  /** As the traffic cost of a plan counts: each executor sends one row along each edge. */
  ends({ topology, executors }: WorkerToArrange): Ends {
    const { edge: first } = this.#numbersOf(topology);
    const here = byVertex(topology, executors);
    const outgoing: (readonly [number, number])[] = [];
    const incoming: (readonly [number, number])[] = [];
    for (const [index, { from, to, grouping }] of topology.graph.routes.entries()) {
      const [senders, receivers] = [here.get(from)?.count ?? 0, here.get(to)?.count ?? 0];
      const staysHere = grouping === 'local-or-shuffle' && receivers > 0;
      if (senders > 0 && !staysHere) outgoing.push([first + index, senders]);
      if (receivers === 0) continue;
      const all = topology.graph.executors[to]!;
      const share =
        grouping === 'all'
          ? receivers
          : grouping === 'global'
            ? Number(here.get(to)!.first === all[0]!.range[0])
            : receivers / all.length;
      if (share > 0) incoming.push([first + index, share]);
    }
    return { outgoing, incoming };
  }

  #numbersOf(topology: GroupableTopology): { readonly component: number; readonly edge: number } {
    let numbers = this.#first.get(topology);
    if (numbers === undefined) {
      numbers = { component: this.#components, edge: this.#edges };
      this.#first.set(topology, numbers);
      this.#components += topology.graph.graph.vertices.length;
      this.#edges += topology.graph.routes.length;
    }
    return numbers;
  }
}

interface Held {
  readonly first: number;
  count: number;
}

/** In order of vertex: how many executors, and the first task of the first one. */
function byVertex(
  { vertexOf }: GroupableTopology,
  executors: readonly ExecutorRange[],
): ReadonlyMap<number, Held> {
  const held = new Map<number, Held>();
  for (const [first] of executors) {
    const vertex = vertexOf(first);
    if (vertex < 0) continue;
    const known = held.get(vertex);
    if (known === undefined) held.set(vertex, { first, count: 1 });
    else known.count++;
  }
  return new Map([...held].sort(([a], [b]) => a - b));
}
