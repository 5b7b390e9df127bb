import { describe, expect, it } from 'vitest';
import type { FoldedHeartbeat, SupervisorRecord, WorkerHeartbeat } from '../coordination/index.js';
import { Liveness, type SlotQuestion } from './liveness.js';

const START_MS = 10_000;
const QUESTION: SlotQuestion = {
  topologyId: 't',
  supervisor: 's',
  port: 1,
  timeoutMs: 100,
  launchTimeoutMs: 400,
  startedMs: START_MS + 50,
};

function worker(sequence: number, workerId = 'w'): WorkerHeartbeat {
  return {
    workerId,
    topologyId: 't',
    supervisorId: 's',
    port: 1,
    generation: 1,
    pid: 1,
    startedMs: 0,
    assignmentVersion: 1,
    ready: true,
    sequence,
    cpuMicros: 0,
    rssBytes: 0,
    threads: [
      {
        index: 0,
        generation: 1,
        state: 'idle',
        component: null,
        task: null,
        inCallMs: 0,
        longCalls: [],
        lagMs: 0,
        executors: [[1, 2]],
        restarts: 0,
      },
    ],
    tasks: [],
    components: [],
    errors: [],
    lostStates: [],
    oldestPending: null,
    deadLetterFiles: [],
  };
}

function folded(
  sequence: number,
  heartbeat: WorkerHeartbeat | null,
  workerId: string | null = 'w',
): FoldedHeartbeat {
  const slot = {
    port: 1,
    state: 'running',
    topologyId: 't',
    pid: 1,
    restarts: 0,
    lastProblem: null,
    heartbeatMs: 0,
  };
  return { supervisorId: 's', pid: 1, sequence, slots: [{ ...slot, workerId, heartbeat }], lastReports: [] };
}

const RECORD: SupervisorRecord = {
  id: 's',
  host: 'h',
  rack: 'r',
  ports: [1],
  cores: 1,
  memoryBytes: 1,
  owner: 'o',
  startedMs: 0,
};

describe('an executor', () => {
  it('has not been heard from until a thread that holds it is reported', () => {
    const liveness = new Liveness(START_MS);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 60)(1)).toBeUndefined();
    liveness.noteHeartbeats([folded(1, worker(1))], START_MS + 60);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 70)(1)).toBe(START_MS + 60);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 70)(3)).toBeUndefined();
  });

  it('is not kept alive by a heartbeat that is only repeated', () => {
    const liveness = new Liveness(START_MS);
    liveness.noteHeartbeats([folded(1, worker(1))], START_MS + 60);
    liveness.noteHeartbeats([folded(2, worker(1))], START_MS + 90);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 91)(1)).toBe(START_MS + 60);
    liveness.noteHeartbeats([folded(3, worker(2))], START_MS + 95);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 96)(1)).toBe(START_MS + 95);
  });

  it('is not kept alive by the last words of a worker that is gone', () => {
    const liveness = new Liveness(START_MS);
    liveness.noteHeartbeats([folded(1, worker(1), null)], START_MS + 60);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 61)(1)).toBeUndefined();
  });

  it('has a full time-out after Nimbus was started anew', () => {
    const liveness = new Liveness(START_MS);
    const question = { ...QUESTION, startedMs: START_MS - 100_000 };
    expect(liveness.lastHeartbeats(question, START_MS + 99)(1)).toBe(START_MS);
    expect(liveness.lastHeartbeats(question, START_MS + 101)(1)).toBe(START_MS);
  });

  it('is left to its supervisor for the time of a launch while that one reports', () => {
    const liveness = new Liveness(START_MS);
    liveness.noteHeartbeats([folded(1, worker(1))], START_MS + 60);
    for (let sequence = 2, nowMs = START_MS + 110; nowMs < START_MS + 560; sequence++, nowMs += 50) {
      liveness.noteHeartbeats([folded(sequence, null, null)], nowMs);
      const lastMs = liveness.lastHeartbeats(QUESTION, nowMs)(1) ?? 0;
      expect(nowMs - lastMs).toBeLessThan(100);
    }
    liveness.noteHeartbeats([folded(99, null, null)], START_MS + 560);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 560)(1)).toBe(START_MS + 60);
  });

  it('is silent after its time-out when its supervisor is silent too', () => {
    const liveness = new Liveness(START_MS);
    liveness.noteHeartbeats([folded(1, worker(1))], START_MS + 60);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 161)(1)).toBe(START_MS + 60);
  });

  it('is kept alive by a worker that speaks for itself', () => {
    const liveness = new Liveness(START_MS);
    liveness.noteWorkers([worker(5)], START_MS + 60);
    expect(liveness.lastHeartbeats(QUESTION, START_MS + 61)(1)).toBe(START_MS + 60);
  });
});

describe('a machine', () => {
  const assigned = new Set(['s']);
  const look = (
    liveness: Liveness,
    nowMs: number,
    present: SupervisorRecord[],
    announced: WorkerHeartbeat[],
  ) => liveness.goneSupervisors(assigned, present, announced, 300, nowMs);

  it('is gone when its supervisor is and no worker has announced itself within the grace', () => {
    const liveness = new Liveness(0);
    expect(look(liveness, 0, [RECORD], []).gone.size).toBe(0);
    expect(look(liveness, 10, [], [])).toEqual({ gone: new Set(), nextCheckMs: 310 });
    expect(look(liveness, 309, [], []).gone.size).toBe(0);
    expect(look(liveness, 310, [], []).gone).toEqual(assigned);
  });

  it('is there while one of its workers says so, and for the grace after', () => {
    const liveness = new Liveness(0);
    look(liveness, 10, [], []);
    expect(look(liveness, 400, [], [worker(1)])).toEqual({ gone: new Set(), nextCheckMs: null });
    expect(look(liveness, 500, [], []).gone.size).toBe(0);
    expect(look(liveness, 800, [], []).gone).toEqual(assigned);
  });

  it('is there again when its supervisor is', () => {
    const liveness = new Liveness(0);
    look(liveness, 0, [], []);
    look(liveness, 200, [RECORD], []);
    expect(look(liveness, 400, [], []).gone.size).toBe(0);
  });
});
