/**
 * JSON values in a node store, of any size: a large one is compressed, and what does not fit into one node even so is cut into
 * immutable chunks named by their content, and the node holds their names, so that a change of the value is still one
 * conditional write.
 *
 * V1 A chunk is named `TARGET-HASH`: the version that its writer wants the node to get, and the SHA-256 of its bytes.
 * V2 Chunks with a target below the node's version can never be referred to again: their writer's condition has failed
 *    or its value has been replaced. Only these are cleaned, so no cleaning can hurt a write that is under way.
 * V3 A reader that misses a chunk has read a replaced node, and reads the node again.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, deflateRaw, inflateRaw } from 'node:zlib';
import { hasCode, IsobarError, type Logger } from '../base/index.js';
import type { Versioned } from './coordination.js';
import { ANY_VERSION, type NodeKind, type NodeStore } from './node-store.js';
import { chunksPath } from './paths.js';

/** A larger value is compressed: heartbeats of more than some ten executors are. Smaller ones can be read in a node as they are. */
const COMPRESSED_FROM_BYTES = 16 * 1024;
/** What is still larger then is cut into chunks of this size. */
const CHUNK_BYTES = 256 * 1024;
const MAX_READ_ATTEMPTS = 20;
/** No JSON text starts with these. */
const CHUNK_LIST_MARK = '#'.charCodeAt(0);
const COMPRESSED_MARK = 'z'.charCodeAt(0);
/** A tenth of JSON is left at any level: the quickest will do. */
const DEFLATE_LEVEL = constants.Z_BEST_SPEED;
const deflate = promisify<Uint8Array, { level: number }, Buffer>(deflateRaw);
const inflate = promisify<Uint8Array, Buffer>(inflateRaw);

export class ChunkedValues {
  readonly #store: NodeStore;
  readonly #logger: Logger;
  /** Paths that are known to have no chunks in the store: nothing to list when their value is replaced. */
  readonly #withoutChunks = new Set<string>();

  constructor(store: NodeStore, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** Reads a value; undefined when there is none. @throws STATE_DAMAGED for bytes that no writer of ours wrote. */
  async read(path: string): Promise<Versioned<unknown> | undefined> {
    let lastVersion: number | undefined;
    for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt++) {
      const node = await this.#store.read(path);
      if (node === undefined) return undefined;
      const bytes = node.data[0] === CHUNK_LIST_MARK ? await this.#join(path, node.data) : node.data;
      if (bytes !== undefined) return { value: await decode(path, bytes), version: node.version };
      lastVersion = node.version;
    }
    throw damaged(path, 'all chunks of the value', `chunks are missing at version ${String(lastVersion)}`);
  }

  /** Creates the value. @throws NODE_EXISTS */
  async create(path: string, value: unknown, kind: NodeKind): Promise<void> {
    await this.#create(path, await encode(value), kind);
  }

  /** Replaces the value of a node that has `expectedVersion`. @throws NODE_MISSING, VERSION_CONFLICT */
  async write(path: string, value: unknown, expectedVersion: number, kind: NodeKind): Promise<void> {
    await this.#replace(path, await encode(value), expectedVersion, kind);
  }

  /** Creates or replaces the value, whatever was there. */
  async put(path: string, value: unknown, kind: NodeKind): Promise<void> {
    const bytes = await encode(value);
    for (;;) {
      try {
        if (bytes.length <= CHUNK_BYTES) {
          await this.#clean(path, await this.#store.write(path, bytes, ANY_VERSION));
          return;
        }
        const node = await this.#store.read(path);
        if (node !== undefined) {
          await this.#replace(path, bytes, node.version, kind);
          return;
        }
      } catch (error) {
        if (hasCode(error, 'VERSION_CONFLICT')) continue;
        if (!hasCode(error, 'NODE_MISSING')) throw error;
      }
      try {
        await this.#create(path, bytes, kind);
        return;
      } catch (error) {
        if (!hasCode(error, 'NODE_EXISTS')) throw error;
      }
    }
  }

  /** Removes the value and its chunks; nothing happens when it is missing. */
  async remove(path: string, expectedVersion: number = ANY_VERSION): Promise<void> {
    await removeIfThere(this.#store, path, expectedVersion);
    await removeTree(this.#store, chunksPath(path));
    this.#withoutChunks.delete(path);
  }

  async #create(path: string, bytes: Uint8Array, kind: NodeKind): Promise<void> {
    await this.#store.create(path, await this.#prepare(path, bytes, 0, kind), kind);
  }

  async #replace(path: string, bytes: Uint8Array, expectedVersion: number, kind: NodeKind): Promise<void> {
    const data = await this.#prepare(path, bytes, expectedVersion + 1, kind);
    const version = await this.#store.write(path, data, expectedVersion);
    await this.#clean(path, version);
  }

