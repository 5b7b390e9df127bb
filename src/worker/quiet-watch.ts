/**
 * Notices trees whose rows are nowhere, which only a bug can bring about, and for which waiting longer would be for ever.
 * Pure: what is observed and what peers say comes in.
 *
 * A tree that waits in a queue, is in user code or is under way is not quiet: something is executed, busy or queued in
 * this worker, or in a peer, and each of them is asked before anything is given up. Peers answer in order behind the rows that
 * were sent to them before.
 *
 * Two findings. Quiet: nothing at all was done; trees are given up. Calm: whenever somebody looked, nothing was queued or
 * in user code, although something is done, as where ticks emit; then old trees are suspect, and marked as after a loss.
 */
export interface QuietObservation {
  /** Rises with everything that is emitted, executed, acked or failed in this worker. */
  readonly progress: number;
  /** A thread is in user code, a row is queued or in flight, or a task has no place now. */
  readonly busy: boolean;
  readonly pendingTrees: number;
}

/** For how long a worker has done nothing at all, and for how long it has not been seen busy, ms. */
export interface Rest {
  readonly quietMs: number;
  readonly calmMs: number;
}

export type QuietAction = 'none' | 'ask-peers' | 'expire' | 'suspect';

/** An answer that is older says nothing about now. */
const FRESH_MS = 3000;

export class QuietWatch {
  readonly #timeoutMs: number;
  #progress = -1;
  #quietSinceMs = 0;
  #calmSinceMs = 0;
  /** What peers have answered since this worker was last seen busy. */
  readonly #answers = new Map<string, Rest & { readonly atMs: number }>();

  /** `timeoutMs`: how long all must have been quiet, or calm. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Call it regularly, once a second or so. `peers`: all workers that host tasks. */
  observe(nowMs: number, seen: QuietObservation, peers: readonly string[]): QuietAction {
    if (seen.busy || this.#progress < 0) {
      this.#calmSinceMs = nowMs;
      this.#answers.clear();
    }
    if (seen.busy || seen.progress !== this.#progress) {
      this.#progress = seen.progress;
      this.#quietSinceMs = nowMs;
    }
    if (seen.pendingTrees === 0) return 'none';
    const { quietMs, calmMs } = this.rest(nowMs);
    if (calmMs < this.#timeoutMs) return 'none';
    const answers = peers.map((peer) => this.#answers.get(peer));
    const doAll = (what: keyof Rest): boolean =>
      answers.every(
        (answer) =>
          answer !== undefined && nowMs - answer.atMs <= FRESH_MS && answer[what] >= this.#timeoutMs,
      );
    if (quietMs >= this.#timeoutMs && doAll('quietMs')) {
      this.#quietSinceMs = nowMs;
      this.#startAgain(nowMs);
      return 'expire';
    }
    if (!doAll('calmMs')) return 'ask-peers';
    this.#startAgain(nowMs);
    return 'suspect';
  }

  /** As of the last observation. */
  rest(nowMs: number): Rest {
    if (this.#progress < 0) return { quietMs: 0, calmMs: 0 };
    return { quietMs: nowMs - this.#quietSinceMs, calmMs: nowMs - this.#calmSinceMs };
  }

  onAnswer(peer: string, { quietMs, calmMs }: Rest, nowMs: number): void {
    this.#answers.set(peer, { quietMs, calmMs, atMs: nowMs });
  }

  #startAgain(nowMs: number): void {
    this.#calmSinceMs = nowMs;
    this.#answers.clear();
  }
}
