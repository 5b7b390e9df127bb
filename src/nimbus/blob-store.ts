/**
 * Code and descriptions of topologies, as files named by the SHA-256 of their content; and small named documents that
 * must survive a restart of Nimbus but decide nothing.
 *
 * A blob that is in place is whole: it is written beside its place, flushed and moved there. It is checked when read.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants, createReadStream, mkdirSync } from 'node:fs';
import { copyFile, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { IsobarError, toIsobarError } from '../base/index.js';

export interface BlobStore {
  /** Stores bytes and returns their hash. Bytes that are there already cost one read. @throws STATE_DIRECTORY_UNUSABLE */
  put(bytes: Uint8Array): Promise<string>;
  /** @throws TOPOLOGY_CODE_LOST if the blob is missing or damaged */
  read(hash: string): Promise<Uint8Array>;
  /** Is there a blob of this name, whatever is in it? */
  has(hash: string): Promise<boolean>;
  /** Where a blob is, or would be. */
  blobPath(hash: string): string;
  /** Removes a blob and its source map; harmless if there is none. */
  remove(hash: string): Promise<void>;
  /** A source map lies beside its bundle and is not checked: it helps reading, it does not run. */
  putSourceMap(codeHash: string, bytes: Uint8Array): Promise<void>;
  readSourceMap(codeHash: string): Promise<Uint8Array | undefined>;

  /**
   * Takes a file over as state of a moving task of a topology. Resolves to its SHA-256 once it is flushed.
   *
   * @throws STATE_DIRECTORY_UNUSABLE
   */
  putState(topologyId: string, path: string): Promise<{ readonly hash: string; readonly bytes: number }>;
  /** Places a copy of a state at `path`. @throws TASK_STATE_MISSING if it is not there or damaged, STATE_DIRECTORY_UNUSABLE */
  fetchState(topologyId: string, hash: string, path: string): Promise<void>;
  /** Removes all states of a topology. */
  removeStates(topologyId: string): Promise<void>;

  writeDocument(name: string, value: unknown): Promise<void>;
  /** undefined if it is missing, or not as it was written. */
  readDocument(name: string): Promise<unknown>;
  removeDocument(name: string): Promise<void>;
}

/** Opens, and creates if need be, the store in a directory of this machine. @throws STATE_DIRECTORY_UNUSABLE */
export function createBlobStore(directory: string): BlobStore {
  const blobs = join(directory, 'blobs');
  const documents = join(directory, 'documents');
  const states = join(directory, 'states');
  const statesPath = (topologyId: string): string => join(states, encodeURIComponent(topologyId));
  try {
    for (const path of [blobs, documents]) mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: directory });
  }
  const blobPath = (hash: string): string => join(blobs, checkedHash(hash));
  const sourceMapPath = (hash: string): string => `${blobPath(hash)}.map`;
  const documentPath = (name: string): string => join(documents, `${encodeURIComponent(name)}.json`);

  return {
    blobPath,
    async put(bytes) {
      const hash = blobHash(bytes);
      const present = await readIfThere(blobPath(hash));
      if (present === undefined || blobHash(present) !== hash) await writeWhole(blobPath(hash), bytes, true);
      return hash;
    },
    async read(hash) {
      const bytes = await readIfThere(blobPath(hash));
      const found = bytes === undefined ? undefined : blobHash(bytes);
      if (bytes !== undefined && found === hash) return bytes;
      throw new IsobarError(
        'TOPOLOGY_CODE_LOST',
        `blob ${hash} is ${found === undefined ? 'missing' : 'damaged'}`,
        {
          expected: `SHA-256 ${hash}`,
          found: found === undefined ? 'no file that can be read' : `SHA-256 ${found}`,
          where: blobPath(hash),
        },
      );
    },
    async has(hash) {
      const found = await stat(blobPath(hash)).catch(() => undefined);
      return found?.isFile() ?? false;
    },
    async remove(hash) {
      await rm(blobPath(hash), { force: true });
      await rm(sourceMapPath(hash), { force: true });
    },
    putSourceMap: (codeHash, bytes) => writeWhole(sourceMapPath(codeHash), bytes, true),
    readSourceMap: (codeHash) => readIfThere(sourceMapPath(codeHash)),
    putState: (topologyId, path) => putState(statesPath(topologyId), path),
    async fetchState(topologyId, hash, path) {
      await copyChecked(join(statesPath(topologyId), checkedHash(hash)), hash, path);
    },
    removeStates: (topologyId) => rm(statesPath(topologyId), { recursive: true, force: true }),
    writeDocument: (name, value) => writeWhole(documentPath(name), documentBytes(value), false),
    async readDocument(name) {
      const bytes = await readIfThere(documentPath(name));
      return bytes === undefined ? undefined : documentOf(bytes);
    },
    removeDocument: (name) => rm(documentPath(name), { force: true }),
  };
}

/** A line of JSON and a line with its SHA-256: damage can leave JSON that is well-formed, and another value. */
function documentBytes(value: unknown): Buffer {
  const json = Buffer.from(JSON.stringify(value));
  return Buffer.concat([json, Buffer.from(`\n${blobHash(json)}\n`)]);
}

/** undefined for what is not as it was written. */
function documentOf(bytes: Buffer): unknown {
  const end = bytes.indexOf('\n');
  if (end < 0) return undefined;
  const json = bytes.subarray(0, end);
  if (bytes.subarray(end).toString('latin1') !== `\n${blobHash(json)}\n`) return undefined;
  return JSON.parse(json.toString('utf8')) as unknown;
}

/** Hashes become file names: nothing else may. */
function checkedHash(hash: string): string {
  if (/^[0-9a-f]{64}$/.test(hash)) return hash;
  throw new IsobarError('TOPOLOGY_CODE_LOST', `"${hash}" is no hash of a blob`, {
    expected: '64 hexadecimal digits',
    found: hash,
  });
}

async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch {
    return undefined;
  }
}

async function writeWhole(path: string, bytes: Uint8Array, isFlushed: boolean): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(bytes);
      if (isFlushed) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    if (isFlushed) await flushDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: path });
  }
}

async function putState(
  directory: string,
  path: string,
): Promise<{ readonly hash: string; readonly bytes: number }> {
  try {
    const bytes = await flushFile(path);
    const hash = await hashOfFile(path);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await moveFile(path, join(directory, hash));
    await flushDirectory(directory);
    return { hash, bytes };
  } catch (error) {
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: path });
  }
}

/** Resolves to the length of the file. */
async function flushFile(path: string): Promise<number> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** Over file systems, too. */
async function moveFile(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'EXDEV') throw error;
    const temporary = `${to}.${randomUUID()}.tmp`;
    await copyFile(from, temporary);
    await flushFile(temporary);
    await rename(temporary, to);
    await rm(from, { force: true });
  }
}

async function copyChecked(from: string, hash: string, to: string): Promise<void> {
  const found = await hashOfFile(from).catch(() => 'no file that can be read');
  if (found !== hash) {
    throw new IsobarError('TASK_STATE_MISSING', `the stored state ${hash} is missing or damaged`, {
      expected: `SHA-256 ${hash}`,
      found,
      where: from,
    });
  }
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE);
  } catch (error) {
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: to });
  }
}

/** Without holding the file in memory: a state has no bound. */
async function hashOfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Where directories cannot be flushed, nothing more can be promised. */
async function flushDirectory(path: string): Promise<void> {
  try {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  } catch {
    return;
  }
}

/** The name of a blob: SHA-256 of its content, hex. */
export function blobHash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
