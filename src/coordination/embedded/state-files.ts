/** The few things that the commit log asks of a file system, so that tests can fill the disk or break it. */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

export interface StateFile {
  /** Writes all bytes at `position`; may have written some of them when it rejects. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Resolves when everything written is on the disk. */
  sync(): Promise<void>;
  truncate(bytes: number): Promise<void>;
  close(): Promise<void>;
}

export interface StateFiles {
  /** Creates it (0700) with missing parents, so that it lasts. */
  makeDirectory(path: string): Promise<void>;
  /** The contents, or undefined when there is no such file. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Opens for writing; `empty` creates the file or empties it. */
  open(path: string, mode: 'keep' | 'empty'): Promise<StateFile>;
  rename(from: string, to: string): Promise<void>;
  /** A missing file is no error. */
  remove(path: string): Promise<void>;
  /** Makes renames in this directory last. */
  syncDirectory(path: string): Promise<void>;
}

/** The machine's file system; files are readable by their owner only, since topologies have secrets. */
export const nodeStateFiles: StateFiles = {
  async makeDirectory(path) {
    const firstCreated = await mkdir(path, { recursive: true, mode: 0o700 });
    if (firstCreated === undefined) return;
    const outermost = dirname(firstCreated);
    for (let parent = dirname(resolve(path)); ; parent = dirname(parent)) {
      await syncDirectory(parent);
      if (parent === outermost || parent === dirname(parent)) return;
    }
  },
  async read(path) {
    try {
      return await readFile(path);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  },
  async open(path, mode) {
    const flags =
      mode === 'keep' ? constants.O_RDWR : constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC;
    return stateFile(await open(path, flags, 0o600));
  },
  rename,
  async remove(path) {
    await rm(path, { force: true });
  },
  syncDirectory,
};

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function stateFile(handle: FileHandle): StateFile {
  return {
    async write(bytes, position) {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
        done += bytesWritten;
      }
    },
    sync: () => handle.datasync(),
    truncate: (bytes) => handle.truncate(bytes),
    close: () => handle.close(),
  };
}
