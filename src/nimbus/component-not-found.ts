/** The error for a component that is not there, with the one that may be meant. Pure. */
import { closestName, IsobarError } from '../base/index.js';

/** A user named a component that the topology does not have. */
export function componentNotFound(component: string, components: readonly string[]): IsobarError {
  const closest = closestName(component, components);
  return new IsobarError(
    'COMPONENT_NOT_FOUND',
    `there is no component "${component}"${closest === undefined ? '' : `; did you mean "${closest}"?`}`,
    { expected: `one of: ${components.join(', ')}`, found: component, where: component },
  );
}
