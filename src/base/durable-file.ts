/** Small local files that a crash at any moment leaves whole: the old content or the new, never a part. */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { toIsobarError } from './errors.js';

/** What `writeDurableFile` calls a file before it is in its place. */
const UNFINISHED = /^\..+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u;

/**
 * Writes a file beside its place, flushes it to disk and moves it there. Synchronous: the caller must know that it is
 * on disk before it goes on.
 */
export function writeDurableFile(path: string, content: string | Uint8Array, mode = 0o600): void {
  const directory = dirname(path);
  mkdirSync(directory, { recursive: true });
  const temporary = join(directory, `.${basename(path)}.${randomUUID()}`);
  try {
    const file = openSync(temporary, 'wx', mode);
    try {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content;
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  flushDirectory(directory);
}

/**
 * Writes a file that lives no longer than the process that it is for.
 *
 * @throws STATE_DIRECTORY_UNUSABLE
 */
export function writeWorkFile(path: string, content: string | Uint8Array): void {
  try {
    writeFileSync(path, content);
  } catch (error) {
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', {
      expected: 'a directory that can be written',
      where: path,
    });
  }
}

/** Removes what writers that were killed have left beside their files in this directory. Nobody may be writing there. */
export function removeUnfinished(directory: string): void {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    // Not there, or unreadable: whoever writes next says so.
    return;
  }
  for (const name of names) if (UNFINISHED.test(name)) rmSync(join(directory, name), { force: true });
}

/** The content of a JSON file; undefined if it is missing, unreadable or not JSON. */
export function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as unknown;
  } catch {
    return undefined;
  }
}

/** A rename is on disk once its directory is. Where directories cannot be flushed, nothing more can be promised. */
function flushDirectory(path: string): void {
  try {
    const directory = openSync(path, 'r');
    try {
      fsyncSync(directory);
    } finally {
      closeSync(directory);
    }
  } catch {
    return;
  }
}
