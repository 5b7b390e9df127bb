/**
 * What follows from the shape of a graph: the order of subscriptions, stages, cycles, what cannot be reached. Everything
 * here is linear in components and subscriptions, and uses no recursion, so that a long chain is no danger.
 */
import type { ComponentDescription, SubscriptionDescription, TopologyDescription } from './description.js';

/** A subscription with its number in the whole topology. */
export interface ListedSubscription extends SubscriptionDescription {
  /** Number of the subscription in the topology, from 0; the same for everyone who has the same description. */
  readonly index: number;
  /** Id of the bolt that subscribes. */
  readonly target: string;
  /** Place among the subscriptions of that bolt, from 0. */
  readonly place: number;
}

/** A warning names as many components of a cycle. */
const MAX_NAMED_MEMBERS = 10;

type Components = Pick<TopologyDescription, 'components'>;

/** All subscriptions: components in declared order, of each its subscriptions in declared order. */
export function listSubscriptions(description: Components): readonly ListedSubscription[] {
  const listed: ListedSubscription[] = [];
  for (const component of description.components) {
    for (const [place, subscription] of component.subscriptions.entries()) {
      listed.push({ ...subscription, index: listed.length, target: component.id, place });
    }
  }
  return listed;
}

/**
 * Bolts in stages: each bolt comes after all bolts that it gets rows from, as early as that allows; the bolts of a cycle
 * share a stage. Spouts are in none.
 */
export function graphStages(description: Components): readonly (readonly string[])[] {
  const { components } = description;
  const sources = sourcesOf(components);
  const groupOf = new Int32Array(components.length);
  const stageOfGroup: number[] = [];
  const stages: string[][] = [];
  // Groups come sources first, so the stages of all earlier groups are known.
  for (const [group, members] of stronglyConnected(sources).entries()) {
    let stage = 0;
    for (const member of members) groupOf[member] = group;
    for (const member of members) {
      for (const source of sources[member]!) {
        if (groupOf[source] !== group && components[source]!.kind === 'bolt') {
          stage = Math.max(stage, stageOfGroup[groupOf[source]!]! + 1);
        }
      }
    }
    stageOfGroup[group] = stage;
  }
  for (const [index, component] of components.entries()) {
    if (component.kind === 'spout') continue;
    const stage = stageOfGroup[groupOf[index]!]!;
    while (stages.length <= stage) stages.push([]);
    stages[stage]!.push(component.id);
  }
  return stages;
}

/**
 * Components that are part of a cycle, with the number of their cycle (from 0, in declared order of its first component).
 * Cycles that share a component are one.
 */
export function cycleComponents(description: Components): ReadonlyMap<string, number> {
  const { components } = description;
  const sources = sourcesOf(components);
  const groupOf = new Map<number, number>();
  for (const [group, members] of stronglyConnected(sources).entries()) {
    const [only] = members;
    if (members.length === 1 && !sources[only!]!.includes(only!)) continue;
    for (const member of members) groupOf.set(member, group);
  }
  const numbers = new Map<number, number>();
  const cycles = new Map<string, number>();
  for (const [index, { id }] of components.entries()) {
    const group = groupOf.get(index);
    if (group === undefined) continue;
    const number = numbers.get(group) ?? numbers.size;
    numbers.set(group, number);
    cycles.set(id, number);
  }
  return cycles;
}

/** Bolts that no row of any spout can reach, in declared order. */
export function unreachableComponents(description: Components): readonly string[] {
  const { components } = description;
  const targets: number[][] = components.map(() => []);
  for (const [target, sources] of sourcesOf(components).entries()) {
    for (const source of sources) targets[source]!.push(target);
  }
  const reached = new Set<number>();
  const toVisit: number[] = [];
  const visit = (index: number): void => {
    if (reached.has(index)) return;
    reached.add(index);
    toVisit.push(index);
  };
  for (const [index, { kind }] of components.entries()) if (kind === 'spout') visit(index);
  for (let index = toVisit.pop(); index !== undefined; index = toVisit.pop()) targets[index]!.forEach(visit);
  return components.filter((_, index) => !reached.has(index)).map(({ id }) => id);
}

/** Sentences worth showing at submission. */
export function graphWarnings(description: Components): readonly string[] {
  const warnings = unreachableComponents(description).map((id) => `No row of any spout can reach "${id}".`);
  const cycles: string[][] = [];
  for (const [id, number] of cycleComponents(description)) (cycles[number] ??= []).push(id);
  for (const members of cycles) {
    const named = members.slice(0, MAX_NAMED_MEMBERS).map((id) => `"${id}"`);
    if (members.length > named.length) named.push(`and ${members.length - named.length} more`);
    warnings.push(
      `The graph has a cycle: ${named.join(', ')}. A bolt in it that sends back more rows than it gets ends with CYCLE_OVERFLOW.`,
    );
  }
  return warnings;
}

/** By component: places of the components that it gets rows from, each once; sources that do not exist left out. */
function sourcesOf(components: readonly ComponentDescription[]): readonly (readonly number[])[] {
  const indexOf = new Map(components.map(({ id }, index) => [id, index]));
  return components.map(({ subscriptions }) => {
    const found = new Set<number>();
    for (const { source } of subscriptions) {
      const index = indexOf.get(source);
      if (index !== undefined) found.add(index);
    }
    return [...found];
  });
}

/**
 * Strongly connected components by Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972), with the
 * call stack kept by hand. Following edges from receiver to source, a group is complete only after all groups it
 * gets rows from, so the answer is in topological order.
 */
function stronglyConnected(sources: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const count = sources.length;
  const order = new Int32Array(count).fill(-1);
  const lowest = new Int32Array(count);
  const nextSource = new Int32Array(count);
  const isOpen = new Uint8Array(count);
  const open: number[] = [];
  const path: number[] = [];
  const groups: number[][] = [];
  let visited = 0;
  const enter = (node: number): void => {
    order[node] = lowest[node] = visited++;
    isOpen[node] = 1;
    open.push(node);
    path.push(node);
  };
  for (let root = 0; root < count; root++) {
    if (order[root] !== -1) continue;
    enter(root);
    while (path.length > 0) {
      const node = path[path.length - 1]!;
      const source = sources[node]![nextSource[node]!++];
      if (source !== undefined) {
        if (order[source] === -1) enter(source);
        else if (isOpen[source] === 1) lowest[node] = Math.min(lowest[node]!, order[source]!);
        continue;
      }
      path.pop();
      const caller = path[path.length - 1];
      if (caller !== undefined) lowest[caller] = Math.min(lowest[caller]!, lowest[node]!);
      if (lowest[node] !== order[node]) continue;
      const group = open.splice(open.lastIndexOf(node));
      for (const member of group) isOpen[member] = 0;
      groups.push(group);
    }
  }
  return groups;
}
