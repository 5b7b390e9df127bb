/**
 * The contents of the slots that a topology gets: executors that have no slot are dealt round robin, component by component. Components to
 * spread are kept back: each supervisor gets one executor of them, and what is left goes to the last slot.
 * Source: Storm's `NodePool.RoundRobinSlotScheduler`.
 */
import type { ExecutorRange } from '../../assignment.js';
import type { WorkingCluster } from '../../cluster.js';
import type { ClusterTopology } from '../../cluster-snapshot.js';
import { compareText } from '../../order.js';
import type { Node } from './nodes.js';

export class SlotDealer {
  readonly #topologyId: string;
  readonly #slots: ExecutorRange[][];
  /** Contents that have been given away. */
  #given = 0;
  /** Executors of components to spread, by component. */
  readonly #spread: ReadonlyMap<string, ExecutorRange[]>;
  /** Components that run on each supervisor. */
  readonly #present = new Map<string, Set<string>>();

  /** `slots` is at least 1. */
  constructor(cluster: WorkingCluster, { id, executors, rules }: ClusterTopology, slots: number) {
    this.#topologyId = id;
    this.#slots = Array.from({ length: slots }, () => []);
    this.#spread = new Map((rules?.spreadComponents ?? []).map((component) => [component, []]));
    const componentOf = new Map(executors.map(({ range, component }) => [range[0], component]));
    for (const worker of cluster.workersOf(id)) {
      for (const [first] of worker.executors)
        this.#presentOn(worker.supervisor).add(componentOf.get(first) ?? '');
    }
    const todo = [...cluster.unassignedExecutors(id)].sort(
      (a, b) => compareText(a.component, b.component) || a.range[0] - b.range[0],
    );
    let next = 0;
    for (const { range, component } of todo) {
      const spread = this.#spread.get(component);
      if (spread !== undefined) {
        spread.push(range);
        continue;
      }
      this.#slots[next]!.push(range);
      next = (next + 1) % slots;
    }
  }

  /** Gives the next content to a supervisor; false: it was the last one. */
  assignTo(node: Node): boolean {
    const content = this.#slots[this.#given];
    if (content === undefined) return false;
    this.#given++;
    const isLast = this.#given === this.#slots.length;
    for (const [component, waiting] of this.#spread) {
      if (isLast) {
        content.push(...waiting.splice(0));
      } else if (waiting.length > 0 && !this.#presentOn(node.id).has(component)) {
        this.#presentOn(node.id).add(component);
        content.push(waiting.shift()!);
      }
    }
    node.assign(this.#topologyId, content);
    return !isLast;
  }

  #presentOn(supervisor: string): Set<string> {
    let components = this.#present.get(supervisor);
    if (components === undefined) this.#present.set(supervisor, (components = new Set()));
    return components;
  }
}
