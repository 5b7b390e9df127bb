import { describe, expect, it } from 'vitest';
import { DEFAULT_SETTINGS } from '../base/index.js';
import type { ReportedError, SlotReport, ThreadReport, WorkerHeartbeat } from '../coordination/index.js';
import type { Report } from './cluster-view.js';
import { workerTrouble } from './worker-trouble.js';

const NOW_MS = 100_000;

const thread = (parts: Partial<ThreadReport> = {}): ThreadReport => ({
  ...{ index: 0, generation: 1, state: 'busy', component: null, task: null, inCallMs: 0, longCalls: [] },
  ...{ lagMs: 0, executors: [], restarts: 0, ...parts },
});

const heartbeat = (parts: Partial<WorkerHeartbeat> = {}): WorkerHeartbeat => ({
  ...{ workerId: 'w', topologyId: 't', supervisorId: 's1', port: 6700, generation: 1, pid: 7, startedMs: 0 },
  ...{ assignmentVersion: 1, ready: true, sequence: 1, cpuMicros: 0, rssBytes: 0, threads: [thread()] },
  ...{ tasks: [], components: [], errors: [], lostStates: [], oldestPending: null, deadLetterFiles: [] },
  ...parts,
});

function report(own: WorkerHeartbeat | null, parts: Partial<SlotReport> = {}): Report {
  const slot: SlotReport = {
    ...{ port: 6700, state: 'running', topologyId: 't', workerId: 'w', pid: 7, restarts: 0 },
    ...{ lastProblem: null, heartbeat: own, heartbeatMs: NOW_MS - 3000, ...parts },
  };
  return { supervisorId: 's1', slot };
}

const trouble = (...reports: readonly Report[]): ReturnType<typeof workerTrouble> =>
  workerTrouble(reports, DEFAULT_SETTINGS, NOW_MS);

describe('the trouble of workers whose processes run', () => {
  it('is nothing where they are heard of and ready, or still start', () => {
    expect(trouble()).toBeNull();
    expect(trouble(report(heartbeat()))).toBeNull();
    expect(trouble(report(null, { heartbeatMs: null }))).toBeNull();
    expect(trouble(report(heartbeat({ ready: false })))).toBeNull();
  });

  it('is silence for several heartbeats, of a slot that counts as running', () => {
    const stopped = { heartbeatMs: NOW_MS - 24_000 };
    expect(trouble(report(heartbeat(), stopped))).toMatchObject({
      code: 'WORKER_SILENT',
      atMs: NOW_MS - 24_000,
      message: 'nothing has been heard of worker s1:6700 (pid 7) for 24 s; it counts as dead after 30 s',
    });
    expect(trouble(report(heartbeat(), { heartbeatMs: NOW_MS - 7000 }))).toBeNull();
    expect(trouble(report(heartbeat(), { ...stopped, state: 'stopping' }))).toBeNull();
  });

  it('is a call that does not return, the longest first, and no wait for a promise', () => {
    const call = { component: 'enrich', task: 10, call: 'process', forMs: 8000, isBlocking: true };
    const threads = [thread({ longCalls: [{ ...call, task: 9, forMs: 6000 }, call] })];
    expect(trouble(report(heartbeat({ threads })))).toMatchObject({
      code: 'THREAD_STUCK',
      atMs: NOW_MS - 3000 - 8000,
      message: 'enrich[10] on s1:6700 has been in process for 8 s; its thread does nothing else',
    });
    const waiting = [thread({ longCalls: [{ ...call, isBlocking: false }] })];
    expect(trouble(report(heartbeat({ threads: waiting })))).toBeNull();
    expect(trouble(report(heartbeat({ threads, workerId: 'before' })))).toBeNull();
  });

  it('is threads that end again and again before their worker is ready, with the last error', () => {
    const error = (message: string, lastMs: number): ReportedError => ({
      ...{ component: 's', task: 2, count: 8, firstMs: 0, lastMs },
      error: { code: 'USER_CODE_FAILED', message, details: {} },
    });
    const errors = [error('DB_URL is not set', 90_000), error('other', 50_000)];
    const crashing = { threads: [thread({ restarts: 8 })], errors };
    expect(trouble(report(heartbeat({ ...crashing, ready: false })))).toMatchObject({
      code: 'USER_CODE_FAILED',
      atMs: 90_000,
      message:
        'worker s1:6700 does not get ready, its threads have ended and were started again 8 ×: DB_URL is not set',
    });
    expect(trouble(report(heartbeat(crashing)))).toBeNull();
  });

  it('is of several workers the worst', () => {
    const call = { component: '', task: 0, call: 'code', forMs: 8000, isBlocking: true };
    const stuck = report(heartbeat({ threads: [thread({ longCalls: [call] })] }));
    expect(trouble(stuck, report(heartbeat()))?.message).toContain('thread 0 on s1:6700 has been in code');
    expect(trouble(stuck, report(heartbeat(), { heartbeatMs: 0 }))?.code).toBe('WORKER_SILENT');
  });
});
