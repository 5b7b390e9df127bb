/** The clock as a port: real in daemons and workers, moved by hand in tests. */
import { readFileSync } from 'node:fs';

/** Cancels a timer; calling it again, or after the timer fired, does nothing. */
export type CancelTimer = () => void;

/**
 * A moment that can be stored and compared after a restart. Moments of one boot of one machine differ by the time that
 * has passed, whatever was done to the wall clock; others can only be compared by that.
 */
export interface StoredMoment {
  /** Milliseconds since the Unix epoch. */
  readonly wallMs: number;
  /** Names the machine and its boot; empty: not known. */
  readonly boot: string;
  /** Milliseconds since that boot, not counting time that the machine slept. */
  readonly bootMs: number;
}

export interface Clock {
  /** Milliseconds since the Unix epoch; may jump when the machine's clock is set. For records that people read. */
  wallMs(): number;
  /** Milliseconds since an arbitrary start; never jumps. For every duration and deadline. */
  nowMs(): number;
  /** Now, to be stored. */
  moment(): StoredMoment;
  /** Calls `run` once after `delayMs`. The timer does not keep the process alive. */
  after(delayMs: number, run: () => void): CancelTimer;
  /** Calls `run` every `periodMs`. The timer does not keep the process alive. */
  every(periodMs: number, run: () => void): CancelTimer;
}

/** The machine's clock. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  nowMs: () => performance.now(),
  moment: () => ({
    wallMs: Date.now(),
    boot: thisBoot(),
    bootMs: Number(process.hrtime.bigint() / 1_000_000n),
  }),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  every(periodMs, run) {
    const timer = setInterval(run, periodMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};

let boot: string | undefined;

/** The kernel's name for this boot; empty where there is none. */
function thisBoot(): string {
  try {
    boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    boot = '';
  }
  return boot;
}

/** Milliseconds that have passed between two moments; never negative. */
export function msBetween(earlier: StoredMoment, later: StoredMoment): number {
  const sameBoot = earlier.boot !== '' && earlier.boot === later.boot;
  return Math.max(0, sameBoot ? later.bootMs - earlier.bootMs : later.wallMs - earlier.wallMs);
}

/** A clock that stands still until it is moved; timers fire in order of their due time. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  readonly #epochMs: number;
  #nextId = 1;
  readonly #timers = new Map<number, { dueMs: number; periodMs: number | undefined; run: () => void }>();

  constructor(epochMs = 1_700_000_000_000) {
    this.#epochMs = epochMs;
  }

  wallMs(): number {
    return this.#epochMs + this.#nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  moment(): StoredMoment {
    return { wallMs: this.wallMs(), boot: 'virtual', bootMs: this.#nowMs };
  }

  after(delayMs: number, run: () => void): CancelTimer {
    return this.#add(delayMs, undefined, run);
  }

  every(periodMs: number, run: () => void): CancelTimer {
    return this.#add(periodMs, periodMs, run);
  }

  /** Moves time forward, firing what falls due, in order of due time and then of creation. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      let next: { id: number; dueMs: number } | undefined;
      for (const [id, timer] of this.#timers) {
        if (timer.dueMs <= endMs && (next === undefined || timer.dueMs < next.dueMs))
          next = { id, dueMs: timer.dueMs };
      }
      if (next === undefined) break;
      const timer = this.#timers.get(next.id)!;
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs);
      if (timer.periodMs === undefined) this.#timers.delete(next.id);
      else timer.dueMs += timer.periodMs;
      timer.run();
    }
    this.#nowMs = endMs;
  }

  #add(delayMs: number, periodMs: number | undefined, run: () => void): CancelTimer {
    const id = this.#nextId++;
    this.#timers.set(id, { dueMs: this.#nowMs + Math.max(0, delayMs), periodMs, run });
    return () => this.#timers.delete(id);
  }
}
