/**
 * What an executor weighs: the one function that everything asks that balances or shows load. Where it comes from is
 * `load-balance.load`.
 */
import type { ClusterTopology } from '../cluster-snapshot.js';
import { systemFinder } from '../component-classes.js';
import { indexExecutors, NO_EXECUTOR } from '../executor-index.js';
import type { PlannedExecutor } from '../executors.js';
import type { ClusterComponent, LoadSource, MeasuredLoads } from '../resources.js';

type Weighable = Pick<ClusterTopology, 'executors' | 'components' | 'balance' | 'measured'>;

/**
 * What an executor weighs, named by its first task; one that has been cut otherwise weighs what the one with that task does, and 0
 * if there is none.
 *
 * - `executors`: 1. - `tasks`: how many tasks it has. - `declared`: the `load` of its component, else 1. - `resources`: the processor
 *   share that it asks for; 100 is a core. - `measured`: what was measured; else the average of its component, else what its declared
 *   weight measures in its topology, else in all. System components weigh nothing.
 */
export function executorLoads(topology: Weighable): (firstTask: number) => number {
  const index = indexExecutors(topology.executors);
  const table = tableOf(topology, index.executors);
  return (firstTask) => {
    const place = index.placeOfTask(firstTask);
    return place === NO_EXECUTOR ? 0 : table[place]!;
  };
}

/** What an executor of weight 1 measures on average. */
export function typicalLoad(
  topologies: readonly (Omit<Weighable, 'measured'> & { readonly byTask: ReadonlyMap<number, number> })[],
): number {
  let [measured, weight] = [0, 0];
  for (const { executors, components, byTask } of topologies) {
    if (byTask.size === 0) continue;
    const weightOf = declaredWeights(components);
    for (const { range, component } of executors) {
      const load = byTask.get(range[0]);
      if (load === undefined) continue;
      measured += load;
      weight += weightOf(component);
    }
  }
  return weight === 0 ? 1 : measured / weight;
}

interface KnownTable {
  readonly components: Weighable['components'];
  readonly source: LoadSource;
  readonly table: Float64Array;
}

/** By list of executors: what does not follow from measuring is made once. */
const KNOWN = new WeakMap<readonly PlannedExecutor[], KnownTable>();

function tableOf(
  { executors, components, balance, measured }: Weighable,
  ordered: readonly PlannedExecutor[],
): Float64Array {
  const source = balance?.load ?? 'declared';
  if (source === 'measured') return measuredTable(ordered, components, measured);
  const known = KNOWN.get(executors);
  if (known?.components === components && known?.source === source) return known.table;
  const table = Float64Array.from(ordered, plainWeight(source, components));
  KNOWN.set(executors, { components, source, table });
  return table;
}

function plainWeight(
  source: Exclude<LoadSource, 'measured'>,
  components: Weighable['components'],
): (executor: PlannedExecutor) => number {
  const isSystem = systemFinder(components);
  switch (source) {
    case 'executors':
      return ({ component }) => (isSystem(component) ? 0 : 1);
    case 'tasks':
      return ({ component, range: [first, last] }) => (isSystem(component) ? 0 : last - first + 1);
    case 'resources': {
      const asked = new Map(components?.map(({ id, resources }) => [id, resources.cpuPercent]));
      return ({ component }) => (isSystem(component) ? 0 : (asked.get(component) ?? 0));
    }
    case 'declared': {
      const weightOf = declaredWeights(components);
      return ({ component }) => weightOf(component);
    }
  }
}

function measuredTable(
  executors: readonly PlannedExecutor[],
  components: Weighable['components'],
  { byTask, typical }: MeasuredLoads = { byTask: new Map(), typical: 1 },
): Float64Array {
  const weightOf = declaredWeights(components);
  const isSystem = systemFinder(components);
  const byComponent = new Map<string, { sum: number; count: number }>();
  let [sum, weight] = [0, 0];
  for (const { range, component } of executors) {
    const load = byTask.get(range[0]);
    if (load === undefined) continue;
    sum += load;
    weight += weightOf(component);
    const seen = byComponent.get(component) ?? { sum: 0, count: 0 };
    byComponent.set(component, { sum: seen.sum + load, count: seen.count + 1 });
  }
  const unit = weight > 0 ? sum / weight : typical;
  return Float64Array.from(executors, ({ range, component }) => {
    if (isSystem(component)) return 0;
    const others = byComponent.get(component);
    return (
      byTask.get(range[0]) ?? (others === undefined ? unit * weightOf(component) : others.sum / others.count)
    );
  });
}

function declaredWeights(components: readonly ClusterComponent[] | undefined): (component: string) => number {
  const isSystem = systemFinder(components);
  const declared = new Map(components?.map(({ id, load }) => [id, load]));
  return (component) => declared.get(component) ?? (isSystem(component) ? 0 : 1);
}
