/**
 * Notices that a worker does nothing at all although trees are pending: then rows of them are nowhere, which only a bug
 * can bring about, and waiting longer would be for ever. Pure: what is observed and what peers say comes in.
 *
 * A tree that waits in a queue, is in user code or is under way is not quiet: something is executed, busy or queued in
 * this worker, or in a peer, and each of them is asked before anything is given up.
 */
export interface QuietObservation {
  /** Rises with everything that is emitted, executed, acked or failed in this worker. */
  readonly progress: number;
  /** A thread is in user code, a row is queued or in flight, or a task has no place now. */
  readonly busy: boolean;
  readonly pendingTrees: number;
}

export type QuietAction = 'none' | 'ask-peers' | 'expire';

export class QuietWatch {
  readonly #timeoutMs: number;
  #progress = -1;
  #sinceMs = 0;
  /** What peers have answered since this worker was quiet for the time-out: how long they were quiet themselves. */
  readonly #answers = new Map<string, number>();

  /** `timeoutMs`: how long all must have been quiet. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Call it regularly, once a second or so. `peers`: all workers that host tasks. */
  observe(nowMs: number, seen: QuietObservation, peers: readonly string[]): QuietAction {
    if (seen.busy || seen.progress !== this.#progress) {
      this.#progress = seen.progress;
      this.#sinceMs = nowMs;
      this.#answers.clear();
      return 'none';
    }
    if (seen.pendingTrees === 0 || this.quietMs(nowMs) < this.#timeoutMs) return 'none';
    if (!peers.every((peer) => (this.#answers.get(peer) ?? 0) >= this.#timeoutMs)) return 'ask-peers';
    this.#sinceMs = nowMs;
    this.#answers.clear();
    return 'expire';
  }

  /** Milliseconds for which this worker has been quiet, as of the last observation. */
  quietMs(nowMs: number): number {
    return this.#progress < 0 ? 0 : nowMs - this.#sinceMs;
  }

  onAnswer(peer: string, quietMs: number): void {
    this.#answers.set(peer, quietMs);
  }
}
