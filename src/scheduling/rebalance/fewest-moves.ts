/**
 * Deals executors to slots that they are partly in already: every slot gets as many as any other, give or take one, and
 * as few tasks as possible change their slot for that. Deterministic.
 *
 * The problem is a transport problem: an executor costs the tasks that leave the slot they are in. It is solved by successive
 * shortest paths in the graph of slots. A path that ends in a slot with room moves one executor along each of its edges;
 * mostly there is one edge. All edges to slots without a task of the executor cost the same, so they go through one node.
 */

/** An executor and where its tasks are: pairs of slot index and number of tasks, for slots that may be used only. */
export interface ExecutorAtHome {
  readonly component: string;
  readonly homes: readonly (readonly [slot: number, tasks: number])[];
}

/** Beyond this much work executors with tasks in several slots are moved like any others, which may cost more tasks. */
const MAX_WORK = 100_000_000;

/**
 * The slot (from 0) of each executor, in the order given. With `slots` slots and E executors each gets ⌊E/slots⌋ or one
 * more. Among executors that are equally cheap to move, those go whose component the slot has most of.
 *
 * Cost: O(moves · (slots + executors with several homes)) after O(E log E).
 */
export function dealWithFewestMoves(executors: readonly ExecutorAtHome[], slots: number): number[] {
  const deal = new Deal(executors, slots);
  while (deal.moveOne());
  return deal.slotOf;
}

/** Executors in one place, by the tasks that would leave it with them, then by component. */
type Occupants = Map<number, Map<string, number[]>>;

type Edge =
  | { readonly kind: 'cheapest'; readonly from: number }
  | { readonly kind: 'executor'; readonly from: number; readonly executor: number }
  | { readonly kind: 'extra'; readonly from: number };

class Deal {
  readonly slotOf: number[];
  readonly #executors: readonly ExecutorAtHome[];
  readonly #slots: number;
  readonly #base: number;
  /** How many more slots get one executor above the base. */
  #extrasLeft: number;
  readonly #hasExtra: boolean[];
  readonly #counts: number[];
  readonly #occupants: Occupants[];
  /** Executors with tasks in several slots, by the slot that they are in now. */
  readonly #severalHomes: Set<number>[];
  readonly #followsSeveral: boolean;
  /** By slot, then component. The last place is that of executors without a slot. */
  readonly #components: Map<string, number>[];

  constructor(executors: readonly ExecutorAtHome[], slots: number) {
    this.#executors = executors;
    this.#slots = slots;
    this.#base = Math.floor(executors.length / slots);
    this.#extrasLeft = executors.length - this.#base * slots;
    this.#hasExtra = new Array<boolean>(slots).fill(false);
    this.#counts = new Array<number>(slots + 1).fill(0);
    const places = Array.from({ length: slots + 1 }, (_, place) => place);
    this.#occupants = places.map((): Occupants => new Map());
    this.#severalHomes = places.map(() => new Set<number>());
    this.#components = places.map(() => new Map<string, number>());
    this.slotOf = executors.map(({ homes }) => bestHome(homes, slots));
    const several = executors.filter(({ homes }) => homes.length > 1).length;
    this.#followsSeveral = several * executors.length <= MAX_WORK;
    // Lists are taken from their ends: of what is outside the first ones, of what is in a slot the last ones go.
    const inOrder = executors.map((_, executor) => executor);
    for (const executor of inOrder.filter((one) => this.slotOf[one] !== slots)) {
      this.#enter(executor, this.slotOf[executor]!);
    }
    for (const executor of inOrder.reverse())
      if (this.slotOf[executor] === slots) this.#enter(executor, slots);
  }

