/**
 * Supervisors as the multitenant strategy sees them: free slots, and slots by the topology that runs there. Changes go through to
 * the working cluster. Source: Storm's `multitenant.Node`.
 */
import type { ExecutorRange } from '../../assignment.js';
import type { WorkingCluster } from '../../cluster.js';
import type { Slot } from '../../cluster-snapshot.js';

export class Node {
  readonly id: string;
  /** Registered, and its host is not blacklisted. */
  readonly isAlive: boolean;
  readonly #cluster: WorkingCluster;
  /** Ports, ascending. */
  #free: number[];
  readonly #used = new Map<string, Set<number>>();

  constructor(cluster: WorkingCluster, id: string, isAlive: boolean) {
    this.#cluster = cluster;
    this.id = id;
    this.isAlive = isAlive;
    this.#free = isAlive ? [...cluster.assignablePorts(id)] : [];
  }

  get freeSlots(): number {
    return this.#free.length;
  }

  get usedSlots(): number {
    let used = 0;
    for (const ports of this.#used.values()) used += ports.size;
    return used;
  }

  get slots(): number {
    return this.freeSlots + this.usedSlots;
  }

  get isUnused(): boolean {
    return this.#used.size === 0;
  }

  get topologies(): number {
    return this.#used.size;
  }

  usedBy(topologyId: string): number {
    return this.#used.get(topologyId)?.size ?? 0;
  }

  /** Notes what runs already. A worker on a port that a live supervisor does not offer any more is stopped. */
  holds(topologyId: string, port: number): void {
    const place = this.#free.indexOf(port);
    if (this.isAlive && place < 0) {
      this.#cluster.freeSlot({ supervisor: this.id, port });
      return;
    }
    if (place >= 0) this.#free.splice(place, 1);
    this.#note(topologyId, port);
  }

  /** Starts a worker in the free slot with the lowest port; without executors nothing happens. */
  assign(topologyId: string, executors: readonly ExecutorRange[]): void {
    if (executors.length === 0) return;
    const port = this.#free.shift();
    if (port === undefined) throw new Error(`Supervisor ${this.id} has no free slot for ${topologyId}.`);
    this.#cluster.assign(this.#slot(port), topologyId, executors);
    this.#note(topologyId, port);
  }

  freeTopology(topologyId: string): void {
    const ports = this.#used.get(topologyId);
    if (ports === undefined) return;
    this.#used.delete(topologyId);
    for (const port of ports) this.#cluster.freeSlot(this.#slot(port));
    if (this.isAlive) this.#free = [...this.#free, ...ports].sort((a, b) => a - b);
  }

  freeAll(): void {
    for (const id of [...this.#used.keys()]) this.freeTopology(id);
  }

  #note(topologyId: string, port: number): void {
    const ports = this.#used.get(topologyId);
    if (ports === undefined) this.#used.set(topologyId, new Set([port]));
    else ports.add(port);
  }

  #slot(port: number): Slot {
    return { supervisor: this.id, port };
  }
}

/** All supervisors, registered or only named by a placement, by id, ascending. */
export function nodesOf(cluster: WorkingCluster): ReadonlyMap<string, Node> {
  const ids = new Set(cluster.supervisorIds());
  const placed = cluster.topologyIds().map((id) => [id, cluster.workersOf(id)] as const);
  const away = placed.flatMap(([, workers]) => workers.map(({ supervisor }) => supervisor));
  const known = [...new Set([...ids, ...away])].sort();
  const nodes = new Map(
    known.map((id) => [id, new Node(cluster, id, ids.has(id) && !cluster.isBlacklisted(id))] as const),
  );
  for (const [id, workers] of placed)
    for (const { supervisor, port } of workers) nodes.get(supervisor)?.holds(id, port);
  return nodes;
}

/** Fewest used slots first, ties in the order given. */
export function emptiestFirst(nodes: Iterable<Node>): Node[] {
  return [...nodes].sort((a, b) => a.usedSlots - b.usedSlots);
}

export function freeSlotsIn(nodes: Iterable<Node>): number {
  let slots = 0;
  for (const node of nodes) if (node.isAlive) slots += node.freeSlots;
  return slots;
}

export function slotsIn(nodes: Iterable<Node>): number {
  let slots = 0;
  for (const node of nodes) if (node.isAlive) slots += node.slots;
  return slots;
}

/** Slots in use, by one topology or, without an id, by all. */
export function usedSlotsIn(nodes: Iterable<Node>, topologyId?: string): number {
  let slots = 0;
  for (const node of nodes) slots += topologyId === undefined ? node.usedSlots : node.usedBy(topologyId);
  return slots;
}
