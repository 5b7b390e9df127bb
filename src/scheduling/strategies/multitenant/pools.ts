/**
 * Where nodes come from: a pool that others may take whole nodes from, the pool of nodes on which nothing runs, and the pool that all
 * share who have none of their own. Source: Storm's `NodePool`, `FreePool` and `DefaultPool`.
 */
import type { WorkingCluster } from '../../cluster.js';
import type { ClusterTopology } from '../../cluster-snapshot.js';
import { emptiestFirst, freeSlotsIn, type Node, slotsIn, usedSlotsIn } from './nodes.js';
import { SlotDealer } from './slot-dealer.js';

export interface NodePool {
  readonly nodesAvailable: number;
  readonly slotsAvailable: number;
  /** Nodes that would be taken for so many slots, and the slots of these. */
  countForSlots(slots: number): { readonly nodes: number; readonly slots: number };
  /** Takes nodes until they have so many slots. What ran there is stopped. */
  takeForSlots(slots: number): readonly Node[];
  takeNodes(count: number): readonly Node[];
}

/** A sentence on why a topology is not placed as it wants to be, without its name; undefined: it is. */
export type Shortfalls = Map<string, string>;

/** Nodes on which nothing runs. */
export class FreePool implements NodePool {
  #nodes: Node[];

  constructor(nodes: Iterable<Node>) {
    this.#nodes = [...nodes].filter((node) => node.isUnused && node.isAlive);
  }

  get nodesAvailable(): number {
    return this.#nodes.length;
  }

  get slotsAvailable(): number {
    return freeSlotsIn(this.#nodes);
  }

  countForSlots(slots: number): { readonly nodes: number; readonly slots: number } {
    return count(nodesFor(slots, this.#nodes));
  }

  takeForSlots(slots: number): readonly Node[] {
    return this.#take(nodesFor(slots, this.#nodes).length);
  }

  takeNodes(count: number): readonly Node[] {
    return this.#take(Math.max(0, count));
  }

  #take(count: number): readonly Node[] {
    const taken = this.#nodes.slice(0, count);
    this.#nodes = this.#nodes.slice(count);
    return taken;
  }
}

/** Nodes of all who have no pool of their own. */
export class DefaultPool implements NodePool {
  readonly #cluster: WorkingCluster;
  readonly #nodes = new Set<Node>();
  readonly #topologies: ClusterTopology[] = [];
  readonly #allNodes: ReadonlyMap<string, Node>;

  constructor(cluster: WorkingCluster, allNodes: ReadonlyMap<string, Node>) {
    this.#cluster = cluster;
    this.#allNodes = allNodes;
  }

  add(topology: ClusterTopology): void {
    this.#topologies.push(topology);
    for (const { supervisor } of this.#cluster.workersOf(topology.id)) {
      const node = this.#allNodes.get(supervisor);
      if (node !== undefined) this.#nodes.add(node);
    }
  }

  get nodesAvailable(): number {
    return this.#alive().length;
  }

  get slotsAvailable(): number {
    return slotsIn(this.#nodes);
  }

  countForSlots(slots: number): { readonly nodes: number; readonly slots: number } {
    return count(nodesFor(slots, this.#alive()));
  }

  takeForSlots(slots: number): readonly Node[] {
    return this.#take(nodesFor(slots, this.#alive()));
  }

  takeNodes(count: number): readonly Node[] {
    return this.#take(this.#alive().slice(0, Math.max(0, count)));
  }

  /** Places its topologies on its own nodes and on what others can spare. */
  schedule(others: readonly NodePool[], shortfalls: Shortfalls, failures: Map<string, unknown>): void {
    for (const topology of this.#topologies) {
      try {
        if (this.#cluster.needsScheduling(topology.id)) this.#place(topology, others, shortfalls);
      } catch (error) {
        failures.set(topology.id, error);
      }
    }
  }

  #place(topology: ClusterTopology, others: readonly NodePool[], shortfalls: Shortfalls): void {
    const { id } = topology;
    const requested = Math.min(topology.executors.length, topology.workers);
    const used = usedSlotsIn(this.#nodes, id);
    const free = freeSlotsIn(this.#nodes);
    const available = requested > free ? sum(others, ({ slotsAvailable }) => slotsAvailable) : 0;
    let toUse = Math.min(requested - used, free + available);
    if (toUse <= 0) {
      shortfalls.set(
        id,
        `has ${used} of ${requested} workers that it can use, and the default pool has no free slot.`,
      );
      return;
    }
    if (toUse > free) for (const node of takeForSlots(toUse - free, others)) this.#nodes.add(node);
    if (!this.#cluster.hasUnassigned(id)) {
      // It runs, with fewer workers than it wants: it is dealt anew over the slots that are free now.
      for (const node of this.#nodes) node.freeTopology(id);
      toUse = Math.min(requested, freeSlotsIn(this.#nodes));
    }
    if (toUse <= 0) return;
    const dealer = new SlotDealer(this.#cluster, topology, toUse);
    for (const node of inOrderOfId(this.#nodes)) {
      while (node.isAlive && node.freeSlots > 0) if (!dealer.assignTo(node)) return;
    }
    shortfalls.set(id, 'found fewer free slots than its pool had counted.');
  }

  /** Emptiest first. */
  #alive(): readonly Node[] {
    return emptiestFirst(inOrderOfId(this.#nodes)).filter(({ isAlive }) => isAlive);
  }

  #take(nodes: readonly Node[]): readonly Node[] {
    for (const node of nodes) {
      node.freeAll();
      this.#nodes.delete(node);
    }
    return nodes;
  }
}

/** Nodes out of several pools, one after the other, until they have so many free slots. */
export function takeForSlots(slots: number, pools: readonly NodePool[]): readonly Node[] {
  const taken: Node[] = [];
  let needed = slots;
  for (const pool of pools) {
    const got = pool.takeForSlots(needed);
    taken.push(...got);
    needed -= freeSlotsIn(got);
    if (needed <= 0) break;
  }
  return taken;
}

export function takeNodes(count: number, pools: readonly NodePool[]): readonly Node[] {
  const taken: Node[] = [];
  for (const pool of pools) {
    if (taken.length >= count) break;
    taken.push(...pool.takeNodes(count - taken.length));
  }
  return taken;
}

/** How many nodes `takeForSlots` would take. */
export function nodesForSlots(slots: number, pools: readonly NodePool[]): number {
  let nodes = 0;
  let needed = slots;
  for (const pool of pools) {
    const found = pool.countForSlots(needed);
    nodes += found.nodes;
    needed -= found.slots;
    if (needed <= 0) break;
  }
  return nodes;
}

export function sum(pools: readonly NodePool[], of: (pool: NodePool) => number): number {
  return pools.reduce((total, pool) => total + of(pool), 0);
}

export function inOrderOfId(nodes: Iterable<Node>): Node[] {
  return [...nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The first nodes that have so many slots together. */
export function nodesFor(slots: number, nodes: readonly Node[]): readonly Node[] {
  let needed = slots;
  let taken = 0;
  while (needed > 0 && taken < nodes.length) needed -= nodes[taken++]!.slots;
  return nodes.slice(0, taken);
}

function count(nodes: readonly Node[]): { readonly nodes: number; readonly slots: number } {
  return { nodes: nodes.length, slots: nodes.reduce((total, { slots }) => total + slots, 0) };
}
