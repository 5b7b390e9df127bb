/** Tasks whose state was lost in crashes: one line each, however often it was lost. */
import type { TopologyStatus } from '../../api/index.js';

export interface LostTask {
  readonly component: string;
  readonly task: number;
  readonly count: number;
  /** Of the last time, wall clock, ms. */
  readonly lastMs: number;
}

/** By task, the one that was lost last at the end. */
export function lostTasks(lostStates: TopologyStatus['lostStates']): readonly LostTask[] {
  const byTask = new Map<number, LostTask>();
  for (const { component, task, atMs } of lostStates) {
    const known = byTask.get(task);
    byTask.set(task, {
      component,
      task,
      count: (known?.count ?? 0) + 1,
      lastMs: Math.max(known?.lastMs ?? atMs, atMs),
    });
  }
  return [...byTask.values()].sort((a, b) => a.lastMs - b.lastMs || a.task - b.task);
}
