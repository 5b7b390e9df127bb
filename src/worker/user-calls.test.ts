import { describe, expect, it } from 'vitest';
import { PROGRESS_WORDS } from './counters.js';
import { callingTask, callIn, followCalls, inCall } from './user-calls.js';

describe('calls of user code', () => {
  it('are known while they run, and over their awaits from when somebody asked for it', async () => {
    const progress = new Int32Array(PROGRESS_WORDS);
    const behindAwait = (task: number): Promise<number | undefined> =>
      inCall(progress, task, 'process', async () => {
        await Promise.resolve();
        return callingTask(progress);
      });
    expect(callingTask(progress)).toBeUndefined();
    expect(inCall(progress, 4, 'tick', () => [callIn(progress), callingTask(progress)])).toEqual(['tick', 4]);
    expect(await behindAwait(5)).toBeUndefined();
    followCalls();
    expect(await Promise.all([behindAwait(5), behindAwait(6)])).toEqual([5, 6]);
    expect(callingTask(progress)).toBeUndefined();
  });

  it('give way to the outer call again', () => {
    const progress = new Int32Array(PROGRESS_WORDS);
    inCall(progress, 1, 'process', () => {
      inCall(progress, 2, 'a custom grouping', () => expect(callingTask(progress)).toBe(2));
      expect([callIn(progress), callingTask(progress)]).toEqual(['process', 1]);
    });
  });
});
