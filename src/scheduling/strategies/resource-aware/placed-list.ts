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
  /** By worker, then resource as machines count them: what its executors ask for, with memory that is shared within the worker. */
  readonly use: Float64Array;
  /** By worker: memory regions that its executors use. */
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
  const { resourceCount, componentOf, regionsOf } = request;
  const firstExecutor = new Int32Array(workers.length + 1);
  const executors: number[] = [];
  const use = new Float64Array(workers.length * resourceCount);
  const regions = workers.map((worker, index): readonly number[] => {
    const found = new Set<number>();
    for (const range of worker.executors) {
      const executor = request.indexOf(range);
      if (executor === NONE) continue;
      const component = componentOf[executor]!;
      executors.push(executor);
      addRequest(use, request, component, index * resourceCount);
      for (const region of regionsOf[component]!) found.add(region);
    }
    firstExecutor[index + 1] = executors.length;
    for (const region of found) {
      const { onHeap, offHeapWorker } = request.regions[region]!;
      use[index * resourceCount + MEMORY]! += onHeap + offHeapWorker;
    }
    return found.size === 0 ? NO_REGIONS : [...found];
  });
  return { firstExecutor, executors: Int32Array.from(executors), use, regions };
}

const NO_REGIONS: readonly number[] = [];
