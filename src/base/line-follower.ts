/**
 * Reads text files that grow: whole lines, each once. A file is known by its inode and how it begins, so that renaming it
 * loses and repeats nothing, and a new file that was given the inode of a removed one is read from its beginning; so is one
 * that has become shorter.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

const CHUNK_BYTES = 65_536;
/** A line without end is cut here. */
const MAX_LINE_LENGTH = 1_048_576;
/** A file is known by so much of its beginning: a log record's time and text. */
const HEAD_BYTES = 256;

/** `continued`: it was read before. `new`: this was its first reading. `absent`: there is no such file. */
type FollowedFile = 'continued' | 'new' | 'absent';

interface Followed {
  readonly source: string;
  offset: number;
  /** Its first bytes, as many as were there when it was last read. */
  head: Buffer;
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
  read(path: string, source: string): FollowedFile {
    const file = openIfThere(path);
    return file === undefined ? 'absent' : this.#read(file, source);
  }

  /**
   * As {@link read}, for all files of a log, the oldest first. A file that is renamed meanwhile is read once, and in its place.
   *
   * @param paths the youngest first, as far as the log may reach
   */
  readLog(paths: readonly string[], source: string): readonly FollowedFile[] {
    // A rename makes a file older: opened from the youngest on, one can be met twice, but none is passed by.
    const opened = new Map<number, number>();
    for (const path of paths) {
      const file = openIfThere(path);
      if (file === undefined) continue;
      const { ino } = fstatSync(file);
      if (opened.has(ino)) closeSync(file);
      else opened.set(ino, file);
    }
    return [...opened.values()].reverse().map((file) => this.#read(file, source));
  }

  /** Closes the file. */
  #read(file: number, source: string): FollowedFile {
    try {
      const { ino, size } = fstatSync(file);
      const head = Buffer.alloc(HEAD_BYTES);
      const headBytes = readSync(file, head, 0, HEAD_BYTES, 0);
      const key = `${source} ${ino}`;
      const known = this.#files.get(key);
      const isKnown = known !== undefined && known.offset <= size && beginsWith(head, known.head);
      const followed = isKnown ? known : this.#begin(key, source, 0);
      followed.head = head.subarray(0, headBytes);
      for (;;) {
        const bytes = readSync(file, this.#chunk, 0, CHUNK_BYTES, followed.offset);
        if (bytes === 0) return isKnown ? 'continued' : 'new';
        followed.offset += bytes;
        this.#take(followed, followed.decoder.write(this.#chunk.subarray(0, bytes)));
      }
    } finally {
      closeSync(file);
    }
  }

  /** What lies before `offset` in the file of that inode has been read by somebody else. */
  goOn(source: string, inode: number, offset: number): void {
    this.#begin(`${source} ${inode}`, source, offset);
  }

  /** The last lines that have no end. */
  end(): void {
    for (const followed of this.#files.values()) {
      const rest = followed.partial + followed.decoder.end();
      followed.partial = '';
      if (rest !== '') this.#onLine(followed.source, rest);
    }
  }

  #begin(key: string, source: string, offset: number): Followed {
    const head = Buffer.alloc(0);
    const followed: Followed = { source, offset, head, decoder: new StringDecoder('utf8'), partial: '' };
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

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    // Renamed in between, or the oldest and removed.
    return undefined;
  }
}

function beginsWith(bytes: Buffer, head: Buffer): boolean {
  return bytes.subarray(0, head.length).equals(head);
}
