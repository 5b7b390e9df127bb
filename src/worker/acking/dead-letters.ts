/**
 * Appends rows that user code cannot digest to a file of their spout task, one JSON line each, on disk before `append`
 * returns. Blocking on purpose: the position may pass the rows only afterwards, and those that come together are written together.
 *
 * Invariants
 * D1  When `append` has returned, its lines are on disk, and so is the file's name in its directory.
 * D2  The file always ends with a whole line: what a failed write or a crash left of a line is cut off. (That line was
 *     never confirmed, so its row is still kept by the spout.)
 */
import fs from 'node:fs';
import path from 'node:path';
import { IsobarError, type ErrorRecord } from '../../base/index.js';
import type { Row } from '../../topology/index.js';
import { encodePlain } from './plain-values.js';
import type { FailureReason } from './replay-policy.js';

export interface DeadLetter {
  /** Id of the topology. */
  readonly topology: string;
  readonly component: string;
  readonly task: number;
  readonly stream: string;
  readonly row: Row;
  readonly position: unknown;
  /** Counted failures. */
  readonly failures: number;
  /** Task in which the last failure happened; 0: not known. */
  readonly failingTask?: number;
  /** Its component; '': not known. */
  readonly failingComponent?: string;
  readonly reason?: FailureReason;
  /** What user code of that task threw last, where it runs in the thread of the spout. */
  readonly error?: ErrorRecord | undefined;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
}

/** The part of `node:fs` that is used; a seam for tests of full disks. */
export interface DeadLetterFiles {
  mkdirSync(directory: string, options: { recursive: true; mode: number }): unknown;
  existsSync(file: string): boolean;
  openSync(file: string, flags: string, mode?: number): number;
  fstatSync(descriptor: number): { readonly size: number };
  readSync(descriptor: number, into: Uint8Array, offset: number, length: number, position: number): number;
  writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, position: number): number;
  ftruncateSync(descriptor: number, sizeBytes: number): void;
  fsyncSync(descriptor: number): void;
  closeSync(descriptor: number): void;
}

export interface DeadLetterWriterOptions {
  readonly directory: string;
  readonly topologyId: string;
  readonly component: string;
  /** Number of the spout task. */
  readonly task: number;
  readonly files?: DeadLetterFiles;
}

const NEWLINE = 10;
const TAIL_BYTES = 65_536;
const LONGEST_NAME_PART = 80;
/** As text: more is not in memory at a time, but for a single letter that is longer. */
const MOST_TEXT = 1 << 20;

export class DeadLetterWriter {
  /** The file, whether it exists yet or not. */
  readonly path: string;
  readonly #component: string;
  readonly #directory: string;
  readonly #files: DeadLetterFiles;
  #isNameOnDisk = false;

  constructor(options: DeadLetterWriterOptions) {
    const name = `${fileNamePart(options.topologyId)}-${fileNamePart(options.component)}-${options.task}.jsonl`;
    this.#component = options.component;
    this.#directory = options.directory;
    this.path = path.join(options.directory, name);
    this.#files = options.files ?? fs;
  }

  /**
   * Writes dead letters, several at the cost of one, and returns the file's path.
   *
   * @throws IsobarError `DEAD_LETTER_WRITE_FAILED`; nothing of the lines is left then, and the call can be repeated.
   */
  append(...letters: readonly DeadLetter[]): string {
    try {
      this.#append(letters);
    } catch (error) {
      throw new IsobarError(
        'DEAD_LETTER_WRITE_FAILED',
        `dead letters of "${this.#component}" could not be written to ${this.path}`,
        {
          expected: 'a directory that takes the line',
          found: error instanceof Error ? error.message : String(error),
          where: this.path,
        },
        error,
      );
    }
    return this.path;
  }

