/** The order in which `even` fills slots: one of each machine in turn, machines with most free slots first. */
import type { Slot } from '../../cluster-snapshot.js';
import { compareText } from '../../order.js';

/**
 * Sorts free slots: groups by supervisor, ascending port inside a group; groups by size, largest first, ties by id; then
 * the first slot of every group, the second of every group that has one, and so on.
 * `WorkingCluster.firstFreeSlots` gives the first of the same order without sorting all.
 * Source: Storm's `EvenScheduler.sortSlots`.
 */
export function sortSlots(slots: readonly Slot[]): Slot[] {
  const portsOf = new Map<string, number[]>();
  for (const { supervisor, port } of slots) {
    const ports = portsOf.get(supervisor);
    if (ports === undefined) portsOf.set(supervisor, [port]);
    else ports.push(port);
  }
  const groups = [...portsOf].sort(([a, p], [b, q]) => q.length - p.length || compareText(a, b));
  for (const [, ports] of groups) ports.sort((a, b) => a - b);
  const sorted: Slot[] = [];
  for (let row = 0; sorted.length < slots.length; row++) {
    for (const [supervisor, ports] of groups) {
      if (row >= ports.length) break;
      sorted.push({ supervisor, port: ports[row]! });
    }
  }
  return sorted;
}
