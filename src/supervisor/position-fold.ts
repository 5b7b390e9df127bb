/**
 * Positions that workers ask to store, folded to one write per topology, and bounded to a few writes a second however
 * many workers there are. A request is answered only when its positions are stored.
 */
import type { Clock } from '../base/index.js';
import type { StoredPosition } from '../coordination/index.js';

interface Waiting {
  readonly entries: Map<number, StoredPosition>;
  readonly answers: { resolve: () => void; reject: (error: unknown) => void }[];
}

interface Fold {
  waiting: Waiting | undefined;
  /** The write under way, or the pause before the next. */
  writing: Promise<void> | undefined;
  lastWriteMs: number;
}

export class PositionFold {
  readonly #store: (topologyId: string, entries: readonly StoredPosition[]) => Promise<void>;
  readonly #clock: Clock;
  readonly #minIntervalMs: number;
  readonly #folds = new Map<string, Fold>();

  constructor(
    store: (topologyId: string, entries: readonly StoredPosition[]) => Promise<void>,
    clock: Clock,
    minIntervalMs: number,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#minIntervalMs = minIntervalMs;
  }

  /** Resolves when these positions, or newer ones of the same tasks, are stored; rejects if that write failed. */
  store(topologyId: string, entries: readonly StoredPosition[]): Promise<void> {
    const fold = this.#foldOf(topologyId);
    const waiting: Waiting = (fold.waiting ??= { entries: new Map(), answers: [] });
    for (const entry of entries) {
      const before = waiting.entries.get(entry.task);
      if (before === undefined || before.generation <= entry.generation)
        waiting.entries.set(entry.task, entry);
    }
    return new Promise((resolve, reject) => {
      waiting.answers.push({ resolve, reject });
      fold.writing ??= this.#writeAll(topologyId, fold);
    });
  }

  /** Resolves when what was asked for until now has been written, or has failed. */
  async settled(topologyId: string): Promise<void> {
    await this.#folds.get(topologyId)?.writing;
  }

  #foldOf(topologyId: string): Fold {
    let fold = this.#folds.get(topologyId);
    if (fold === undefined) {
      fold = { waiting: undefined, writing: undefined, lastWriteMs: -Infinity };
      this.#folds.set(topologyId, fold);
    }
    return fold;
  }

  async #writeAll(topologyId: string, fold: Fold): Promise<void> {
    while (fold.waiting !== undefined) {
      const pauseMs = fold.lastWriteMs + this.#minIntervalMs - this.#clock.nowMs();
      if (pauseMs > 0) await new Promise<void>((resolve) => this.#clock.after(pauseMs, resolve));
      // Taken only now, so that what came during the pause goes with it.
      const { entries, answers } = fold.waiting;
      fold.waiting = undefined;
      fold.lastWriteMs = this.#clock.nowMs();
      try {
        await this.#store(topologyId, [...entries.values()]);
        for (const { resolve } of answers) resolve();
      } catch (error) {
        for (const { reject } of answers) reject(error);
      }
    }
    fold.writing = undefined;
  }
}
