/**
 * Which receiving tasks a shuffle should prefer: not crossing a thread is worth more than any codec, but only where it
 * keeps the load even. Pure.
 */
import type { ComponentTasks } from '../scheduling/index.js';
import type { Edge } from './outputs.js';

/**
 * Indexes (from 0) of the receiving tasks that the sending task should use; null: all.
 *
 * `shuffle` keeps to its own thread where every thread with senders has the same number of receivers per sender;
 * `local-or-shuffle` keeps to its own worker if that has any receiver (Storm's rule).
 */
export function preferredTargets(
  edge: Edge,
  sourceTask: number,
  routes: {
    readonly endpointOfTask: Int32Array;
    /** `peer` −1: a thread of this worker. */
    readonly endpoints: readonly { readonly id: number; readonly peer: number }[];
  },
  tasksOf: (component: string) => ComponentTasks | undefined,
): Int32Array | null {
  const kind = edge.grouping.kind;
  if (kind !== 'shuffle' && kind !== 'local-or-shuffle') return null;
  const { endpointOfTask } = routes;
  const own = endpointOfTask[sourceTask] ?? -1;
  if (own < 0) return null;
  const near =
    kind === 'shuffle'
      ? new Set([own])
      : new Set(routes.endpoints.filter(({ peer }) => peer < 0).map(({ id }) => id));
  const local: number[] = [];
  for (let i = 0; i < edge.taskCount; i++) if (near.has(endpointOfTask[edge.firstTask + i]!)) local.push(i);
  if (local.length === 0) return null;
  if (kind === 'shuffle' && !isSymmetric(edge, endpointOfTask, tasksOf(edge.source))) return null;
  return Int32Array.from(local);
}

/** Does every thread with senders have the same, positive number of receivers per sender? */
function isSymmetric(edge: Edge, endpointOfTask: Int32Array, senders: ComponentTasks | undefined): boolean {
  if (senders === undefined) return false;
  const senderCount = new Map<number, number>();
  const receiverCount = new Map<number, number>();
  const add = (counts: Map<number, number>, task: number): void => {
    const endpoint = endpointOfTask[task] ?? -1;
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  };
  for (let task = senders.first; task <= senders.last; task++) add(senderCount, task);
  for (let i = 0; i < edge.taskCount; i++) add(receiverCount, edge.firstTask + i);
  const total = senders.last - senders.first + 1;
  for (const [endpoint, count] of senderCount) {
    if (endpoint < 0) return false;
    if ((receiverCount.get(endpoint) ?? 0) * total !== count * edge.taskCount) return false;
  }
  return true;
}
