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
 * `local-or-shuffle` keeps to its own worker if that has any receiver (Storm's rule). Both leave out tasks that are on
 * their way to another place while there are others.
 */
export function preferredTargets(
  edge: Edge,
  sourceTask: number,
  routes: PlacesOfTasks,
  tasksOf: (component: string) => ComponentTasks | undefined,
): Int32Array | null {
  const kind = edge.grouping.kind;
  if (kind !== 'shuffle' && kind !== 'local-or-shuffle') return null;
  const near = nearTargets(edge, kind, sourceTask, routes, tasksOf);
  if (routes.held.length === 0) return near;
  const onTheirWay = new Set(routes.held.map(({ task }) => task - edge.firstTask));
  const stays = (target: number): boolean => !onTheirWay.has(target);
  const nearThatStay = near?.filter(stays) ?? new Int32Array(0);
  if (nearThatStay.length > 0) return nearThatStay;
  const all = Int32Array.from({ length: edge.taskCount }, (_, i) => i).filter(stays);
  return all.length === 0 || all.length === edge.taskCount ? near : all;
}

export interface PlacesOfTasks {
  readonly endpointOfTask: Int32Array;
  /** `peer` −1: a thread of this worker. */
  readonly endpoints: readonly { readonly id: number; readonly peer: number }[];
  /** Tasks on their way. */
  readonly held: readonly { readonly task: number }[];
}

function nearTargets(
  edge: Edge,
  kind: 'shuffle' | 'local-or-shuffle',
  sourceTask: number,
  routes: PlacesOfTasks,
  tasksOf: (component: string) => ComponentTasks | undefined,
): Int32Array | null {
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
