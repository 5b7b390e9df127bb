/**
 * What follows from a list of a topology's workers and from what the topology asks for, whatever the machines: side by side in
 * arrays of numbers, since a round that places one lost machine anew looks at every worker of the cluster. Made once for lists
 * that are handed from round to round.
 */
import type { PlacedWorker } from '../../cluster-snapshot.js';
import { type SlotList, slotList } from '../../slot-list.js';
import { MEMORY } from './amounts.js';
import { NONE } from './machines.js';
import { addRequest, type TopologyRequest } from './topology-request.js';

export interface PlacedList extends SlotList {
  /** Executors of worker i: `executors` from `firstExecutor[i]` to before `firstExecutor[i + 1]`, without those that the topology has not. */
  readonly firstExecutor: Int32Array;
  readonly executors: Int32Array;
  /** Has each executor one worker at most? */
  readonly isDisjoint: boolean;
  /** By worker, then resource as machines count them: what its executors ask for, with memory that is shared within the worker. */
  readonly use: Float64Array;
  /** By worker: memory regions that its executors use; empty if the topology has none. */
  readonly regions: readonly (readonly number[])[];
}

const KNOWN_LISTS = new WeakMap<
  readonly PlacedWorker[],
  { readonly componentOf: Int32Array; readonly list: PlacedList }
>();

export function placedList(unordered: readonly PlacedWorker[], request: TopologyRequest): PlacedList {
  const known = KNOWN_LISTS.get(unordered);
  // Each request that was made anew has a list of its own.
  if (known?.componentOf === request.componentOf) return known.list;
  const slots = slotList(unordered);
  const list = { ...slots, ...contents(slots.workers, request) };
  KNOWN_LISTS.set(unordered, { componentOf: request.componentOf, list });
  return list;
}

function contents(
  workers: readonly PlacedWorker[],
  request: TopologyRequest,
): Omit<PlacedList, keyof SlotList> {
  const { resourceCount, componentOf, indexOf } = request;
  const firstExecutor = new Int32Array(workers.length + 1);
  let most = 0;
  for (let worker = 0; worker < workers.length; worker++) most += workers[worker]!.executors.length;
  const executors = new Int32Array(most);
  const use = new Float64Array(workers.length * resourceCount);
  const seen = new Uint8Array(componentOf.length);
  let isDisjoint = true;
  let count = 0;
  for (let worker = 0; worker < workers.length; worker++) {
    const ranges = workers[worker]!.executors;
    for (let place = 0; place < ranges.length; place++) {
      const executor = indexOf(ranges[place]!);
      if (executor === NONE) continue;
      addRequest(use, request, componentOf[executor]!, worker * resourceCount);
      executors[count++] = executor;
      if (seen[executor] === 1) isDisjoint = false;
      seen[executor] = 1;
    }
    firstExecutor[worker + 1] = count;
  }
  const found = { firstExecutor, executors: executors.subarray(0, count), isDisjoint, use };
  return { ...found, regions: request.regions.length === 0 ? NO_LISTS : addRegions(found, request) };
}

/** Memory that executors of a worker share counts once; what each worker uses, in the order in which its executors name it. */
function addRegions(
  { firstExecutor, executors, use }: Pick<PlacedList, 'firstExecutor' | 'executors' | 'use'>,
  { componentOf, regions, regionsOf, resourceCount }: TopologyRequest,
): number[][] {
  const lists: number[][] = [];
  for (let worker = 0; worker + 1 < firstExecutor.length; worker++) {
    const found = new Set<number>();
    for (let place = firstExecutor[worker]!; place < firstExecutor[worker + 1]!; place++)
      for (const region of regionsOf[componentOf[executors[place]!]!]!) found.add(region);
    for (const region of found) {
      const { onHeap, offHeapWorker } = regions[region]!;
      use[worker * resourceCount + MEMORY]! += onHeap + offHeapWorker;
    }
    lists.push([...found]);
  }
  return lists;
}

/** Of topologies that share no memory. */
const NO_LISTS: readonly (readonly number[])[] = [];
