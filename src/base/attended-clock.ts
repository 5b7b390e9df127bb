/**
 * A clock on which time passes only while this process runs. Whoever judges the silence of others by it does not take a
 * pause of its own (of the machine, its container, or this process alone) for theirs: what they would have said meanwhile
 * is still unread, or they were paused as well.
 */
import type { CancelTimer, Clock } from './clock.js';

const LOOK_MS = 1000;
/** Looks that are further apart than this were not late but prevented. */
const LONGEST_GAP_MS = 3000;

/** Moments and the wall clock are those of `clock`; durations, and timers that fire once, leave pauses out. */
export function attendedClock(clock: Clock): Clock {
  let seenMs = clock.nowMs();
  let missedMs = 0;
  const nowMs = (): number => {
    const now = clock.nowMs();
    if (now - seenMs > LONGEST_GAP_MS) missedMs += now - seenMs - LOOK_MS;
    seenMs = now;
    return now - missedMs;
  };
  clock.every(LOOK_MS, nowMs);
  const after = (delayMs: number, run: () => void): CancelTimer => {
    const dueMs = nowMs() + delayMs;
    let cancel: CancelTimer;
    const wait = (ms: number): void => {
      cancel = clock.after(ms, () => {
        const leftMs = dueMs - nowMs();
        if (leftMs >= 1) wait(leftMs);
        else run();
      });
    };
    wait(delayMs);
    return () => cancel();
  };
  return {
    wallMs: () => clock.wallMs(),
    nowMs,
    moment: () => clock.moment(),
    after,
    every: (periodMs, run) => clock.every(periodMs, run),
  };
}
