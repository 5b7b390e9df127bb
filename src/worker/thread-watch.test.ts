import { describe, expect, it } from 'vitest';
import { P_CALLS, P_TASK, P_TURNS, PROGRESS_WORDS } from './counters.js';
import { ThreadWatch } from './thread-watch.js';
import { inCall } from './user-calls.js';

function thread() {
  const progress = new Int32Array(PROGRESS_WORDS);
  let idleMs = 0;
  const watch = new ThreadWatch(progress, () => idleMs, 0);
  return { progress, watch, sleepTo: (ms: number) => void (idleMs = ms) };
}

describe('ThreadWatch', () => {
  it('takes a thread that turns for busy, and one that sleeps for idle, however long', () => {
    const { progress, watch, sleepTo } = thread();
    progress[P_TURNS] = 1;
    expect(watch.observe(100, 5000, 'running')).toMatchObject({ state: 'busy', task: null, call: null });
    for (let nowMs = 200; nowMs < 60_000; nowMs += 200) {
      sleepTo(nowMs);
      expect(watch.observe(nowMs, 5000, 'running')).toMatchObject({ state: 'idle', inCallMs: 0 });
    }
  });

  it('names the call that does not return, and for how long', () => {
    const { progress, watch } = thread();
    watch.observe(0, 5000, 'running');
    inCall(progress, 7, 'prepare', () => {
      watch.observe(1000, 5000, 'running');
      expect(watch.observe(5900, 5000, 'running')).toMatchObject({ state: 'busy', call: 'prepare' });
      expect(watch.observe(6100, 5000, 'running')).toMatchObject({
        state: 'stuck',
        task: 7,
        call: 'prepare',
        inCallMs: 5100,
      });
    });
    expect(watch.observe(6200, 5000, 'running')).toMatchObject({ state: 'busy', call: null });
  });

  it('sees that a call inside a call is over', () => {
    const { progress, watch } = thread();
    inCall(progress, 3, 'process', () => {
      inCall(progress, 3, 'a custom grouping', () => {
        expect(watch.observe(100, 5000, 'running').call).toBe('a custom grouping');
      });
      expect(watch.observe(200, 5000, 'running').call).toBe('process');
      expect(() =>
        inCall(progress, 9, 'ack', () => {
          throw new Error('away');
        }),
      ).toThrow('away');
      expect(progress[P_TASK]).toBe(3);
    });
    expect(watch.observe(300, 5000, 'running').call).toBeNull();
    expect(progress[P_CALLS]).toBe(3);
  });

  it('takes a thread that neither turns nor rests for stuck, although no call is marked', () => {
    const { progress, watch, sleepTo } = thread();
    progress[P_TASK] = 4;
    sleepTo(50);
    watch.observe(100, 5000, 'running');
    expect(watch.observe(5000, 5000, 'running')).toMatchObject({ state: 'idle', call: null });
    expect(watch.observe(5200, 5000, 'running')).toMatchObject({
      state: 'stuck',
      call: 'code',
      inCallMs: 5100,
    });
    sleepTo(60);
    expect(watch.observe(5400, 5000, 'running')).toMatchObject({ state: 'idle', call: null });
  });

  it('says so too of a thread that is loading its code, and not of one that is gone', () => {
    const { watch } = thread();
    watch.observe(0, 5000, 'starting');
    expect(watch.observe(6000, 5000, 'starting')).toMatchObject({ state: 'starting', call: 'code' });
    expect(watch.observe(9000, 5000, 'dead')).toMatchObject({ state: 'dead', call: null });
  });
});