  #append(letters: readonly DeadLetter[]): void {
    const files = this.#files;
    const isNew = !files.existsSync(this.path);
    if (isNew) files.mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    // Not in append mode, so that a torn line can be cut off; one writer at a time is the rule (one task, one place).
    const descriptor = files.openSync(this.path, isNew ? 'wx+' : 'r+', 0o600);
    try {
      const end = this.#endOfLastLine(descriptor);
      try {
        let at = end;
        for (const lines of linesOf(letters)) {
          writeAll(files, descriptor, lines, at);
          at += lines.length;
        }
        files.fsyncSync(descriptor);
      } catch (error) {
        this.#cutOff(descriptor, end);
        throw error;
      }
    } finally {
      files.closeSync(descriptor);
    }
    if (!this.#isNameOnDisk) this.#syncDirectories();
    this.#isNameOnDisk = true;
  }

  /** Takes back a line that was not written whole. */
  #cutOff(descriptor: number, end: number): void {
    try {
      this.#files.ftruncateSync(descriptor, end);
    } catch {
      // The failed write is what is reported; the next append finds the torn line and cuts it off before it writes.
    }
  }

  /** Where the last whole line ends; cuts off what a crash left behind it. */
  #endOfLastLine(descriptor: number): number {
    const files = this.#files;
    const { size } = files.fstatSync(descriptor);
    const tail = new Uint8Array(Math.min(size, TAIL_BYTES));
    let end = size;
    while (end > 0) {
      const length = Math.min(end, tail.length);
      const read = files.readSync(descriptor, tail, 0, length, end - length);
      const newline = tail.lastIndexOf(NEWLINE, read - 1);
      if (read > 0 && newline >= 0) {
        end = end - length + newline + 1;
        break;
      }
      end -= length;
    }
    if (end < size) files.ftruncateSync(descriptor, end);
    return end;
  }

  /** A new file survives a power cut only when the directories that lead to it are on disk as well. */
  #syncDirectories(): void {
    for (const directory of [this.#directory, path.dirname(this.#directory)]) {
      const descriptor = this.#files.openSync(directory, 'r');
      try {
        this.#files.fsyncSync(descriptor);
      } finally {
        this.#files.closeSync(descriptor);
      }
    }
  }
}

function writeAll(files: DeadLetterFiles, descriptor: number, bytes: Uint8Array, start: number): void {
  let written = 0;
  while (written < bytes.length) {
    const now = files.writeSync(descriptor, bytes, written, bytes.length - written, start + written);
    if (now === 0) throw new Error('the system wrote nothing');
    written += now;
  }
}

/** The lines of all letters, as many at a time as make {@link MOST_TEXT}. */
function* linesOf(letters: readonly DeadLetter[]): Generator<Uint8Array, void> {
  let text = '';
  for (const letter of letters) {
    const line = `${dumpLetter(letter)}\n`;
    if (text !== '' && text.length + line.length > MOST_TEXT) {
      yield Buffer.from(text, 'utf8');
      text = '';
    }
    text += line;
  }
  yield Buffer.from(text, 'utf8');
}

function dumpLetter(letter: DeadLetter): string {
  const { topology, component, task, stream, row, position, failures, atMs } = letter;
  const { failingTask, failingComponent, reason, error } = letter;
  return JSON.stringify({
    topology,
    component,
    task,
    stream,
    row: encodePlain(row),
    position: encodePlain(position),
    failures,
    ...(failingTask === undefined ? {} : { failingTask }),
    ...(failingComponent === undefined || failingComponent === '' ? {} : { failingComponent }),
    ...(reason === undefined ? {} : { reason }),
    ...(error === undefined ? {} : { error: encodePlain(error) }),
    atMs,
  });
}

/** Makes an id safe as part of a file name: no separators, no dots at the start, bounded length. */
function fileNamePart(id: string): string {
  const safe = id.replace(/[^\w.-]|^\./gu, (unit) => `%${unit.codePointAt(0)!.toString(16)}`);
  if (safe.length <= LONGEST_NAME_PART) return safe;
  let hash = 0x811c9dc5;
  for (let i = 0; i < safe.length; i++) hash = Math.imul(hash ^ safe.charCodeAt(i), 0x01000193);
  return `${safe.slice(0, LONGEST_NAME_PART)}~${(hash >>> 0).toString(16)}`;
}
