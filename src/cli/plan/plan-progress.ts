/** What a long plan is at, on standard error: nothing for one that takes less than a second. */
import { systemClock } from '../../base/index.js';

/** From then on every step is said. */
const SILENT_MS = 1000;
/** Executors of which the first round alone takes about as long. */
const MANY_EXECUTORS = 100_000;

export class PlanProgress {
  readonly #err: { write(text: string): unknown };
  readonly #clock: { nowMs(): number };
  readonly #startedMs: number;

  constructor(err: { write(text: string): unknown }, clock: { nowMs(): number } = systemClock) {
    this.#err = err;
    this.#clock = clock;
    this.#startedMs = clock.nowMs();
  }

  /** Before a step. `executors`: how many it is about; a step of many is said in any case. */
  step(what: string, executors = 0): void {
    const elapsedMs = this.#clock.nowMs() - this.#startedMs;
    if (elapsedMs < SILENT_MS && executors < MANY_EXECUTORS) return;
    this.#err.write(`isobar plan: ${what}, after ${(elapsedMs / 1000).toFixed(1)} s\n`);
  }
}
