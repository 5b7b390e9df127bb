import { describe, expect, it } from 'vitest';
import { compileSettings } from '../base/index.js';
import { quietIntervalMs, type TaskReport, type WorkerHeartbeat } from '../coordination/index.js';
import { HeartbeatPace } from './heartbeat-pace.js';

const TASK: TaskReport = {
  task: 1,
  component: 'c',
  emitted: 1,
  transferred: 0,
  executed: 0,
  acked: 0,
  failed: 0,
  replayed: 0,
  deadLetters: 0,
  unreplayable: 0,
  queued: 0,
  pending: 0,
  ended: false,
  stopped: false,
  generation: 1,
};

function heartbeat(parts: Partial<WorkerHeartbeat> = {}): WorkerHeartbeat {
  return {
    workerId: 'w',
    topologyId: 't',
    supervisorId: 's',
    port: 1,
    generation: 1,
    pid: 1,
    startedMs: 0,
    assignmentVersion: 1,
    ready: true,
    sequence: 1,
    cpuMicros: 0,
    rssBytes: 0,
    threads: [],
    tasks: [TASK],
    components: [],
    errors: [],
    lostStates: [],
    oldestPending: null,
    deadLetterFiles: [],
    ...parts,
  };
}

describe('the pace of heartbeats', () => {
  it('sends the first, and then what differs in more than what moves on by itself', () => {
    const pace = new HeartbeatPace(3000);
    expect(pace.isDue(heartbeat(), 0)).toBe(true);
    pace.noteSent(heartbeat(), 0);
    expect(pace.isDue(heartbeat({ sequence: 2, cpuMicros: 9, rssBytes: 9 }), 1000)).toBe(false);
    expect(pace.isDue(heartbeat({ tasks: [{ ...TASK, emitted: 2 }] }), 1000)).toBe(true);
    expect(pace.isDue(heartbeat({ tasks: [TASK, { ...TASK, task: 2 }] }), 1000)).toBe(true);
    expect(pace.isDue(heartbeat({ ready: false }), 1000)).toBe(true);
    expect(pace.isDue(heartbeat({ deadLetterFiles: ['f'] }), 1000)).toBe(true);
    const oldest = { component: 'c', task: 1, ageMs: 1, row: 'position 1', heldBy: null };
    expect(pace.isDue(heartbeat({ oldestPending: oldest }), 1000)).toBe(true);
    pace.noteSent(heartbeat({ oldestPending: oldest }), 1000);
    expect(pace.isDue(heartbeat({ oldestPending: { ...oldest, ageMs: 900 } }), 2000)).toBe(false);
  });

  it('sends what is the same once in the quiet interval', () => {
    const pace = new HeartbeatPace(3000);
    pace.noteSent(heartbeat(), 1000);
    expect(pace.isDue(heartbeat(), 3999)).toBe(false);
    expect(pace.isDue(heartbeat(), 4000)).toBe(true);
  });

  it('rests four times as long as a heartbeat took, but no longer than the quiet interval, nor before somebody new', () => {
    const pace = new HeartbeatPace(3000);
    expect(pace.restMs(0)).toBe(0);
    for (const cost of [30, 20, 25]) pace.noteCost(cost, 1000);
    expect([pace.restMs(1000), pace.restMs(1100), pace.restMs(1500)]).toEqual([80, 0, 0]);
    for (let time = 0; time < 3; time++) pace.noteCost(5000, 2000);
    expect(pace.restMs(2000)).toBe(3000);
    pace.reset();
    expect(pace.restMs(2000)).toBe(0);
  });

  it('does not rest because single ones took long, nor before it knows what they take', () => {
    const pace = new HeartbeatPace(3000);
    for (const [cost, at] of [
      [80, 100],
      [60, 200],
      [1, 300],
      [90, 400],
      [70, 500],
    ] as const) {
      pace.noteCost(cost, at);
      expect(pace.restMs(at)).toBeLessThanOrEqual(4);
    }
  });

  it('sends it to whoever is new', () => {
    const pace = new HeartbeatPace(3000);
    pace.noteSent(heartbeat(), 0);
    pace.reset();
    expect(pace.isDue(heartbeat(), 1)).toBe(true);
  });

  it('leaves a worker several heartbeats before it counts as dead', () => {
    expect(quietIntervalMs(compileSettings({}))).toBe(3000);
    expect(quietIntervalMs(compileSettings({ 'topology.worker-timeout': '8s' }))).toBe(2000);
    expect(quietIntervalMs(compileSettings({ 'topology.worker-timeout': '2s' }))).toBe(1000);
  });
});
