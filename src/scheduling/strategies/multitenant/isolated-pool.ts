/**
 * The nodes of one user: at most so many, each for one topology alone. A topology that asks for machines of its own gets exactly these;
 * the others of the user give way to it. Source: Storm's `IsolatedPool`.
 */
import type { WorkingCluster } from '../../cluster.js';
import type { ClusterTopology } from '../../cluster-snapshot.js';
import { freeSlotsIn, type Node, usedSlotsIn } from './nodes.js';
import {
  inOrderOfId,
  type NodePool,
  nodesForSlots,
  type Shortfalls,
  sum,
  takeForSlots,
  takeNodes,
} from './pools.js';
import { SlotDealer } from './slot-dealer.js';

interface Member {
  readonly topology: ClusterTopology;
  /** Machines of its own; undefined: it may give way to others of its user. */
  readonly machines: number | undefined;
  readonly nodes: Set<Node>;
}

export class IsolatedPool {
  readonly #cluster: WorkingCluster;
  readonly #allNodes: ReadonlyMap<string, Node>;
  readonly #maxNodes: number;
  readonly #members: Member[] = [];
  #usedNodes = 0;

  constructor(cluster: WorkingCluster, allNodes: ReadonlyMap<string, Node>, maxNodes: number) {
    this.#cluster = cluster;
    this.#allNodes = allNodes;
    this.#maxNodes = maxNodes;
  }

  /** A topology that shares a node with another one goes to the default pool. */
  canAdd(topologyId: string): boolean {
    return this.#nodesWith(topologyId).every(({ topologies }) => topologies <= 1);
  }

  add(topology: ClusterTopology): void {
    const nodes = new Set(this.#nodesWith(topology.id));
    this.#usedNodes += nodes.size;
    const { isolatedMachines } = topology.rules ?? {};
    const machines =
      isolatedMachines === undefined ? undefined : Math.min(topology.executors.length, isolatedMachines);
    this.#members.push({ topology, machines, nodes });
  }

  schedule(others: readonly NodePool[], shortfalls: Shortfalls, failures: Map<string, unknown>): void {
    for (const member of this.#members) {
      const { topology, machines, nodes } = member;
      try {
        const hasWrongNumber = machines !== undefined && nodes.size !== machines;
        if (!this.#cluster.needsScheduling(topology.id) && !hasWrongNumber) continue;
        const slots =
          machines === undefined
            ? this.#slotsForShared(member, others, shortfalls)
            : this.#slotsForIsolated(member, machines, others, shortfalls);
        if (slots > 0) this.#deal(member, slots);
      } catch (error) {
        failures.set(topology.id, error);
      }
    }
  }

  #deal({ topology, nodes }: Member, slots: number): void {
    const dealer = new SlotDealer(this.#cluster, topology, slots);
    for (let node = bestNode(nodes); node !== undefined; node = bestNode(nodes))
      if (!dealer.assignTo(node)) return;
  }

  #slotsForIsolated(
    { topology, nodes }: Member,
    machines: number,
    others: readonly NodePool[],
    shortfalls: Shortfalls,
  ): number {
    const ownAvailable = this.#nodesToTake();
    const othersAvailable = sum(others, ({ nodesAvailable }) => nodesAvailable);
    const needed = machines - nodes.size;
    const room = this.#maxNodes - this.#usedNodes;
    if (needed - ownAvailable > room) {
      this.#exceeded(topology.id, needed - ownAvailable - room, shortfalls);
      return 0;
    }
    // The pool may be full although others have free nodes: then its own topologies give way.
    const fromOthers = Math.min(room, othersAvailable, needed);
    const fromUs = needed - fromOthers;
    if (fromUs > ownAvailable) {
      shortfalls.set(
        topology.id,
        `asks for ${machines} machines of its own, and there are not so many. Add a supervisor.`,
      );
      return 0;
    }
    this.#keep(nodes, takeNodes(fromOthers, others));
    this.#keep(nodes, this.#takeOwn(fromUs));
    const requested = Math.min(topology.executors.length, topology.workers);
    const toUse = Math.min(requested - usedSlotsIn(nodes), freeSlotsIn(nodes));
    if (toUse <= 0)
      shortfalls.set(
        topology.id,
        'has no free slot on its machines: one of them is partly gone. Rebalance it.',
      );
    return toUse;
  }

  #slotsForShared({ topology, nodes }: Member, others: readonly NodePool[], shortfalls: Shortfalls): number {
    const requested = Math.min(topology.executors.length, topology.workers);
    const free = freeSlotsIn(nodes);
    const available = requested > free ? sum(others, ({ slotsAvailable }) => slotsAvailable) : 0;
    const toUse = Math.min(requested - usedSlotsIn(nodes, topology.id), free + available);
    if (toUse <= 0) {
      shortfalls.set(
        topology.id,
        'needs a slot, and neither its pool nor the others have one. Add a supervisor.',
      );
      return 0;
    }
    const newNodes = nodesForSlots(toUse - free, others);
    if (newNodes + this.#usedNodes > this.#maxNodes) {
      this.#exceeded(topology.id, newNodes + this.#usedNodes - this.#maxNodes, shortfalls);
      return 0;
    }
    this.#keep(nodes, takeForSlots(toUse - free, others));
    return toUse;
  }

  #exceeded(topologyId: string, excess: number, shortfalls: Shortfalls): void {
    shortfalls.set(
      topologyId,
      `needs ${excess} more ${excess === 1 ? 'machine' : 'machines'} than the ${this.#maxNodes} of its user's pool. Raise scheduling.user-pools.`,
    );
  }

  #keep(nodes: Set<Node>, taken: readonly Node[]): void {
    for (const node of taken) nodes.add(node);
    this.#usedNodes += taken.length;
  }

  #nodesToTake(): number {
    return this.#members.reduce(
      (total, { machines, nodes }) => total + (machines === undefined ? nodes.size : 0),
      0,
    );
  }

  /** Nodes of topologies of the same user that may give way. */
  #takeOwn(count: number): readonly Node[] {
    const taken: Node[] = [];
    for (const { machines, nodes } of this.#members) {
      if (machines !== undefined) continue;
      for (const node of inOrderOfId(nodes)) {
        if (taken.length >= count) break;
        nodes.delete(node);
        node.freeAll();
        taken.push(node);
      }
    }
    this.#usedNodes -= taken.length;
    return taken;
  }

  #nodesWith(topologyId: string): readonly Node[] {
    const ids = new Set(this.#cluster.workersOf(topologyId).map(({ supervisor }) => supervisor));
    return [...ids].map((id) => this.#allNodes.get(id)).filter((node) => node !== undefined);
  }
}

/** Of those with a free slot: fewest used slots, then most free ones, then by id. */
function bestNode(nodes: Iterable<Node>): Node | undefined {
  const open = inOrderOfId(nodes).filter(({ freeSlots }) => freeSlots > 0);
  return open.reduce<Node | undefined>((best, node) => {
    if (best === undefined || node.usedSlots < best.usedSlots) return node;
    return node.usedSlots === best.usedSlots && node.freeSlots > best.freeSlots ? node : best;
  }, undefined);
}
