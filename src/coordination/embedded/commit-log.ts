/**
 * The commit log on disk: appends commits, and replaces the whole file by a snapshot when it has grown.
 *
 * There is one file. A snapshot is a new file with the same format that is written, synced and renamed over it, so at
 * any moment the name stands for one complete state. Callers wait for each call before the next.
 *
 * C1 After a failed append the file ends at its last good frame again, or the next append repairs it before it writes.
 * C2 After a failed sync nothing on the disk is trusted (the kernel may have dropped the pages): the next commit is a
 *    snapshot of the state in memory.
 */
import { join } from 'node:path';
import { IsobarError, type Logger } from '../../base/index.js';
import { type Change, decodeChanges, encodeChanges } from './changes.js';
import { encodeFrame, FILE_HEADER, scanLog } from './log-format.js';
import type { StateFile, StateFiles } from './state-files.js';

export const LOG_NAME = 'coordinator.log';
const NEW_LOG_NAME = 'coordinator.log.new';
/** Data bytes of a snapshot's frames. */
const SNAPSHOT_FRAME_BYTES = 1024 * 1024;
/** The file is replaced by a snapshot when it is this much larger than four times the last one. */
const DEFAULT_COMPACTION_BYTES = 8 * 1024 * 1024;

export interface CommitLogOptions {
  readonly directory: string;
  readonly files: StateFiles;
  readonly logger: Logger;
  /** Growth in bytes before a compaction, at least. */
  readonly compactionBytes?: number;
}

export class CommitLog {
  readonly #directory: string;
  readonly #path: string;
  readonly #files: StateFiles;
  readonly #logger: Logger;
  readonly #compactionBytes: number;
  #file: StateFile | undefined;
  #length = 0;
  #compactAtBytes = 0;
  #hasUnsynced = false;
  #hasDirtyTail = false;
  #needsSnapshot = false;

  private constructor(options: CommitLogOptions) {
    this.#directory = options.directory;
    this.#path = join(options.directory, LOG_NAME);
    this.#files = options.files;
    this.#logger = options.logger;
    this.#compactionBytes = options.compactionBytes ?? DEFAULT_COMPACTION_BYTES;
  }

