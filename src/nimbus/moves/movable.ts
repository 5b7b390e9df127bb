/** Whether tasks of a component can move without losing what they know. Pure. */
import type { TaskReport } from '../../coordination/index.js';
import type { ComponentDescription } from '../../topology/index.js';

/**
 * As far as the description tells. `when-running`: its tasks say so once they run: a bolt that has state can move if `prepare`
 * has returned a `save`, and a spout if all its rows have positions.
 */
function canMove({
  kind,
  stateful,
  movable,
}: Pick<ComponentDescription, 'kind' | 'stateful' | 'movable'>): 'yes' | 'when-running' {
  return movable || isStateless({ kind, stateful }) ? 'yes' : 'when-running';
}

/** Whether its tasks have nothing that could be lost: neither state nor positions. */
export function isStateless({ kind, stateful }: Pick<ComponentDescription, 'kind' | 'stateful'>): boolean {
  return kind === 'bolt' && !stateful;
}

/** Whether a task can; undefined: nobody knows yet. What a task that is still starting reports is not known to itself. */
export function canTaskMove(
  described: Parameters<typeof canMove>[0] | undefined,
  report: Pick<TaskReport, 'movable' | 'isRunning'> | undefined,
): boolean | undefined {
  if (described !== undefined && canMove(described) === 'yes') return true;
  return report?.isRunning === false ? undefined : report?.movable;
}
