/**
 * What a topology asks for, by integer: its components in order of id, its executors in order of first task, what an
 * executor of each component needs, which memory they share, and who sends to whom.
 */
import { IsobarError } from '../../../base/index.js';
import type { ExecutorRange } from '../../assignment.js';
import type { ClusterTopology } from '../../cluster-snapshot.js';
import type { PlannedExecutor } from '../../executors.js';
import { compareRanges, compareText } from '../../order.js';
import type { ClusterComponent, PlacementRules, RequestedResources } from '../../resources.js';
import { ACKER } from '../../system-components.js';
import { FIRST_GENERIC, toAmount } from './amounts.js';
import { NONE } from './machines.js';

/** Memory that executors share, in amounts. */
export interface Region {
  readonly onHeap: number;
  readonly offHeapWorker: number;
  readonly offHeapMachine: number;
}

export interface TopologyRequest {
  readonly id: string;
  readonly rules: PlacementRules;
  /** Ids, ascending. */
  readonly components: readonly string[];
  /** By component; undefined for one that only executors name. */
  readonly descriptions: readonly (ClusterComponent | undefined)[];
  /** Index of the ackers' component, or NONE. */
  readonly acker: number;
  /** Has it a spout? true if its components are not known. */
  readonly hasSpout: boolean;
  /** In order of first task. */
  readonly executors: readonly PlannedExecutor[];
  /** By executor. */
  readonly componentOf: Int32Array;
  /** Executors by component. */
  readonly size: Int32Array;
  /** Amounts by component. */
  readonly cpu: Float64Array;
  readonly onHeap: Float64Array;
  readonly offHeap: Float64Array;
  /** By component, then resource by name. */
  readonly generic: Float64Array;
  readonly genericCount: number;
  readonly regions: readonly Region[];
  /** Regions by component. */
  readonly regionsOf: readonly (readonly number[])[];
  /** The index of an executor, or NONE if the topology has no such executor. */
  readonly indexOf: (range: ExecutorRange) => number;
}

/** Sums over all executors, in amounts. */
export interface RequestTotals {
  readonly cpu: number;
  /** On-heap and off-heap together, each region once. */
  readonly memory: number;
  readonly shared: number;
  /** By resource name's index. */
  readonly generic: Float64Array;
}

/** Cost: O(E) for executors in order. @throws DESCRIPTION_INVALID if an amount is not a number. */
export function toRequest(topology: ClusterTopology, genericNames: readonly string[]): TopologyRequest {
  const executors = inOrder(topology.executors);
  const described = new Map((topology.components ?? []).map((component) => [component.id, component]));
  const ids = new Set(described.keys());
  let last = '';
  for (const { component } of executors) {
    // Neighbours in the list mostly share a component.
    if (component !== last) ids.add((last = component));
  }
  const components = [...ids].sort(compareText);
  const indexOfComponent = new Map(components.map((id, index) => [id, index]));
  const descriptions = components.map((id) => described.get(id));

  const componentOf = new Int32Array(executors.length);
  const size = new Int32Array(components.length);
  let lastIndex = NONE;
  executors.forEach(({ component }, index) => {
    if (lastIndex === NONE || components[lastIndex] !== component)
      lastIndex = indexOfComponent.get(component)!;
    componentOf[index] = lastIndex;
    size[lastIndex]!++;
  });

  const amounts = (read: (resources: RequestedResources) => number): Float64Array =>
    Float64Array.from(descriptions, (one) => requested(topology.id, one, read));
  const generic = new Float64Array(components.length * genericNames.length);
  descriptions.forEach((one, component) => {
    genericNames.forEach((name, index) => {
      generic[component * genericNames.length + index] = requested(
        topology.id,
        one,
        (resources) => resources.generic?.[name] ?? 0,
      );
    });
  });
  return {
    id: topology.id,
    rules: topology.rules ?? {},
    components,
    descriptions,
    acker: indexOfComponent.get(ACKER) ?? NONE,
    hasSpout: topology.components?.some(({ kind }) => kind === 'spout') ?? true,
    executors,
    componentOf,
    size,
    cpu: amounts(({ cpuPercent }) => cpuPercent),
    onHeap: amounts(({ onHeapMb }) => onHeapMb),
    offHeap: amounts(({ offHeapMb }) => offHeapMb),
    generic,
    genericCount: genericNames.length,
    ...regionsOf(descriptions),
    indexOf: executorLookup(executors),
  };
}

