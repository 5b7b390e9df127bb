import { describe, expect, it } from 'vitest';
import { judgeHello } from './hello.js';
import type { Desired, SlotState, SlotWorker } from './slot-plan.js';

const TUNING = { launchTimeoutMs: 1, timeoutMs: 1, backoffMs: 1, backoffMaxMs: 1 };
const WORKER: SlotWorker = {
  workerId: 'w5',
  topologyId: 'words',
  generation: 5,
  process: { pid: 100, startTime: '1' },
  tuning: TUNING,
};
const HELD = { attempts: 1, failures: 0, worker: WORKER };
const RUNNING: SlotState = { kind: 'running', sinceMs: 0, seenMs: 0, ...HELD };
const STOPPING: SlotState = { kind: 'stopping', reason: 'assignment', killAtMs: 0, ...HELD };
const TRYING = { attempts: 1, failures: 0, topologyId: 'words' };
const WORDS: Desired = { kind: 'worker', topologyId: 'words', hasTasks: true };
const hello = (workerId: string, generation: number, topologyId = 'words') => ({
  workerId,
  generation,
  topologyId,
});

describe('a hello', () => {
  it.each<[string, SlotState, Desired, ReturnType<typeof hello>, string]>([
    ['of the worker of the slot', RUNNING, WORDS, hello('w5', 5), 'accept'],
    ['of the worker of the slot, whatever is assigned', RUNNING, { kind: 'none' }, hello('w5', 5), 'accept'],
    ['of a worker that is being stopped', STOPPING, WORDS, hello('w5', 5), 'refuse'],
    ['of another worker, even of a newer one', RUNNING, WORDS, hello('w9', 9), 'refuse'],
    ['while a worker is being launched', { kind: 'launching', ...TRYING }, WORDS, hello('w9', 9), 'refuse'],
    ['for a free slot', { kind: 'empty', attempts: 0 }, WORDS, hello('w5', 5), 'adopt'],
    ['while code is being localised', { kind: 'localising', ...TRYING }, WORDS, hello('w5', 5), 'adopt'],
    ['during a pause', { kind: 'backing-off', untilMs: 1, ...TRYING }, WORDS, hello('w5', 5), 'adopt'],
    ['of an older generation', { kind: 'empty', attempts: 0 }, WORDS, hello('w4', 4), 'refuse'],
    ['of another topology', { kind: 'empty', attempts: 0 }, WORDS, hello('w5', 5, 'other'), 'refuse'],
    [
      'for a slot without topology',
      { kind: 'empty', attempts: 0 },
      { kind: 'none' },
      hello('w5', 5),
      'refuse',
    ],
    [
      'while the assignment is unknown',
      { kind: 'empty', attempts: 0 },
      { kind: 'unknown' },
      hello('w5', 5),
      'refuse',
    ],
  ])('%s', (_, state, desired, given, verdict) => {
    expect(judgeHello(state, desired, given, 5)).toBe(verdict);
  });
});
