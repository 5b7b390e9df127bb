/**
 * Follows what workers print: the files `output.log` (and its rotated predecessors) below the supervisor's directory of
 * workers. Lines of one worker stay in order; a file is known by its inode, so that rotation loses and repeats nothing.
 */
import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';

const OUTPUT_FILE = /^output\.log(?:\.(\d+))?$/;
const CHUNK_BYTES = 65_536;
/** A line without end is cut here. */
const MAX_LINE_LENGTH = 1_048_576;

interface Followed {
  offset: number;
  readonly decoder: StringDecoder;
  partial: string;
}

export class OutputTail {
  readonly #workersDirectory: string;
  readonly #topologyId: string;
  readonly #onLine: (worker: string, line: string) => void;
  readonly #files = new Map<string, Followed>();
  readonly #chunk = Buffer.alloc(CHUNK_BYTES);

  /** @param onLine called with each whole line; `worker` is the port of its slot */
  constructor(options: {
    supervisorDirectory: string;
    topologyId: string;
    onLine: (worker: string, line: string) => void;
  }) {
    this.#workersDirectory = join(options.supervisorDirectory, 'workers');
    this.#topologyId = options.topologyId;
    this.#onLine = options.onLine;
  }

  /** Hands out what has been written since the last call. */
  poll(): void {
    for (const name of namesIn(this.#workersDirectory)) {
      if (!name.startsWith(`${this.#topologyId}-`)) continue;
      const worker = name.slice(this.#topologyId.length + 1);
      const directory = join(this.#workersDirectory, name);
      // The oldest first: the highest number.
      const files = namesIn(directory)
        .flatMap((file) => {
          const match = OUTPUT_FILE.exec(file);
          return match === null ? [] : [{ file, age: Number(match[1] ?? 0) }];
        })
        .sort((a, b) => b.age - a.age);
      for (const { file } of files) this.#read(join(directory, file), worker);
    }
  }

  /** As {@link poll}, and the last lines that have no end. */
  end(): void {
    this.poll();
    for (const [key, followed] of this.#files) {
      const rest = followed.partial + followed.decoder.end();
      followed.partial = '';
      if (rest !== '') this.#onLine(key.split(' ')[0] ?? '', rest);
    }
  }

  #read(path: string, worker: string): void {
    let file: number;
    try {
      file = openSync(path, 'r');
    } catch {
      // Rotated away in between; it is found under its new name.
      return;
    }
    try {
      const { ino, size } = fstatSync(file);
      const key = `${worker} ${ino}`;
      let followed = this.#files.get(key);
      if (followed === undefined || followed.offset > size) {
        followed = { offset: 0, decoder: new StringDecoder('utf8'), partial: '' };
        this.#files.set(key, followed);
      }
      for (;;) {
        const bytes = readSync(file, this.#chunk, 0, CHUNK_BYTES, followed.offset);
        if (bytes === 0) return;
        followed.offset += bytes;
        this.#take(followed, followed.decoder.write(this.#chunk.subarray(0, bytes)), worker);
      }
    } finally {
      closeSync(file);
    }
  }

  #take(followed: Followed, text: string, worker: string): void {
    const lines = (followed.partial + text).split('\n');
    followed.partial = lines.pop() ?? '';
    for (const line of lines) this.#onLine(worker, line.endsWith('\r') ? line.slice(0, -1) : line);
    if (followed.partial.length > MAX_LINE_LENGTH) {
      this.#onLine(worker, followed.partial);
      followed.partial = '';
    }
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
