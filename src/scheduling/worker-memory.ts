/**
 * What the executors of one worker ask for in memory: all of them together, and the heap of each component's where somebody has
 * declared it. Supervisors make a worker's limits of it.
 */
import type { Settings } from '../base/index.js';
import type { ComponentTasks, ExecutorRange } from './assignment.js';
import { requestAfter, requestOfSettings } from './placement-rules.js';

/** What a rebalance has asked for, by component and by name as in `RESOURCE_NAMES`. */
type AskedByComponent = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface AskedMemory {
  readonly onHeapMb: number;
  readonly offHeapMb: number;
}

/** Names of the heap in what a rebalance asks for. */
const HEAP_NAMES = ['heap', 'onheap.memory.mb'] as const;

/** Sum over executors, as the strategy `resource-aware` counts them: ackers included, defaults where nothing was declared. */
export function askedMemory(
  executors: readonly ExecutorRange[],
  tasks: readonly ComponentTasks[],
  settings: Settings,
  asked: AskedByComponent = {},
): AskedMemory {
  const common = requestOfSettings(settings);
  let [onHeapMb, offHeapMb] = [0, 0];
  for (const [first] of executors) {
    const component = tasks.find(({ last }) => first <= last)?.component;
    const request = component === undefined ? common : requestAfter(common, asked[component]);
    onHeapMb += request.onHeapMb;
    offHeapMb += request.offHeapMb;
  }
  return { onHeapMb, offHeapMb };
}

/**
 * Heap that one executor asks for, MB, by component: those for which a rebalance has said so, and all if `isDeclared`, that is if
 * somebody has given `topology.component-heap`. A component that is absent asks for nothing in particular.
 */
export function declaredHeapMb(
  tasks: readonly ComponentTasks[],
  settings: Settings,
  isDeclared: boolean,
  asked: AskedByComponent = {},
): Readonly<Record<string, number>> {
  const common = requestOfSettings(settings);
  const declared = tasks.flatMap(({ component }) => {
    const amounts = Object.hasOwn(asked, component) ? asked[component] : undefined;
    const isNamed = HEAP_NAMES.some((name) => amounts?.[name] !== undefined);
    return isDeclared || isNamed ? [[component, requestAfter(common, amounts).onHeapMb] as const] : [];
  });
  return Object.fromEntries(declared);
}
