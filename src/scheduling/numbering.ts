/**
 * Task numbers: components in name order, tasks numbered 1, 2, 3, … in that order. System components take part like any
 * other, so `__acker` comes after digits and capitals and before lower-case names.
 * Source: Storm's `stormTaskInfo`.
 */
import type { ComponentTasks } from './assignment.js';
import { compareText } from './order.js';

/**
 * Numbers the tasks of all components, in order of first task. Components without tasks (count 0 or less) get nothing.
 */
export function numberTasks(counts: Iterable<readonly [component: string, tasks: number]>): ComponentTasks[] {
  const numbered: ComponentTasks[] = [];
  let next = 1;
  for (const [component, tasks] of [...counts].sort(([a], [b]) => compareText(a, b))) {
    if (tasks <= 0) continue;
    numbered.push({ component, first: next, last: next + tasks - 1 });
    next += tasks;
  }
  return numbered;
}

/** How many tasks a numbering holds. */
export function totalTasks(numbered: readonly ComponentTasks[]): number {
  return numbered.at(-1)?.last ?? 0;
}
