/**
 * What a topology asks for, by integer: its components in order of id, its executors in order of first task, what an
 * executor of each component needs, which memory they share, and who sends to whom.
 */
import { ACKER, IsobarError } from '../../../base/index.js';
import type { ExecutorRange } from '../../assignment.js';
import type { ClusterTopology } from '../../cluster-snapshot.js';
import type { PlannedExecutor } from '../../executors.js';
import { compareRanges, compareText } from '../../order.js';
import type { ClusterComponent, PlacementRules, RequestedResources } from '../../resources.js';
import { CPU, FIRST_GENERIC, MEMORY, toAmount } from './amounts.js';
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
  /** As machines count resources. */
  readonly resourceCount: number;
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

interface KnownRequest {
  readonly topology: ClusterTopology;
  readonly names: string;
  readonly request: TopologyRequest;
}

const KNOWN = new WeakMap<readonly PlannedExecutor[], KnownRequest>();

/**
 * Made once for lists of executors and components that are handed from round to round. Cost: O(E) for executors in order.
 *
 * @throws DESCRIPTION_INVALID if an amount is not a number.
 */
export function toRequest(topology: ClusterTopology, genericNames: readonly string[]): TopologyRequest {
  const known = KNOWN.get(topology.executors);
  const names = genericNames.join('\n');
  const isSame =
    known?.topology.id === topology.id &&
    known.topology.components === topology.components &&
    known.names === names;
  if (isSame) return { ...known.request, rules: topology.rules ?? {} };
  const request = makeRequest(topology, genericNames);
  KNOWN.set(topology.executors, { topology, names, request });
  return request;
}

function makeRequest(topology: ClusterTopology, genericNames: readonly string[]): TopologyRequest {
  const described = new Map((topology.components ?? []).map((component) => [component.id, component]));
  const { executors, components, componentOf, size, indexOf } = indexExecutors(topology, described.keys());
  const descriptions = components.map((id) => described.get(id));
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
    acker: components.indexOf(ACKER),
    hasSpout: topology.components?.some(({ kind }) => kind === 'spout') ?? true,
    executors,
    componentOf,
    size,
    cpu: amounts(({ cpuPercent }) => cpuPercent),
    onHeap: amounts(({ onHeapMb }) => onHeapMb),
    offHeap: amounts(({ offHeapMb }) => offHeapMb),
    generic,
    genericCount: genericNames.length,
    resourceCount: genericResource(genericNames.length),
    ...regionsOf(descriptions),
    indexOf,
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

/** Adds what executors of a component ask for to sums by resource, as machines count them, that begin at `first`. */
export function addRequest(
  sums: Float64Array,
  { cpu, onHeap, offHeap, generic, genericCount }: TopologyRequest,
  component: number,
  first = 0,
  executors = 1,
): void {
  sums[first + CPU]! += executors * cpu[component]!;
  sums[first + MEMORY]! += executors * (onHeap[component]! + offHeap[component]!);
  for (let name = 0; name < genericCount; name++) {
    sums[first + genericResource(name)]! += executors * generic[component * genericCount + name]!;
  }
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

type IndexedExecutors = Pick<
  TopologyRequest,
  'executors' | 'components' | 'componentOf' | 'size' | 'indexOf'
>;

/** Most unused entries of a table by task number that are worth its speed. */
const SPARSE_ENTRIES_PER_EXECUTOR = 8;

/** One pass over executors that are in order: there may be a million of them, in every round. */
function indexExecutors(topology: ClusterTopology, described: Iterable<string>): IndexedExecutors {
  const { executors } = topology;
  const found = new Map<string, number>();
  for (const id of described) found.set(id, found.size);
  const foundOf = new Int32Array(executors.length);
  const lowest = executors[0]?.range[0] ?? 0;
  const spread = (executors.at(-1)?.range[0] ?? 0) - lowest + 1;
  const isDense = Number.isInteger(spread) && spread <= 1024 + SPARSE_ENTRIES_PER_EXECUTOR * executors.length;
  const table = new Int32Array(isDense ? Math.max(spread, 0) : 0).fill(NONE);
  let lastFirst = -Infinity;
  let lastId = '';
  let lastFound = NONE;
  for (let index = 0; index < executors.length; index++) {
    const { component, range } = executors[index]!;
    if (range[0] <= lastFirst)
      return indexExecutors({ ...topology, executors: inOrder(executors) }, described);
    lastFirst = range[0];
    if (component !== lastId || lastFound === NONE) {
      lastId = component;
      lastFound = found.get(component) ?? found.size;
      found.set(component, lastFound);
    }
    foundOf[index] = lastFound;
    if (isDense) table[lastFirst - lowest] = index;
  }
  const components = [...found.keys()].sort(compareText);
  const rank = new Int32Array(components.length);
  components.forEach((id, index) => (rank[found.get(id)!] = index));
  const size = new Int32Array(components.length);
  for (let index = 0; index < foundOf.length; index++) {
    const component = rank[foundOf[index]!]!;
    foundOf[index] = component;
    size[component]!++;
  }
  return {
    executors,
    components,
    componentOf: foundOf,
    size,
    indexOf: lookup(executors, isDense, table, lowest),
  };
}

function lookup(
  executors: readonly PlannedExecutor[],
  isDense: boolean,
  table: Int32Array,
  lowest: number,
): (range: ExecutorRange) => number {
  const map = isDense ? undefined : new Map(executors.map(({ range: [first] }, index) => [first, index]));
  return (range) => {
    const index = (map === undefined ? table[range[0] - lowest] : map.get(range[0])) ?? NONE;
    return index !== NONE && executors[index]!.range[1] === range[1] ? index : NONE;
  };
}

/** In order of first task; of several that begin with the same task the first is kept. */
function inOrder(executors: readonly PlannedExecutor[]): readonly PlannedExecutor[] {
  const sorted = [...executors].sort((a, b) => compareRanges(a.range, b.range));
  return sorted.filter(({ range }, index) => index === 0 || sorted[index - 1]!.range[0] !== range[0]);
}
