/** What heartbeats say of how busy executors are. */
import type { FoldedHeartbeat } from '../coordination/index.js';
import type { LoadMeter } from '../scheduling/index.js';

/** Busy time is reported at the first task of each executor, and counts from the start of its worker. */
export function noteLoads(meter: LoadMeter, heartbeats: readonly FoldedHeartbeat[], windowMs: number): void {
  for (const { slots } of heartbeats) {
    for (const { heartbeat, heartbeatMs } of slots) {
      if (heartbeat === null || heartbeatMs === null) continue;
      const { topologyId, workerId, threads, tasks } = heartbeat;
      const firsts = new Set(threads.flatMap(({ executors }) => executors.map(([first]) => first)));
      for (const { task, generation, busyMs, isRunning = true } of tasks) {
        if (busyMs === undefined || !isRunning || !firsts.has(task)) continue;
        const incarnation = `${workerId}/${generation}`;
        meter.note({ topologyId, firstTask: task, incarnation, busyMs, atMs: heartbeatMs }, windowMs);
      }
    }
  }
}