  /**
   * Opens the log of a directory that nobody else owns, and gives every change in it to `replay`.
   * @throws STATE_DAMAGED, STATE_VERSION_UNKNOWN (the file is left as it is), STATE_DIRECTORY_UNUSABLE
   */
  static async open(options: CommitLogOptions, replay: (change: Change) => void): Promise<CommitLog> {
    const log = new CommitLog(options);
    const contents = await log.#guard('read', () => options.files.read(log.#path));
    if (contents === undefined) {
      await log.replaceBySnapshot([]);
      return log;
    }
    const { payloads, goodBytes, tornBytes } = scanLog(contents, log.#path);
    for (const payload of payloads) log.#replayFrame(payload, replay);
    log.#file = await log.#guard('open', () => options.files.open(log.#path, 'keep'));
    log.#length = goodBytes;
    log.#compactAtBytes = Math.max(goodBytes, log.#compactionBytes);
    if (tornBytes > 0) {
      options.logger.warn('coordinator.torn-commit-dropped', {
        file: log.#path,
        offset: goodBytes,
        tornBytes,
      });
      log.#hasDirtyTail = true;
      await log.#guard('truncate', () => log.#repairTail(log.#requireFile()));
    }
    return log;
  }

  /** The next commit must be {@link replaceBySnapshot}. */
  get needsSnapshot(): boolean {
    return this.#needsSnapshot;
  }

  get wantsCompaction(): boolean {
    return this.#length > this.#compactAtBytes;
  }

  get bytes(): number {
    return this.#length;
  }

  /** Says that the state in memory has a change that could not be appended. */
  requireSnapshot(): void {
    this.#needsSnapshot = true;
  }

  /** Appends one commit; with `sync`, resolves when it and all before it are on the disk. @throws STATE_DIRECTORY_UNUSABLE */
  async append(changes: readonly Change[], options: { readonly sync: boolean }): Promise<void> {
    const file = this.#requireFile();
    const frame = encodeFrame(encodeChanges(changes), this.#length);
    await this.#guard('write', async () => {
      await this.#repairTail(file);
      try {
        await file.write(frame, this.#length);
        if (options.sync) await this.#sync(file);
      } catch (error) {
        await this.#cutOff(file);
        throw error;
      }
    });
    this.#length += frame.length;
    this.#hasUnsynced = !options.sync;
  }

  /**
   * Replaces the file by one that holds just this state; on the disk when it resolves. When it rejects, the previous
   * file is still in place, or {@link needsSnapshot} is set. @throws STATE_DIRECTORY_UNUSABLE
   */
  async replaceBySnapshot(state: Iterable<Change>): Promise<void> {
    const newPath = join(this.#directory, NEW_LOG_NAME);
    // Should it fail, the next attempt waits until the file has grown again.
    this.#compactAtBytes = this.#length + this.#compactionBytes;
    await this.#guard('write', async () => {
      const file = await this.#files.open(newPath, 'empty');
      let length: number;
      try {
        length = await writeState(file, state);
        await file.sync();
        await this.#files.rename(newPath, this.#path);
      } catch (error) {
        await Promise.allSettled([file.close(), this.#files.remove(newPath)]);
        throw error;
      }
      const previous = this.#file;
      this.#file = file;
      this.#length = length;
      this.#compactAtBytes = length * 4 + this.#compactionBytes;
      this.#hasUnsynced = false;
      this.#hasDirtyTail = false;
      this.#needsSnapshot = true;
      await previous?.close();
      await this.#files.syncDirectory(this.#directory);
      this.#needsSnapshot = false;
    });
    this.#logger.debug('coordinator.snapshot-written', { file: this.#path, bytes: this.#length });
  }

  /** Syncs what is not synced and closes the file. */
  async close(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    try {
      if (this.#hasUnsynced) await this.#guard('sync', () => file.sync());
    } finally {
      await file.close();
    }
  }

  async #sync(file: StateFile): Promise<void> {
    try {
      await file.sync();
    } catch (error) {
      this.#needsSnapshot = true;
      throw error;
    }
  }

  /** After a failed write or sync: what it may have left must not come back at the next start. */
  async #cutOff(file: StateFile): Promise<void> {
    this.#hasDirtyTail = true;
    try {
      await this.#repairTail(file);
    } catch (failure) {
      this.#logger.warn('coordinator.truncate-failed', { file: this.#path, error: String(failure) });
    }
  }

  async #repairTail(file: StateFile): Promise<void> {
    if (!this.#hasDirtyTail) return;
    await file.truncate(this.#length);
    this.#hasDirtyTail = false;
  }

  #requireFile(): StateFile {
    if (this.#file !== undefined) return this.#file;
    throw new IsobarError('COORDINATOR_UNAVAILABLE', 'the coordinator has been closed', {
      where: this.#path,
    });
  }

  /** A frame that checks but makes no sense was not written by this version: nothing may be guessed. */
  #replayFrame(payload: Uint8Array, replay: (change: Change) => void): void {
    try {
      for (const change of decodeChanges(payload)) replay(change);
    } catch (error) {
      throw new IsobarError(
        'STATE_DAMAGED',
        `a commit in the coordinator's log ${this.#path} does not fit those before it`,
        {
          expected: 'changes that follow from one another',
          found: error instanceof Error ? error.message : String(error),
          where: `${this.#path}:${payload.byteOffset}`,
          file: this.#path,
          offset: payload.byteOffset,
        },
        error,
      );
    }
  }

  async #guard<T>(action: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw directoryUnusable(this.#directory, action, error);
    }
  }
}

/** The error for a directory in which something cannot be done. */
export function directoryUnusable(directory: string, action: string, error: unknown): IsobarError {
  const found = error instanceof Error ? error.message : String(error);
  return new IsobarError(
    'STATE_DIRECTORY_UNUSABLE',
    `the coordinator cannot ${action} its state in ${directory}: ${found}`,
    { expected: 'a directory that can be written', found, where: directory },
    error,
  );
}

/** Writes header and frames to an empty file and returns its length. */
async function writeState(file: StateFile, state: Iterable<Change>): Promise<number> {
  await file.write(FILE_HEADER, 0);
  let length = FILE_HEADER.length;
  let pending: Change[] = [];
  let pendingBytes = 0;
  const flush = async (): Promise<void> => {
    const frame = encodeFrame(encodeChanges(pending), length);
    await file.write(frame, length);
    length += frame.length;
    pending = [];
    pendingBytes = 0;
  };
  for (const change of state) {
    pending.push(change);
    if (change.kind === 'create') pendingBytes += change.data.length + change.path.length;
    if (pendingBytes >= SNAPSHOT_FRAME_BYTES || pending.length >= 10_000) await flush();
  }
  if (pending.length > 0) await flush();
  return length;
}
