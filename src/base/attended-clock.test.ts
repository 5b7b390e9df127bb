import { describe, expect, it } from 'vitest';
import { attendedClock } from './attended-clock.js';
import { type Clock, VirtualClock } from './clock.js';

/** A process that can be paused: meanwhile time passes and no timer fires; afterwards those that are due fire late. */
function pausable(): { clock: Clock; run: (ms: number) => void; pause: (ms: number) => void } {
  const virtual = new VirtualClock();
  let late: (() => void)[] = [];
  let isPaused = false;
  const fire = (run: () => void) => (): void => {
    if (isPaused) late.push(run);
    else run();
  };
  return {
    clock: {
      wallMs: () => virtual.wallMs(),
      nowMs: () => virtual.nowMs(),
      moment: () => virtual.moment(),
      after: (delayMs, run) => virtual.after(delayMs, fire(run)),
      every: (periodMs, run) => virtual.every(periodMs, fire(run)),
    },
    run: (ms) => virtual.advance(ms),
    pause(ms) {
      isPaused = true;
      virtual.advance(ms);
      isPaused = false;
      const due = late;
      late = [];
      for (const run of due) run();
    },
  };
}

describe('attendedClock', () => {
  it('counts time while the process runs, and not the time that it was paused', () => {
    const { clock, run, pause } = pausable();
    const attended = attendedClock(clock);
    run(20_500);
    expect(attended.nowMs()).toBe(20_500);
    pause(60_000);
    run(5000);
    expect(attended.nowMs()).toBeGreaterThanOrEqual(25_500);
    expect(attended.nowMs()).toBeLessThan(28_000);
    expect(attended.wallMs()).toBe(clock.wallMs());
  });

  it('fires a timer only once so much time has passed in which the process ran', () => {
    const { clock, run, pause } = pausable();
    const attended = attendedClock(clock);
    const fired: number[] = [];
    attended.after(30_000, () => fired.push(clock.nowMs()));
    run(10_000);
    pause(40_000);
    expect(fired).toEqual([]);
    run(17_000);
    expect(fired).toEqual([]);
    run(5000);
    expect(fired).toHaveLength(1);
  });

  it('fires on time where nothing was paused, and not once it is cancelled', () => {
    const virtual = new VirtualClock();
    const attended = attendedClock(virtual);
    const fired: string[] = [];
    attended.after(5000, () => fired.push('kept'));
    const cancel = attended.after(5000, () => fired.push('cancelled'));
    virtual.advance(4999);
    cancel();
    expect(fired).toEqual([]);
    virtual.advance(1);
    expect(fired).toEqual(['kept']);
  });

  it('lets a cancel reach a timer that was put off by a pause', () => {
    const { clock, run, pause } = pausable();
    const attended = attendedClock(clock);
    let fired = 0;
    const cancel = attended.after(5000, () => fired++);
    pause(20_000);
    cancel();
    run(20_000);
    expect(fired).toBe(0);
  });
});