  /** Moves what is cheapest to move from where there is too much to where there is room; false if all is balanced. */
  moveOne(): boolean {
    const found = this.#cheapestPath();
    if (found === undefined) return false;
    for (const { edge, to } of found) {
      switch (edge.kind) {
        case 'extra':
          // From a slot: it may have one more from now on. To a slot: it may not any longer.
          if (to === this.#extraNode) this.#hasExtra[edge.from] = true;
          else this.#hasExtra[to] = false;
          break;
        case 'executor':
          this.#move(edge.executor, to);
          break;
        case 'cheapest':
          this.#move(this.#cheapestOf(edge.from, to), to);
          break;
      }
    }
    if (found.at(-1)!.to === this.#extraNode) this.#extrasLeft--;
    return true;
  }

  /** Where executors without a slot are. */
  get #outside(): number {
    return this.#slots;
  }

  /** Stands for "any slot" on the way of an executor that has no task where it goes. */
  get #anyNode(): number {
    return this.#slots + 1;
  }

  /** Hands out the right to one executor above the base. */
  get #extraNode(): number {
    return this.#slots + 2;
  }

  #excess(slot: number): number {
    return this.#counts[slot]! - this.#base - (this.#hasExtra[slot]! ? 1 : 0);
  }

  /** Shortest path (Bellman and Ford, with a queue) from a place with too much to one with room; in order of its edges. */
  #cheapestPath(): { readonly edge: Edge; readonly to: number }[] | undefined {
    const nodes = this.#slots + 3;
    const distance = new Array<number>(nodes).fill(Infinity);
    const edges = new Array<Edge | undefined>(nodes).fill(undefined);
    const queue: number[] = [];
    const isQueued = new Array<boolean>(nodes).fill(false);
    const relax = (to: number, cost: number, edge: Edge | undefined): void => {
      if (cost >= distance[to]!) return;
      distance[to] = cost;
      edges[to] = edge;
      if (!isQueued[to]!) queue.push(to);
      isQueued[to] = true;
    };
    if (this.#counts[this.#outside]! > 0) relax(this.#outside, 0, undefined);
    for (let slot = 0; slot < this.#slots; slot++) if (this.#excess(slot) > 0) relax(slot, 0, undefined);
    for (let at = 0; at < queue.length; at++) {
      const node = queue[at]!;
      isQueued[node] = false;
      this.#relaxFrom(node, distance[node]!, relax, edges);
    }
    const end = this.#nearestRoom(distance);
    return end === undefined ? undefined : pathTo(end, edges);
  }

  #relaxFrom(
    node: number,
    distance: number,
    relax: (to: number, cost: number, edge: Edge) => void,
    edges: readonly (Edge | undefined)[],
  ): void {
    if (node === this.#anyNode) {
      // The edge into this node says whose executor it is.
      const edge = edges[node]!;
      for (let slot = 0; slot < this.#slots; slot++) relax(slot, distance, edge);
    } else if (node === this.#extraNode) {
      for (let slot = 0; slot < this.#slots; slot++) {
        if (this.#hasExtra[slot]!) relax(slot, distance, { kind: 'extra', from: node });
      }
    } else {
      const least = smallestKey(this.#occupants[node]!);
      if (least !== undefined) relax(this.#anyNode, distance + least, { kind: 'cheapest', from: node });
      for (const executor of this.#severalHomes[node]!) {
        const here = tasksIn(this.#executors[executor]!, node);
        for (const [slot, tasks] of this.#executors[executor]!.homes) {
          if (slot !== node) relax(slot, distance + here - tasks, { kind: 'executor', from: node, executor });
        }
      }
      if (node < this.#slots && !this.#hasExtra[node]!) {
        relax(this.#extraNode, distance, { kind: 'extra', from: node });
      }
    }
  }

  /** Of equally near ones a right to one more before anything moves, then the slot that has least. */
  #nearestRoom(distance: readonly number[]): number | undefined {
    let nearest: number | undefined = this.#extrasLeft > 0 ? this.#extraNode : undefined;
    let least = nearest === undefined ? Infinity : distance[nearest]!;
    if (least === Infinity) nearest = undefined;
    for (let slot = 0; slot < this.#slots; slot++) {
      if (this.#excess(slot) >= 0) continue;
      const isNearer = distance[slot]! < least;
      const isEmptier =
        distance[slot] === least &&
        least < Infinity &&
        nearest !== undefined &&
        nearest < this.#slots &&
        this.#counts[slot]! < this.#counts[nearest]!;
      if (!isNearer && !isEmptier) continue;
      nearest = slot;
      least = distance[slot]!;
    }
    return nearest;
  }

  /** The executor to take from a place, of those that cost least: of the component that it has most of beyond the target. */
  #cheapestOf(place: number, target: number): number {
    const occupants = this.#occupants[place]!;
    const byComponent = occupants.get(smallestKey(occupants)!)!;
    let chosen: readonly number[] | undefined;
    let mostSurplus = -Infinity;
    for (const [component, list] of byComponent) {
      const there = this.#components[target]!.get(component) ?? 0;
      const surplus = (this.#components[place]!.get(component) ?? 0) - there;
      if (surplus <= mostSurplus) continue;
      mostSurplus = surplus;
      chosen = list;
    }
    return chosen!.at(-1)!;
  }

  #move(executor: number, to: number): void {
    this.#leave(executor, this.slotOf[executor]!);
    this.slotOf[executor] = to;
    this.#enter(executor, to);
  }

  #enter(executor: number, place: number): void {
    const { component, homes } = this.#executors[executor]!;
    const tasks = tasksIn(this.#executors[executor]!, place);
    let byComponent = this.#occupants[place]!.get(tasks);
    if (byComponent === undefined)
      this.#occupants[place]!.set(tasks, (byComponent = new Map<string, number[]>()));
    const list = byComponent.get(component);
    if (list === undefined) byComponent.set(component, [executor]);
    else list.push(executor);
    if (homes.length > 1 && this.#followsSeveral) this.#severalHomes[place]!.add(executor);
    this.#counts[place]!++;
    this.#components[place]!.set(component, (this.#components[place]!.get(component) ?? 0) + 1);
  }

  #leave(executor: number, place: number): void {
    const { component } = this.#executors[executor]!;
    const tasks = tasksIn(this.#executors[executor]!, place);
    const byComponent = this.#occupants[place]!.get(tasks)!;
    const list = byComponent.get(component)!;
    list.splice(list.indexOf(executor), 1);
    if (list.length === 0) byComponent.delete(component);
    if (byComponent.size === 0) this.#occupants[place]!.delete(tasks);
    this.#severalHomes[place]!.delete(executor);
    this.#counts[place]!--;
    this.#components[place]!.set(component, this.#components[place]!.get(component)! - 1);
  }
}

/** The edges of the path that ends at a node, first one first. */
function pathTo(
  end: number,
  edges: readonly (Edge | undefined)[],
): { readonly edge: Edge; readonly to: number }[] {
  const path: { readonly edge: Edge; readonly to: number }[] = [];
  let node = end;
  for (let edge = edges[node]; edge !== undefined; edge = edges[node]) {
    path.push({ edge, to: node });
    node = edge.from;
  }
  return path.reverse();
}

/** The slot with most tasks of the executor, the first of equals; `otherwise` where it has none. */
function bestHome(homes: ExecutorAtHome['homes'], otherwise: number): number {
  let best = otherwise;
  let most = 0;
  for (const [slot, tasks] of homes) {
    if (tasks < most || (tasks === most && slot > best)) continue;
    best = slot;
    most = tasks;
  }
  return best;
}

function tasksIn({ homes }: ExecutorAtHome, slot: number): number {
  for (const [home, tasks] of homes) if (home === slot) return tasks;
  return 0;
}

function smallestKey(map: ReadonlyMap<number, unknown>): number | undefined {
  let smallest: number | undefined;
  for (const key of map.keys()) if (smallest === undefined || key < smallest) smallest = key;
  return smallest;
}