export function totalsOf(request: TopologyRequest): RequestTotals {
  const { size, cpu, onHeap, offHeap, generic, genericCount, regions } = request;
  let cpuSum = 0;
  let memory = 0;
  const genericSum = new Float64Array(genericCount);
  for (let component = 0; component < size.length; component++) {
    const executors = size[component]!;
    cpuSum += executors * cpu[component]!;
    memory += executors * (onHeap[component]! + offHeap[component]!);
    for (let name = 0; name < genericCount; name++) {
      genericSum[name]! += executors * generic[component * genericCount + name]!;
    }
  }
  const shared = regions.reduce((sum, one) => sum + one.onHeap + one.offHeapWorker + one.offHeapMachine, 0);
  return { cpu: cpuSum, memory: memory + shared, shared, generic: genericSum };
}

/** Every resource name that a supervisor offers or a component asks for, ascending. */
export function genericNames(
  offers: readonly { readonly resources?: { readonly generic?: Readonly<Record<string, number>> } }[],
  topologies: readonly ClusterTopology[],
): readonly string[] {
  const names = new Set<string>();
  for (const { resources } of offers) for (const name in resources?.generic) names.add(name);
  for (const { components } of topologies) {
    for (const { resources } of components ?? []) for (const name in resources.generic) names.add(name);
  }
  return [...names].sort(compareText);
}

/** The resource of a name's index, as machines count it. */
export function genericResource(name: number): number {
  return FIRST_GENERIC + name;
}

function inOrder(executors: readonly PlannedExecutor[]): readonly PlannedExecutor[] {
  for (let index = 1; index < executors.length; index++) {
    if (executors[index - 1]!.range[0] >= executors[index]!.range[0]) {
      return [...executors].sort((a, b) => compareRanges(a.range, b.range));
    }
  }
  return executors;
}

function requested(
  topologyId: string,
  component: ClusterComponent | undefined,
  read: (resources: RequestedResources) => number,
): number {
  if (component === undefined) return 0;
  const value = read(component.resources);
  if (value >= 0) return toAmount(value);
  throw new IsobarError(
    'DESCRIPTION_INVALID',
    `Component "${component.id}" of ${topologyId} asks for ${value} of a resource.`,
    { expected: 'a number from 0', found: String(value), where: `${topologyId}.${component.id}.resources` },
  );
}

function regionsOf(
  descriptions: readonly (ClusterComponent | undefined)[],
): Pick<TopologyRequest, 'regions' | 'regionsOf'> {
  const indexOfName = new Map<string, number>();
  const regions: Region[] = [];
  const lists = descriptions.map((component) =>
    (component?.sharedMemory ?? []).map(({ name, onHeapMb, offHeapWorkerMb, offHeapMachineMb }) => {
      let index = indexOfName.get(name);
      if (index === undefined) {
        index = regions.length;
        indexOfName.set(name, index);
        regions.push({
          onHeap: toAmount(onHeapMb),
          offHeapWorker: toAmount(offHeapWorkerMb),
          offHeapMachine: toAmount(offHeapMachineMb),
        });
      }
      return index;
    }),
  );
  return { regions, regionsOf: lists.map((list) => [...new Set(list)]) };
}

/** Most unused entries of a table by task number that are worth its speed. */
const SPARSE_ENTRIES_PER_EXECUTOR = 8;

function executorLookup(executors: readonly PlannedExecutor[]): (range: ExecutorRange) => number {
  const highest = executors.at(-1)?.range[0] ?? 0;
  const lowest = executors[0]?.range[0] ?? 0;
  const matching = (index: number | undefined, [, last]: ExecutorRange): number =>
    index !== undefined && index !== NONE && executors[index]!.range[1] === last ? index : NONE;
  const spread = highest - lowest + 1;
  if (Number.isInteger(spread) && spread <= 1024 + SPARSE_ENTRIES_PER_EXECUTOR * executors.length) {
    const table = new Int32Array(spread).fill(NONE);
    executors.forEach(({ range: [first] }, index) => (table[first - lowest] = index));
    return (range) => matching(table[range[0] - lowest], range);
  }
  const map = new Map(executors.map(({ range: [first] }, index) => [first, index]));
  return (range) => matching(map.get(range[0]), range);
}
