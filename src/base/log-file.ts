/**
 * A file of log records, one JSON line each, that never takes more of the disk than it may: full files are renamed
 * (`path.1` is the youngest, `path.2` older …) and the oldest goes. It owns the bound, the rate and the count of what was
 * dropped; what a record says is the logger's business.
 *
 * G1  Threads of one process may write one file, each through a LogFile of its own: they share the bytes written and the
 *     number of renames in a SharedArrayBuffer. Records never mix: each is one write to a file opened for appending.
 * G2  A log that cannot be written (full disk, no rights) ends nobody: records are dropped and counted, and it is tried again.
 * G3  One thread at a time renames. Others do not wait for it: they write on to the file that they have, full as it is. A
 *     thread that has been slow finds that another one took over, and stops before its next step.
 */
import { closeSync, existsSync, fstatSync, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import type { Settings } from './settings.js';

export interface LogFileOptions {
  readonly path: string;
  /** Bytes at which a file is full. */
  readonly maxBytes: number;
  /** Files that are kept, the one being written included. */
  readonly maxFiles: number;
  /** Records that may be written here in one second; null: any number. */
  readonly maxRecordsPerSecond: number | null;
  /** From {@link LogFile.allocateShared}; not given: nobody else writes the file. */
  readonly shared?: SharedArrayBuffer;
  /** Milliseconds that never jump; for tests. */
  readonly nowMs?: () => number;
}

/** Words of the shared memory. */
/** Ticket of the thread that renames; 0: nobody does. */
const S_LOCK = 0;
/** Renames so far: a writer that has seen fewer has a file open that is not the youngest any more. */
const S_RENAMES = 1;
const S_BYTES = 2;
const S_DROPPED = 3;
/** Of those dropped, the ones that could not be written. */
const S_UNWRITTEN = 4;
/** Of the last failure: the number of the system's error, negative; 0: none that has one. */
const S_ERROR = 5;
/** Tickets given out. */
const S_TICKETS = 6;
const SHARED_WORDS = 7;

const RETRY_MS = 1000;
/**
 * A thread that was ended in the middle of a rename is taken for gone when others have found it there so often, with so much
 * time between one look and the next: a process that was stopped for a minute has looked once in it.
 */
const LOOKS_UNTIL_GONE = 20;
const LOOK_MS = 250;

export class LogFile {
  readonly path: string;
  readonly #options: LogFileOptions;
  readonly #shared: Int32Array;
  readonly #nowMs: () => number;
  #file: number | undefined;
  #renames = 0;
  #failedUntilMs = -Infinity;
  /** The last write was cut: the next record begins with a line break. */
  #isTorn = false;
  #secondMs = -Infinity;
  #inSecond = 0;
  /** Dropped since the file last said so. */
  #untold = 0;
  /** Who was found renaming, how often, and when to look again. */
  #holder = 0;
  #looks = 0;
  #nextLookMs = -Infinity;

  static allocateShared(): SharedArrayBuffer {
    return new SharedArrayBuffer(SHARED_WORDS * 4);
  }

  /** As settings say. `shared`: see {@link LogFileOptions}. */
  static of(path: string, settings: Settings, shared?: SharedArrayBuffer): LogFile {
    return new LogFile({
      path,
      maxBytes: settings['log.max-file-bytes'],
      maxFiles: settings['log.files'],
      maxRecordsPerSecond: settings['log.rate-limit'],
      ...(shared === undefined ? {} : { shared }),
    });
  }

  constructor(options: LogFileOptions) {
    this.path = options.path;
    this.#options = options;
    this.#shared = new Int32Array(options.shared ?? LogFile.allocateShared());
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** For other threads that write this file. */
  get shared(): SharedArrayBuffer {
    // Made or given as one.
    return this.#shared.buffer as SharedArrayBuffer;
  }

  /** Records that were dropped, by all that share this file. */
  get dropped(): number {
    return Atomics.load(this.#shared, S_DROPPED) >>> 0;
  }

  /** Of those, the ones that could not be written: the disk is full, or the rights are missing. */
  get unwritten(): number {
    return Atomics.load(this.#shared, S_UNWRITTEN) >>> 0;
  }

  /** Why the last that failed could not be written: the system's name for it, such as `ENOSPC`; null: not known. */
  get lastFailure(): string | null {
    const number = Atomics.load(this.#shared, S_ERROR);
    return number < 0 ? getSystemErrorName(number) : null;
  }

  /** Writes a record: one line with its break. Never throws. */
  write(line: string): void {
    const nowMs = this.#nowMs();
    if (!this.#isAdmitted(nowMs)) {
      this.#drop();
      return;
    }
    if (this.#untold > 0 && this.#put(droppedRecord(this.#untold), nowMs)) this.#untold = 0;
    if (this.#put(line, nowMs)) return;
    this.#drop();
    Atomics.add(this.#shared, S_UNWRITTEN, 1);
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #isAdmitted(nowMs: number): boolean {
    const { maxRecordsPerSecond } = this.#options;
    if (maxRecordsPerSecond === null) return true;
    if (nowMs - this.#secondMs >= 1000) {
      this.#secondMs = nowMs;
      this.#inSecond = 0;
    }
    return ++this.#inSecond <= maxRecordsPerSecond;
  }

  #drop(): void {
    this.#untold++;
    Atomics.add(this.#shared, S_DROPPED, 1);
  }

  /** false: it could not be written. */
  #put(line: string, nowMs: number): boolean {
    if (nowMs < this.#failedUntilMs) return false;
    try {
      if (this.#renames !== Atomics.load(this.#shared, S_RENAMES)) this.close();
      this.#file ??= this.#open();
      if (Atomics.load(this.#shared, S_BYTES) >= this.#options.maxBytes)
        this.#file = this.#renamed(this.#file, nowMs);
      const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
      const written = writeSync(this.#file, bytes);
      Atomics.add(this.#shared, S_BYTES, written);
      this.#isTorn = written < bytes.length;
      return !this.#isTorn;
    } catch (error) {
      // Told by the count, and by the file once it can be written again.
      Atomics.store(this.#shared, S_ERROR, (error as NodeJS.ErrnoException).errno ?? 0);
      this.#failedUntilMs = nowMs + RETRY_MS;
      this.close();
      return false;
    }
  }

  #open(): number {
    this.#renames = Atomics.load(this.#shared, S_RENAMES);
    const file = openSync(this.path, 'a', 0o600);
    Atomics.store(this.#shared, S_BYTES, fstatSync(file).size);
    return file;
  }

  /** Begins a new file unless another thread does or has. @returns the file to write to */
  #renamed(file: number, nowMs: number): number {
    const ticket = this.#lock(nowMs);
    if (ticket === null) return file;
    try {
      // Of a file that has been opened and renamed at once, another thread may have noted the size after that.
      const { size } = fstatSync(file);
      if (this.#renames === Atomics.load(this.#shared, S_RENAMES)) {
        if (size < this.#options.maxBytes) {
          Atomics.store(this.#shared, S_BYTES, size);
          return file;
        }
        if (this.#shift(file, ticket)) Atomics.add(this.#shared, S_RENAMES, 1);
      }
    } finally {
      Atomics.compareExchange(this.#shared, S_LOCK, ticket, 0);
    }
    this.close();
    return this.#open();
  }

  /** @returns false: another thread has taken over */
  #shift(file: number, ticket: number): boolean {
    const { maxFiles } = this.#options;
    if (maxFiles <= 1) {
      // Opened for appending by all writers, so the next record of each goes to its beginning.
      ftruncateSync(file);
      return true;
    }
    // What was left half done has left a gap: nothing older than that need move, and nothing need go.
    let free = 1;
    while (free < maxFiles - 1 && existsSync(this.#aged(free))) free++;
    for (let age = free - 1; age >= 0; age--) {
      if (Atomics.load(this.#shared, S_LOCK) !== ticket) return false;
      renameIfThere(this.#aged(age), this.#aged(age + 1));
    }
    return true;
  }

  #aged(age: number): string {
    return age === 0 ? this.path : `${this.path}.${age}`;
  }

  /** @returns a ticket; null: another thread renames */
  #lock(nowMs: number): number | null {
    const ticket = Atomics.add(this.#shared, S_TICKETS, 1) + 1;
    const holder = Atomics.compareExchange(this.#shared, S_LOCK, 0, ticket);
    if (holder === 0) return ticket;
    if (holder !== this.#holder) {
      this.#holder = holder;
      this.#looks = 0;
      this.#nextLookMs = nowMs;
    }
    if (nowMs < this.#nextLookMs) return null;
    this.#nextLookMs = nowMs + LOOK_MS;
    if (++this.#looks < LOOKS_UNTIL_GONE) return null;
    return Atomics.compareExchange(this.#shared, S_LOCK, holder, ticket) === holder ? ticket : null;
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function droppedRecord(count: number): string {
  return `${JSON.stringify({ level: 40, time: new Date().toISOString(), count, msg: 'log.dropped' })}\n`;
}
