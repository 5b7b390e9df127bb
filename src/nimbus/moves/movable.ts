/** Whether tasks of a component can move without losing what they know. Pure. */
import type { ComponentDescription } from '../../topology/index.js';

/**
 * As far as the description tells. `when-running`: its tasks say so once they run: a bolt that has state can move if `prepare`
 * has returned a `save`, and a spout if all its rows have positions.
 */
export function canMove({
  kind,
  stateful,
  movable,
}: Pick<ComponentDescription, 'kind' | 'stateful' | 'movable'>): 'yes' | 'when-running' {
  return movable || (kind === 'bolt' && !stateful) ? 'yes' : 'when-running';
}
