/**
 * Tells from outside what an executor thread is doing: from its progress words, and from the time that its event loop has
 * been idle. Busy, stuck and asleep are told apart also where the thread is in code that no call of a task marks, such as
 * what follows an `await`: a loop that neither turns nor rests is in JavaScript.
 */
import type { ThreadState } from '../coordination/index.js';
import { P_CALLS, P_LAG_MS, P_TASK, P_TURNS } from './counters.js';
import { callIn } from './user-calls.js';

export interface ThreadObservation {
  readonly state: ThreadState;
  /** Task in whose code the thread is, or was last. */
  readonly task: number | null;
  /** The call that it is in; `code`: it is stuck outside any; null: in none. */
  readonly call: string | null;
  /** For how long, ms; 0: in none. */
  readonly inCallMs: number;
  readonly lagMs: number;
}

export class ThreadWatch {
  readonly #progress: Int32Array;
  /** Milliseconds that the thread's event loop has been idle in all, up to now. */
  readonly #loopIdleMs: () => number;
  #calls = -1;
  #turns = -1;
  #called: string | null = null;
  #idleMs = -1;
  #sinceMs: number;

  constructor(progress: Int32Array, loopIdleMs: () => number, nowMs: number) {
    this.#progress = progress;
    this.#loopIdleMs = loopIdleMs;
    this.#sinceMs = nowMs;
  }

  /** Call it regularly: durations are measured between calls. */
  observe(nowMs: number, stuckMs: number, life: 'starting' | 'running' | 'dead'): ThreadObservation {
    const progress = this.#progress;
    const [calls, turns] = [progress[P_CALLS]!, progress[P_TURNS]!];
    const called = callIn(progress);
    const hasCalled = calls !== this.#calls || called !== this.#called;
    const moved = hasCalled || turns !== this.#turns;
    // In a call nothing rests; otherwise a thread that does not turn may be asleep.
    const idleMs = called !== null || life === 'dead' ? this.#idleMs : this.#loopIdleMs();
    if (moved || idleMs !== this.#idleMs) {
      this.#calls = calls;
      this.#turns = turns;
      this.#called = called;
      this.#idleMs = idleMs;
      this.#sinceMs = nowMs;
    }
    const stillMs = nowMs - this.#sinceMs;
    const isStuck = life !== 'dead' && stillMs >= stuckMs;
    const call = called ?? (isStuck ? 'code' : null);
    let state: ThreadState = life === 'running' ? 'idle' : life;
    if (life === 'running' && isStuck) state = 'stuck';
    else if (life === 'running' && (call !== null || hasCalled)) state = 'busy';
    return {
      state,
      task: progress[P_TASK] === 0 ? null : progress[P_TASK]!,
      call,
      inCallMs: call === null ? 0 : stillMs,
      lagMs: progress[P_LAG_MS]!,
    };
  }
}
