/**
 * Which tasks with state run in this worker, on disk for its successor in the same slot: what the predecessor held when it ended
 * went with it, and is named as lost when those tasks start here again. One small file in the worker's own directory, written
 * when tasks come and go; a damaged or missing one means that nothing is known.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../base/index.js';

export class StateRecord {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #former: Set<number>;
  readonly #held = new Set<number>();

  /** Reads what the predecessor left. */
  constructor(directory: string, logger: Logger) {
    this.#path = join(directory, 'tasks-with-state.json');
    this.#logger = logger;
    this.#former = readTasks(this.#path);
  }

  /** Did the predecessor hold the state of a task, so that it is lost? True once. */
  takeLost(task: number): boolean {
    return this.#former.delete(task);
  }

  hold(tasks: readonly number[]): void {
    const before = this.#held.size;
    for (const task of tasks) this.#held.add(task);
    if (this.#held.size !== before) this.#write();
  }

  /** It has left with its state, or its state is known to be lost. */
  drop(task: number): void {
    if (this.#held.delete(task)) this.#write();
  }

  #write(): void {
    try {
      writeFileSync(`${this.#path}.new`, JSON.stringify([...this.#held]));
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      // Only the naming of what a crash takes along depends on it.
      this.#logger.warn('state-record.not-written', { message: String(error) });
    }
  }
}

function readTasks(path: string): Set<number> {
  try {
    const tasks: unknown = JSON.parse(readFileSync(path, 'utf8'));
    const isTask = (task: unknown): task is number => Number.isSafeInteger(task);
    return new Set(Array.isArray(tasks) ? tasks.filter(isTask) : []);
  } catch {
    return new Set();
  }
}
