/**
 * Which tasks with state run in this worker, on disk for its successor in the same slot: what the predecessor held when it ended
 * went with it, and is named as lost when those tasks start here again. One small file in the worker's own directory; a damaged or
 * missing one means that nothing is known.
 *
 * Each line is a list of tasks that came (`+1,2,3`) or went (`-2`), so that a change costs what has changed, however many
 * tasks there are. The first line of a life replaces what was there, and now and then all of it is written anew.
 */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../base/index.js';

/** When the lines behind the first are longer, all of it is written anew. */
const COMPACTION_BYTES = 64 * 1024;

export class StateRecord {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #former: Set<number>;
  readonly #held = new Set<number>();
  /** null: the file is the predecessor's, or may be damaged. */
  #appendedBytes: number | null = null;

  /** Reads what the predecessor left. */
  constructor(directory: string, logger: Logger) {
    this.#path = join(directory, 'tasks-with-state');
    this.#logger = logger;
    this.#former = readTasks(this.#path);
  }

  /** Did the predecessor hold the state of a task, so that it is lost? True once. */
  takeLost(task: number): boolean {
    return this.#former.delete(task);
  }

  hold(tasks: readonly number[]): void {
    const added = tasks.filter((task) => !this.#held.has(task));
    for (const task of added) this.#held.add(task);
    if (added.length > 0) this.#write('+', added);
  }

  /** They have left with their state, or their state is known to be lost. */
  drop(tasks: readonly number[]): void {
    const dropped = tasks.filter((task) => this.#held.delete(task));
    if (dropped.length > 0) this.#write('-', dropped);
  }

  #write(sign: '+' | '-', tasks: readonly number[]): void {
    const line = `${sign}${tasks.join(',')}\n`;
    try {
      const appendedBytes = (this.#appendedBytes ?? Infinity) + line.length;
      this.#appendedBytes = null;
      if (appendedBytes <= COMPACTION_BYTES) {
        appendFileSync(this.#path, line);
        this.#appendedBytes = appendedBytes;
        return;
      }
      writeFileSync(`${this.#path}.new`, `+${[...this.#held].join(',')}\n`);
      renameSync(`${this.#path}.new`, this.#path);
      this.#appendedBytes = 0;
    } catch (error) {
      // Only the naming of what a crash takes along depends on it.
      this.#logger.warn('state-record.not-written', { message: String(error) });
    }
  }
}

/** A last line without its end was being written by a process that was killed. */
function readTasks(path: string): Set<number> {
  const tasks = new Set<number>();
  try {
    for (const line of readFileSync(path, 'latin1').split('\n').slice(0, -1)) {
      if (!/^[+-](\d+(,\d+)*)?$/.test(line)) return new Set();
      for (const task of line.length === 1 ? [] : line.slice(1).split(',').map(Number)) {
        if (line.startsWith('+')) tasks.add(task);
        else tasks.delete(task);
      }
    }
  } catch {
    return new Set();
  }
  return tasks;
}
