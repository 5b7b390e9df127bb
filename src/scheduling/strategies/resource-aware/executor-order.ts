/**
 * The order in which executors of a topology are placed: by the number of their connections, along the edges of the
 * graph, or the most constrained first. Executors of a component follow each other in order of first task; executors of
 * system components come after all others, ackers last.
 * Source: Storm's sorters of executors; where those follow hash order, components go in order of id.
 */
import { MinimumHeap } from '../../minimum-heap.js';
import { NONE } from './machines.js';
import type { TopologyRequest } from './topology-request.js';

/** Who sends to whom, by component; each list ascending, without repetition. */
interface Graph {
  /** Is it a component of the user's? */
  readonly isUser: readonly boolean[];
  readonly children: readonly (readonly number[])[];
  readonly neighbours: readonly (readonly number[])[];
  /** For each component its children that it reaches by a shuffle grouping. */
  readonly shuffled: readonly ReadonlySet<number>[];
}

/** Executors of each component that still have to be put in order, first one first. */
class Waiting {
  readonly #lists: readonly number[][];
  readonly #next: Int32Array;

  constructor(request: TopologyRequest, executors: readonly number[]) {
    this.#lists = request.components.map(() => []);
    for (const executor of executors) this.#lists[request.componentOf[executor]!]!.push(executor);
    this.#next = new Int32Array(this.#lists.length);
  }

  count(component: number): number {
    return this.#lists[component]!.length - this.#next[component]!;
  }

  take(component: number): number {
    return this.#lists[component]![this.#next[component]!++]!;
  }

  takeAll(component: number, into: number[]): void {
    while (this.count(component) > 0) into.push(this.take(component));
  }
}

export type ExecutorOrder = 'connections' | 'proximity' | 'constraints';

/** How constrained a component is; higher goes first. */
export type Severity = (component: number) => number;

/** All of `executors` (ascending), ackers last. Cost: O(E x degree of the graph). */
export function orderExecutors(
  request: TopologyRequest,
  executors: readonly number[],
  order: ExecutorOrder,
  severity: Severity,
): number[] {
  const waiting = new Waiting(request, executors);
  const ordered: number[] = [];
  if (order === 'constraints') {
    for (const component of bySeverity(request, severity)) waiting.takeAll(component, ordered);
  } else {
    const graph = graphOf(request);
    if (order === 'connections') byConnections(request, graph, waiting, ordered);
    else byProximity(graph, waiting, ordered);
  }
  for (const executor of executors) {
    const component = request.componentOf[executor]!;
    if (component !== request.acker && waiting.count(component) > 0) ordered.push(waiting.take(component));
  }
  if (request.acker !== NONE) waiting.takeAll(request.acker, ordered);
  return ordered;
}

function graphOf({ components, descriptions, acker }: TopologyRequest): Graph {
  const isUser = descriptions.map(
    (one, index) => index !== acker && one !== undefined && one.kind !== 'system',
  );
  const indexOf = new Map(components.map((id, index) => [id, index]));
  const children = components.map(() => new Set<number>());
  const neighbours = components.map(() => new Set<number>());
  const shuffled = components.map(() => new Set<number>());
  descriptions.forEach((component, index) => {
    if (component === undefined || !isUser[index]) return;
    for (const { from, grouping } of component.inputs ?? []) {
      const parent = indexOf.get(from);
      if (parent === undefined || !isUser[parent]) continue;
      children[parent]!.add(index);
      neighbours[parent]!.add(index);
      neighbours[index]!.add(parent);
      if (grouping === 'shuffle' || grouping === 'local-or-shuffle') shuffled[parent]!.add(index);
    }
  });
  const ascending = (sets: readonly Set<number>[]): number[][] =>
    sets.map((set) => [...set].sort((a, b) => a - b));
  return { isUser, children: ascending(children), neighbours: ascending(neighbours), shuffled };
}

/** Most connected components first; with each executor go one of each neighbour, the least connected first. */
function byConnections({ size }: TopologyRequest, graph: Graph, waiting: Waiting, ordered: number[]): void {
  const { isUser, neighbours } = graph;
  const connections = neighbours.map((list, component) =>
    list.reduce((sum, other) => sum + size[other]! * size[component]!, 0),
  );
  const users = [...isUser.keys()].filter((component) => isUser[component]);
  users.sort((a, b) => connections[b]! - connections[a]! || a - b);
  for (const component of users) {
    const connectionsTo = (other: number): number => size[other]! * size[component]!;
    const around = neighbours[component]!.toSorted((a, b) => connectionsTo(a) - connectionsTo(b) || a - b);
    let open = [component, ...around];
    for (;;) {
      open = open.filter((one) => waiting.count(one) > 0);
      if (open.length === 0) break;
      // A component that is its own neighbour stands twice in the list and may run out in between.
      for (const one of open) if (waiting.count(one) > 0) ordered.push(waiting.take(one));
    }
  }
}

/** Sources first; each executor is followed by its share of the executors that it sends to, and they by theirs. */
function byProximity(graph: Graph, waiting: Waiting, ordered: number[]): void {
  for (const component of topologicalOrder(graph)) {
    for (let times = waiting.count(component); times > 0; times--) follow(component, graph, waiting, ordered);
  }
}

/** Where taking an executor and its followers stands: no recursion, since in a cycle it is as deep as there are executors. */
interface Frame {
  readonly component: number;
  /** Executors of the component that waited before this one was taken. */
  readonly waited: number;
  readonly children: readonly number[];
  /** Next child, and how many of it are still to be taken. */
  child: number;
  times: number;
}

function follow(start: number, graph: Graph, waiting: Waiting, ordered: number[]): void {
  const stack: Frame[] = [];
  const enter = (component: number): void => {
    const waited = waiting.count(component);
    if (waited === 0) return;
    ordered.push(waiting.take(component));
    stack.push({ component, waited, children: followers(component, graph), child: -1, times: 0 });
  };
  enter(start);
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    if (frame.times > 0) {
      frame.times--;
      enter(frame.children[frame.child]!);
      continue;
    }
    frame.child++;
    const child = frame.children[frame.child];
    if (child === undefined) {
      stack.pop();
      continue;
    }
    const left = waiting.count(child);
    const share = graph.shuffled[frame.component]!.has(child) ? Math.floor(left / frame.waited) : 1;
    frame.times = left === 0 ? 0 : Math.max(1, share);
  }
}

/** Children by other groupings first. */
function followers(component: number, { children, shuffled }: Graph): readonly number[] {
  const apart = shuffled[component]!;
  if (apart.size === 0) return children[component]!;
  return children[component]!.toSorted((a, b) => Number(apart.has(a)) - Number(apart.has(b)) || a - b);
}

/** Of those whose sources are all done always the first by id; components of cycles follow at the end. */
function topologicalOrder({ isUser, children }: Graph): number[] {
  const sources = new Int32Array(children.length);
  for (const list of children) for (const child of list) sources[child]!++;
  const ready = new MinimumHeap();
  children.forEach((_, component) => {
    if (isUser[component] && sources[component] === 0) ready.push(component);
  });
  const ordered: number[] = [];
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    ordered.push(next);
    for (const child of children[next]!) if (--sources[child]! === 0) ready.push(child);
  }
  children.forEach((_, component) => {
    if (isUser[component] && sources[component]! > 0) ordered.push(component);
  });
  return ordered;
}

/** Most constrained first; ties by id, descending. Ackers are left out. */
function bySeverity({ components, acker }: TopologyRequest, severity: Severity): number[] {
  const all = [...components.keys()].filter((component) => component !== acker);
  return all.sort((a, b) => severity(b) - severity(a) || b - a);
}
