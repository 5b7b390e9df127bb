/** Topologies with executors that have no slot, or with a rebalance that could not be carried out as it was asked for. */
export class WaitingTopologies {
  /** Executors without a slot, by topology. */
  readonly #lacks = new Map<string, number>();
  #total = 0;

  get isAny(): boolean {
    return this.#lacks.size > 0;
  }

  set(topologyId: string, unplacedExecutors: number): void {
    this.#total += unplacedExecutors - (this.#lacks.get(topologyId) ?? 0);
    this.#lacks.set(topologyId, unplacedExecutors);
  }

  delete(topologyId: string): void {
    this.#total -= this.#lacks.get(topologyId) ?? 0;
    this.#lacks.delete(topologyId);
  }

  clear(): void {
    this.#lacks.clear();
    this.#total = 0;
  }

  /** Executors that lack a slot in topologies other than these. Cost: O(these). */
  lackingBeside(topologyIds: Iterable<string>): number {
    let count = this.#total;
    for (const id of topologyIds) count -= this.#lacks.get(id) ?? 0;
    return count;
  }
}
