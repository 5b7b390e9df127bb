/** Components of one class are hurt by the same: sources by what they read from, stateful ones by moves, stateless ones by neither. */
import { isSystemComponent } from '../base/index.js';
import type { ClusterComponent } from './resources.js';

export type ComponentClass = 'sources' | 'stateful' | 'stateless';

export const COMPONENT_CLASSES: readonly ComponentClass[] = ['sources', 'stateful', 'stateless'];

/** Undefined for a system component, which is in none. */
export function classOf({
  kind,
  isStateful = false,
}: Pick<ClusterComponent, 'kind' | 'isStateful'>): ComponentClass | undefined {
  switch (kind) {
    case 'system':
      return undefined;
    case 'spout':
      return 'sources';
    case 'bolt':
      return isStateful ? 'stateful' : 'stateless';
  }
}

/** Tells system components from a topology's own; one that nobody describes is told by its name. */
export function systemFinder(
  components: readonly ClusterComponent[] | undefined,
): (component: string) => boolean {
  const kinds = new Map(components?.map(({ id, kind }) => [id, kind]));
  return (component) => {
    const kind = kinds.get(component);
    return kind === undefined ? isSystemComponent(component) : kind === 'system';
  };
}
