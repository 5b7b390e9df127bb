/**
 * Places a topology's code on this machine's disk: `bundle.mjs`, its source map and `description.json`, each whole and
 * with the content that its hash promises.
 *
 * Directories are named by content, so two topologies of the same code share one, and a directory never changes while
 * a worker reads it.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, IsobarError, toIsobarError, writeDurableFile } from '../base/index.js';

/** Where code comes from, and where the state of moving tasks is kept. */
export interface Blobs {
  /** The bytes stored under a SHA-256 (hex); rejects if they are missing or damaged. */
  read(hash: string): Promise<Uint8Array>;
  /** The source map stored beside a bundle, if there is one. */
  readSourceMap(codeHash: string): Promise<Uint8Array | undefined>;
  /**
   * Takes a file over as state of a topology, of any size. Resolves to its SHA-256 once it is safe.
   *
   * @throws STATE_DIRECTORY_UNUSABLE
   */
  putState(topologyId: string, path: string): Promise<{ readonly hash: string; readonly bytes: number }>;
  /** Places a copy of a state at `path`. @throws TASK_STATE_MISSING if it is not there or damaged, STATE_DIRECTORY_UNUSABLE */
  fetchState(topologyId: string, hash: string, path: string): Promise<void>;
}

export interface LocalisedCode {
  readonly codePath: string;
  readonly descriptionPath: string;
}

export interface CodeHashes {
  readonly codeHash: string;
  readonly descriptionHash: string;
}

const NAME_LENGTH = 24;

/** The directory that a topology's code is placed in. */
export function codeName({ codeHash, descriptionHash }: CodeHashes): string {
  return `${codeHash.slice(0, NAME_LENGTH)}-${descriptionHash.slice(0, NAME_LENGTH)}`;
}

/**
 * Makes the code of one topology present and whole.
 *
 * @throws TOPOLOGY_CODE_LOST for missing or damaged code, STATE_DIRECTORY_UNUSABLE if it cannot be written here
 */
export async function localise(
  options: CodeHashes & { readonly directory: string; readonly blobs: Blobs; readonly name: string },
): Promise<LocalisedCode> {
  const { blobs, codeHash, descriptionHash, name: topologyName } = options;
  const directory = join(options.directory, codeName(options));
  const codePath = join(directory, 'bundle.mjs');
  const descriptionPath = join(directory, 'description.json');
  await place(codePath, codeHash, 'code');
  await place(descriptionPath, descriptionHash, 'description');
  return { codePath, descriptionPath };

  async function place(path: string, hash: string, what: 'code' | 'description'): Promise<void> {
    if ((await hashOfFile(path)) === hash) return;
    let bytes: Uint8Array;
    try {
      bytes = await blobs.read(hash);
    } catch (error) {
      if (hasCode(error, 'TOPOLOGY_CODE_LOST')) throw error;
      throw codeLost(topologyName, what, hash, 'nothing that can be read', error);
    }
    const found = sha256(bytes);
    if (found !== hash) throw codeLost(topologyName, what, hash, `SHA-256 ${found}`);
    const sourceMap = what === 'code' ? await readSourceMap(hash) : undefined;
    try {
      // The map first: a bundle that is in place is complete.
      if (sourceMap !== undefined) writeDurableFile(`${path}.map`, sourceMap);
      writeDurableFile(path, bytes);
    } catch (error) {
      throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', { where: path });
    }
  }

  async function readSourceMap(hash: string): Promise<Uint8Array | undefined> {
    try {
      return await blobs.readSourceMap(hash);
    } catch {
      // Stacks then point into the bundle; that must not keep a topology from running.
      return undefined;
    }
  }
}

function codeLost(topology: string, what: string, hash: string, found: string, cause?: unknown): IsobarError {
  return new IsobarError(
    'TOPOLOGY_CODE_LOST',
    `the stored ${what} of topology "${topology}" is missing or damaged`,
    { expected: `SHA-256 ${hash}`, found, where: `blob ${hash}` },
    cause,
  );
}

async function hashOfFile(path: string): Promise<string | undefined> {
  try {
    return sha256(await readFile(path));
  } catch {
    return undefined;
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
