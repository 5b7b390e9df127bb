/**
 * Runs one step at a time, whenever it is woken: a wake-up during a step makes one more step, any number of them just
 * one. A step that fails is tried again after a pause.
 */
import type { CancelTimer, Clock } from '../base/index.js';

export class WakeableLoop {
  readonly #step: () => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  readonly #clock: Clock;
  readonly #retryMs: number;
  #isWoken = false;
  #isClosed = false;
  #running: Promise<void> | undefined;
  readonly #waiting: (() => void)[] = [];
  #alarm: { readonly atMs: number; readonly cancel: CancelTimer } | undefined;

  constructor(options: {
    step: () => Promise<void>;
    onFailure: (error: unknown) => void;
    clock: Clock;
    retryMs: number;
  }) {
    this.#step = options.step;
    this.#onFailure = options.onFailure;
    this.#clock = options.clock;
    this.#retryMs = options.retryMs;
  }

  wake(): void {
    this.#isWoken = true;
    if (this.#isClosed) return;
    this.#running ??= this.#run();
  }

  /** Wakes, and resolves when a step that began after this call is over, well or not. */
  nextStep(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isClosed) return resolve();
      this.#waiting.push(resolve);
      this.wake();
    });
  }

  /** Wakes in `delayMs` at the latest. */
  wakeIn(delayMs: number): void {
    const atMs = this.#clock.nowMs() + delayMs;
    if (this.#isClosed || (this.#alarm !== undefined && this.#alarm.atMs <= atMs)) return;
    this.#alarm?.cancel();
    const cancel = this.#clock.after(delayMs, () => {
      this.#alarm = undefined;
      this.wake();
    });
    this.#alarm = { atMs, cancel };
  }

  /** Resolves when no step runs any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#alarm?.cancel();
    for (const resolve of this.#waiting.splice(0)) resolve();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isWoken && !this.#isClosed) {
      this.#isWoken = false;
      const waited = this.#waiting.splice(0);
      try {
        await this.#step();
      } catch (error) {
        this.#onFailure(error);
        this.wakeIn(this.#retryMs);
        // What woke it meanwhile is seen to after the pause.
        this.#isWoken = false;
      } finally {
        for (const resolve of waited) resolve();
      }
    }
    // In the same turn as the last look at #isWoken, or a wake-up in between is lost.
    this.#running = undefined;
  }
}
