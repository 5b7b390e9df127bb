/**
 * A topology of the snapshot as slot sharing sees it: components are vertices and executors are subtasks. System components
 * come last, so that they change nothing for the others; where they have no load they need no slot of their own.
 */
import type { ClusterTopology } from '../../cluster-snapshot.js';
import { type ComponentClass, classOf, systemFinder } from '../../component-classes.js';
import type { PlannedExecutor } from '../../executors.js';
import { compareRanges, compareText } from '../../order.js';
import type { ClusterComponent, ComponentEdge } from '../../resources.js';
import { DEFAULT_SHARING_GROUP, type SharingGraph, type SharingVertex } from '../../slot-sharing/index.js';

export interface TopologyGraph {
  /** User components only: they decide how many slots there are. */
  readonly sizing: SharingGraph;
  readonly graph: SharingGraph;
  /** What components send each other, by vertex. */
  readonly routes: readonly Route[];
  /** By vertex, by subtask. */
  readonly executors: readonly (readonly PlannedExecutor[])[];
  /** By vertex; undefined: of none. */
  readonly classes: readonly (ComponentClass | undefined)[];
  /** By vertex: may a running executor be moved? */
  readonly isMovable: readonly boolean[];
}

export interface Route {
  readonly from: number;
  readonly to: number;
  readonly grouping: ComponentEdge['grouping'];
}

export function topologyGraph({
  executors,
  components = [],
}: Pick<ClusterTopology, 'executors' | 'components'>): TopologyGraph {
  const known = new Map(components.map((component) => [component.id, component]));
  const byComponent = new Map<string, PlannedExecutor[]>();
  for (const executor of [...executors].sort((a, b) => compareRanges(a.range, b.range))) {
    const list = byComponent.get(executor.component);
    if (list === undefined) byComponent.set(executor.component, [executor]);
    else list.push(executor);
  }
  const order = inTopologicalOrder([...byComponent.keys()], known);
  const isSystem = systemFinder(components);
  const [user, system] = [order.filter((id) => !isSystem(id)), order.filter(isSystem)];
  const ids = [...user, ...system];
  const vertices = ids.map((id): SharingVertex => {
    const { slotSharingGroup = DEFAULT_SHARING_GROUP, coLocationGroup = null } = known.get(id) ?? {};
    return { id, parallelism: byComponent.get(id)!.length, slotSharingGroup, coLocationGroup };
  });
  const indexOf = new Map(ids.map((id, index) => [id, index]));
  const routes = ids.flatMap((id, to) =>
    (known.get(id)?.inputs ?? []).flatMap(({ from: source, grouping }): Route[] => {
      const from = indexOf.get(source);
      return from === undefined ? [] : [{ from, to, grouping }];
    }),
  );
  const edges = routes.map(({ from, to, grouping }) => ({
    from,
    to,
    pattern: grouping === 'local-or-shuffle' ? ('pointwise' as const) : ('all-to-all' as const),
  }));
  // A topology of system components alone is sized by them.
  const sized = user.length > 0 ? user.length : vertices.length;
  return {
    sizing: { vertices: vertices.slice(0, sized), edges: [] },
    graph: { vertices, edges },
    routes,
    executors: ids.map((id) => byComponent.get(id)!),
    classes: ids.map((id) => {
      const component = known.get(id);
      return component === undefined ? undefined : classOf(component);
    }),
    isMovable: ids.map((id) => known.get(id)?.isMovable ?? true),
  };
}

/** Sources first; components of a cycle, and those behind it, in order of name. */
function inTopologicalOrder(ids: readonly string[], known: ReadonlyMap<string, ClusterComponent>): string[] {
  const names = new Set(ids);
  const waitsFor = new Map<string, Set<string>>();
  const feeds = new Map<string, string[]>();
  for (const id of ids) {
    const sources = new Set(
      (known.get(id)?.inputs ?? []).map(({ from }) => from).filter((from) => names.has(from)),
    );
    waitsFor.set(id, sources);
    for (const from of sources) feeds.set(from, [...(feeds.get(from) ?? []), id]);
  }
  const order: string[] = [];
  const open = new Set([...ids].sort(compareText));
  const ready = ids.filter((id) => waitsFor.get(id)!.size === 0);
  while (open.size > 0) {
    // Without a ready one there is a cycle: it is entered at the first name.
    const [first] = open;
    const id = ready.shift() ?? first!;
    if (!open.delete(id)) continue;
    order.push(id);
    for (const next of feeds.get(id) ?? []) {
      const sources = waitsFor.get(next)!;
      sources.delete(id);
      if (sources.size === 0 && open.has(next)) ready.push(next);
    }
  }
  return order;
}
