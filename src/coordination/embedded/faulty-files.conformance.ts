/** Test support: a file layer that fails on demand and counts syncs. */
import { nodeStateFiles, type StateFile, type StateFiles } from './state-files.js';

export type FaultyOperation = 'read' | 'open' | 'write' | 'sync' | 'truncate' | 'rename' | 'syncDirectory';

export class FaultyFiles implements StateFiles {
  /** Operations that fail now, with the error code that they fail with. */
  readonly failing = new Map<FaultyOperation, string>();
  /** A failing write leaves this share of its bytes in the file. */
  partOfFailedWrite = 0.5;
  syncs = 0;
  writes = 0;

  makeDirectory(path: string): Promise<void> {
    return nodeStateFiles.makeDirectory(path);
  }

  async read(path: string): Promise<Uint8Array | undefined> {
    this.#check('read');
    return nodeStateFiles.read(path);
  }

  async open(path: string, mode: 'keep' | 'empty'): Promise<StateFile> {
    this.#check('open');
    const file = await nodeStateFiles.open(path, mode);
    return {
      write: async (bytes, position) => {
        this.writes++;
        if (this.failing.has('write')) {
          await file.write(bytes.subarray(0, Math.floor(bytes.length * this.partOfFailedWrite)), position);
        }
        this.#check('write');
        await file.write(bytes, position);
      },
      sync: async () => {
        this.#check('sync');
        await file.sync();
        this.syncs++;
      },
      truncate: async (bytes) => {
        this.#check('truncate');
        await file.truncate(bytes);
      },
      close: () => file.close(),
    };
  }

  async rename(from: string, to: string): Promise<void> {
    this.#check('rename');
    await nodeStateFiles.rename(from, to);
  }

  remove(path: string): Promise<void> {
    return nodeStateFiles.remove(path);
  }

  async syncDirectory(path: string): Promise<void> {
    this.#check('syncDirectory');
    await nodeStateFiles.syncDirectory(path);
  }

  #check(operation: FaultyOperation): void {
    const code = this.failing.get(operation);
    if (code !== undefined) throw Object.assign(new Error(`${code}: injected`), { code });
  }
}
