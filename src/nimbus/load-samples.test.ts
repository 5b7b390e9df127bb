import { describe, expect, it } from 'vitest';
import type { FoldedHeartbeat, TaskReport, WorkerHeartbeat } from '../coordination/index.js';
import { LoadMeter } from '../scheduling/index.js';
import { noteLoads } from './load-samples.js';

function folded(atMs: number, busy: Readonly<Record<number, number>>, workerId = 'w'): FoldedHeartbeat {
  const tasks = Object.entries(busy).map(
    // Only what is looked at.
    ([task, busyMs]) => ({ task: Number(task), component: 'a', generation: 1, busyMs }) as TaskReport,
  );
  const threads = [
    {
      executors: [
        [1, 2],
        [3, 3],
      ],
    },
  ] as unknown as WorkerHeartbeat['threads']; // as above
  const heartbeat = { topologyId: 't', workerId, threads, tasks } as unknown as WorkerHeartbeat; // as above
  const slot = { port: 1, state: 'running', topologyId: 't', workerId, pid: 1, restarts: 0 };
  return {
    supervisorId: 's',
    pid: 1,
    sequence: atMs,
    slots: [{ ...slot, lastProblem: null, heartbeat, heartbeatMs: atMs }],
    lastReports: [],
  };
}

describe('loads from heartbeats', () => {
  it('are the busy time of each executor over the time between them, once a window has passed', () => {
    const meter = new LoadMeter();
    for (let second = 0; second <= 10; second++)
      noteLoads(
        meter,
        [folded(second * 1000, { 1: second * 200, 2: second * 900, 3: second * 800 })],
        10_000,
      );
    // Task 2 is not the first of its executor.
    expect(meter.of('t')).toEqual(
      new Map([
        [1, 0.2],
        [3, 0.8],
      ]),
    );
  });

  it('go on from a worker that started again', () => {
    const meter = new LoadMeter();
    for (let second = 0; second <= 10; second++)
      noteLoads(meter, [folded(second * 1000, { 1: second * 500 })], 10_000);
    for (let second = 11; second <= 30; second++)
      noteLoads(meter, [folded(second * 1000, { 1: (second - 11) * 500 }, 'x')], 10_000);
    expect(meter.of('t')).toEqual(new Map([[1, 0.5]]));
  });
});
