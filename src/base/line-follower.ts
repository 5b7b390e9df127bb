/**
 * Reads text files that grow: whole lines, each once. A file is known by its inode, so that renaming it loses and repeats
 * nothing; one that has become shorter is read from its beginning.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

const CHUNK_BYTES = 65_536;
/** A line without end is cut here. */
const MAX_LINE_LENGTH = 1_048_576;

interface Followed {
  readonly source: string;
  offset: number;
  readonly decoder: StringDecoder;
  partial: string;
}

export class LineFollower {
  readonly #onLine: (source: string, line: string) => void;
  readonly #files = new Map<string, Followed>();
  readonly #chunk = Buffer.alloc(CHUNK_BYTES);

  /** @param onLine called with each whole line, and with the source of its file */
  constructor(onLine: (source: string, line: string) => void) {
    this.#onLine = onLine;
  }

  /** Hands out what has been written to a file since the last call; one that is not there is left out. */
  read(path: string, source: string): void {
    let file: number;
    try {
      file = openSync(path, 'r');
    } catch {
      // Renamed in between; it is found under its new name.
      return;
    }
    try {
      const { ino, size } = fstatSync(file);
      const followed = this.#followed(source, ino, size);
      for (;;) {
        const bytes = readSync(file, this.#chunk, 0, CHUNK_BYTES, followed.offset);
        if (bytes === 0) return;
        followed.offset += bytes;
        this.#take(followed, followed.decoder.write(this.#chunk.subarray(0, bytes)));
      }
    } finally {
      closeSync(file);
    }
  }

  /** What lies before `offset` in the file of that inode has been read by somebody else. */
  goOn(source: string, inode: number, offset: number): void {
    this.#followed(source, inode, Infinity).offset = offset;
  }

  /** The last lines that have no end. */
  end(): void {
    for (const followed of this.#files.values()) {
      const rest = followed.partial + followed.decoder.end();
      followed.partial = '';
      if (rest !== '') this.#onLine(followed.source, rest);
    }
  }

  #followed(source: string, inode: number, size: number): Followed {
    const key = `${source} ${inode}`;
    const known = this.#files.get(key);
    if (known !== undefined && known.offset <= size) return known;
    const followed: Followed = { source, offset: 0, decoder: new StringDecoder('utf8'), partial: '' };
    this.#files.set(key, followed);
    return followed;
  }

  #take(followed: Followed, text: string): void {
    const lines = (followed.partial + text).split('\n');
    followed.partial = lines.pop() ?? '';
    for (const line of lines) this.#onLine(followed.source, line.endsWith('\r') ? line.slice(0, -1) : line);
    if (followed.partial.length > MAX_LINE_LENGTH) {
      this.#onLine(followed.source, followed.partial);
      followed.partial = '';
    }
  }
}
