/**
 * What a worker process leaves behind for its successor in the same slot: how often it ended without being asked to since a
 * source last moved on, and behind which position each spout task had a row out alone. A row that kills the whole process is
 * found by this, as one that kills its thread is found by the counts in memory. Small files in the worker's own directory; a
 * damaged or missing one means nothing is known.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../base/index.js';

/** Crashes from which on rows are read one at a time (see spout-task.ts). */
const CAUTIOUS_CRASHES = 2;
const MARK = 'row-out-alone-';

/** A row that was out alone when the process ended. */
interface Suspect {
  /** The mark as it was written: equal text means the same row. */
  readonly mark: string;
  /** Lives in a row that ended with this very row out. */
  readonly lives: number;
}

export class CrashRecord {
  readonly #directory: string;
  readonly #logger: Logger;
  readonly #crashesBefore: number;
  readonly #suspects: ReadonlyMap<number, Suspect>;
  #written = 0;

  /** Reads what the predecessor left, and notes that this process has started. */
  constructor(directory: string, logger: Logger) {
    this.#directory = directory;
    this.#logger = logger;
    this.#crashesBefore = readNumber(this.#crashesPath);
    const marks = readMarks(directory);
    if (this.#crashesBefore >= CAUTIOUS_CRASHES) {
      const before = readSuspects(this.#suspectsPath);
      this.#suspects = new Map(
        [...marks].map(([task, mark]) => {
          const known = before.get(task);
          return [task, { mark, lives: known?.mark === mark ? known.lives + 1 : 1 }];
        }),
      );
      this.#write(this.#suspectsPath, JSON.stringify([...this.#suspects]));
    } else {
      // This life does not mark its rows, so older marks would send its successor back.
      for (const task of marks.keys()) rmSync(markPath(directory, task), { force: true });
      this.#suspects = new Map();
    }
    this.#writeCrashes(this.#crashesBefore + 1);
  }

  /** Crashes that count against a spout task: more than enough for caution only if the same row of it was out each time. */
  crashesOf(task: number): number {
    const suspect = this.#suspects.get(task);
    return suspect === undefined
      ? Math.min(this.#crashesBefore, CAUTIOUS_CRASHES)
      : CAUTIOUS_CRASHES + suspect.lives;
  }

  /**
   * Where a spout task must go on to meet the row that was out alone as its first; undefined: at its stored position. All
   * rows before it are done, though the position may not have been stored in time.
   */
  positionOf(task: number): unknown {
    const suspect = this.#suspects.get(task);
    return suspect === undefined ? undefined : (JSON.parse(suspect.mark) as { behind?: unknown }).behind;
  }

  /** A source has moved on: what crashes from here on has another cause, but caution lasts for another crash. */
  onProgress(): void {
    const floor = Math.min(Math.max(1, this.#crashesBefore), CAUTIOUS_CRASHES);
    if (this.#written > floor) this.#writeCrashes(floor);
  }

  /** The process ends because it was told to. */
  onCleanEnd(): void {
    for (const task of readMarks(this.#directory).keys())
      rmSync(markPath(this.#directory, task), { force: true });
    for (const path of [this.#crashesPath, this.#suspectsPath]) rmSync(path, { force: true });
  }

  get #crashesPath(): string {
    return join(this.#directory, 'unclean-ends');
  }

  get #suspectsPath(): string {
    return join(this.#directory, 'suspects.json');
  }

  #writeCrashes(crashes: number): void {
    this.#written = crashes;
    this.#write(this.#crashesPath, String(crashes));
  }

  #write(path: string, text: string): void {
    try {
      writeFileSync(path, text);
    } catch (error) {
      // Without it a row that kills the process is tried for longer; nothing else depends on it.
      this.#logger.warn('crash-record.not-written', { message: String(error) });
    }
  }
}

/** Marks of one executor thread: on disk before the row can do harm. */
export interface AloneMarks {
  /** A row of `task` goes out alone; all rows up to position `behind` are done. */
  set(task: number, behind: unknown): void;
  /** `task` reads on as usual. */
  clear(task: number): void;
}

export function createAloneMarks(directory: string, logger: Logger): AloneMarks {
  return {
    set(task, behind) {
      try {
        writeFileSync(markPath(directory, task), JSON.stringify({ behind }));
      } catch (error) {
        logger.warn('crash-record.not-written', { message: String(error) });
      }
    },
    clear: (task) => rmSync(markPath(directory, task), { force: true }),
  };
}

function markPath(directory: string, task: number): string {
  return join(directory, `${MARK}${task}`);
}

function readMarks(directory: string): Map<number, string> {
  const marks = new Map<number, string>();
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return marks;
  }
  for (const name of names) {
    const task = name.startsWith(MARK) ? Number(name.slice(MARK.length)) : 0;
    if (!Number.isSafeInteger(task) || task <= 0) continue;
    try {
      const text = readFileSync(join(directory, name), 'utf8');
      if (typeof JSON.parse(text) === 'object') marks.set(task, text);
    } catch {
      // Torn by the end of the process: the row is met at the stored position.
    }
  }
  return marks;
}

function readSuspects(path: string): Map<number, Suspect> {
  try {
    return new Map(JSON.parse(readFileSync(path, 'utf8')) as [number, Suspect][]);
  } catch {
    return new Map();
  }
}

function readNumber(path: string): number {
  try {
    const value = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(value) && value > 0 ? value : 0;
  } catch {
    return 0;
  }
}