  /** Stores the chunks, if there must be any, and returns the node's data. */
  async #prepare(path: string, bytes: Uint8Array, target: number, kind: NodeKind): Promise<Uint8Array> {
    if (bytes.length <= CHUNK_BYTES) return bytes;
    this.#withoutChunks.delete(path);
    const directory = chunksPath(path);
    const names: string[] = [];
    const stored: Promise<void>[] = [];
    for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
      const chunk = bytes.subarray(start, start + CHUNK_BYTES);
      const name = `${target}-${sha256(chunk)}`;
      if (!names.includes(name)) stored.push(this.#storeChunk(`${directory}/${name}`, chunk, kind));
      names.push(name);
    }
    await Promise.all(stored);
    return Buffer.from(`#${JSON.stringify({ chunks: names })}`);
  }

  async #storeChunk(path: string, chunk: Uint8Array, kind: NodeKind): Promise<void> {
    try {
      await this.#store.create(path, chunk, kind);
    } catch (error) {
      // The same content for the same version: from an earlier attempt.
      if (!hasCode(error, 'NODE_EXISTS')) throw error;
    }
  }

  /** The bytes of a value from its list of chunks; undefined when one is gone. */
  async #join(path: string, list: Uint8Array): Promise<Uint8Array | undefined> {
    this.#withoutChunks.delete(path);
    const directory = chunksPath(path);
    const names = parseChunkList(path, list);
    const nodes = await Promise.all(names.map((name) => this.#store.read(`${directory}/${name}`)));
    const parts: Uint8Array[] = [];
    for (const [index, node] of nodes.entries()) {
      if (node === undefined) return undefined;
      if (!names[index]!.endsWith(`-${sha256(node.data)}`)) {
        throw damaged(
          path,
          'a chunk with the content that its name says',
          `other content in ${names[index]!}`,
        );
      }
      parts.push(node.data);
    }
    return Buffer.concat(parts);
  }

  /** Removes the chunks that V2 allows to remove. What cannot be removed now is tried again after the next write. */
  async #clean(path: string, version: number): Promise<void> {
    if (this.#withoutChunks.has(path)) return;
    const directory = chunksPath(path);
    try {
      const names = await this.#store.children(directory);
      const old = names.filter((name) => Number.parseInt(name, 10) < version);
      await Promise.all(old.map((name) => removeIfThere(this.#store, `${directory}/${name}`)));
      if (old.length === names.length) this.#withoutChunks.add(path);
    } catch (error) {
      // The value itself is written; its caller must not take this for a failed write.
      this.#logger.warn('coordination.chunk-cleaning-failed', { path, error: String(error) });
    }
  }
}

/** Removes all children of a path and then the path itself; what is missing is no error. */
export async function removeTree(store: NodeStore, path: string): Promise<void> {
  for (;;) {
    const names = await store.children(path);
    await Promise.all(names.map((name) => removeTree(store, `${path}/${name}`)));
    try {
      await removeIfThere(store, path);
      return;
    } catch (error) {
      // A child was added meanwhile.
      if (!hasCode(error, 'VERSION_CONFLICT')) throw error;
    }
  }
}

async function removeIfThere(store: NodeStore, path: string, version: number = ANY_VERSION): Promise<void> {
  try {
    await store.remove(path, version);
  } catch (error) {
    if (!hasCode(error, 'NODE_MISSING')) throw error;
  }
}

async function encode(value: unknown): Promise<Uint8Array> {
  const json = Buffer.from(JSON.stringify(value));
  if (json.length <= COMPRESSED_FROM_BYTES) return json;
  return Buffer.concat([Buffer.of(COMPRESSED_MARK), await deflate(json, { level: DEFLATE_LEVEL })]);
}

async function decode(path: string, bytes: Uint8Array): Promise<unknown> {
  if (bytes[0] !== COMPRESSED_MARK) return parseJson(path, bytes);
  let json: Uint8Array;
  try {
    json = await inflate(bytes.subarray(1));
  } catch (error) {
    throw damaged(path, 'a compressed value', error instanceof Error ? error.message : String(error));
  }
  return parseJson(path, json);
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function parseJson(path: string, bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch (error) {
    throw damaged(path, 'JSON', error instanceof Error ? error.message : String(error));
  }
}

function parseChunkList(path: string, data: Uint8Array): readonly string[] {
  const list = parseJson(path, data.subarray(1));
  if (typeof list === 'object' && list !== null && 'chunks' in list && Array.isArray(list.chunks)) {
    const names: unknown[] = list.chunks;
    if (names.every((name) => typeof name === 'string')) return names;
  }
  throw damaged(path, 'a list of chunks', JSON.stringify(list).slice(0, 100));
}

function damaged(path: string, expected: string, found: string): IsobarError {
  return new IsobarError('STATE_DAMAGED', `the coordinator's value at ${path} cannot be read: ${found}`, {
    expected,
    found,
    where: path,
  });
}
