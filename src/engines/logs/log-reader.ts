/**
 * Reads several logs as one, in the order of time: first what they hold, then what is added. Records of one log stay in the
 * order in which they were written; memory does not grow with the size of the logs.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { LineFollower } from '../../base/index.js';
import { isWanted, type LogEntry, type LogFilter, parseEntry } from './log-entry.js';
import { filesOf, type LogPlace } from './log-places.js';

const CHUNK_BYTES = 65_536;
const LINE_BREAK = 10;
/** Threads that share a file may be so far apart. */
const DISORDER_MS = 1000;

export class LogReader {
  /** Looked up again at each look: workers come and go. */
  readonly #places: () => readonly LogPlace[];
  readonly #filter: LogFilter;
  readonly #now: () => number;
  readonly #follower: LineFollower;
  #added: LogEntry[] = [];

  /** @param wallMs the time, for lines that have none of their own */
  constructor(places: () => readonly LogPlace[], filter: LogFilter, wallMs: () => number) {
    this.#places = places;
    this.#filter = filter;
    this.#now = wallMs;
    this.#follower = new LineFollower((from, line) => {
      const entry = parseEntry(from, line, this.#now());
      if (entry !== undefined && isWanted(entry, this.#filter)) this.#added.push(entry);
    });
  }

  /** What the logs hold now; {@link added} goes on behind it. */
  *stored(): Generator<LogEntry> {
    const sources = this.#places().map((place) => inOrder(this.#entriesOf(place)));
    const heads = sources.flatMap((source) => {
      const head = source.next();
      return head.done === true ? [] : [{ source, entry: head.value }];
    });
    while (heads.length > 0) {
      let first = 0;
      for (let index = 1; index < heads.length; index++)
        if (heads[index]!.entry.timeMs < heads[first]!.entry.timeMs) first = index;
      const { source, entry } = heads[first]!;
      yield entry;
      const next = source.next();
      if (next.done === true) heads.splice(first, 1);
      else heads[first] = { source, entry: next.value };
    }
  }

  /** What has been added since the last call. */
  added(): readonly LogEntry[] {
    for (const place of this.#places())
      for (const { path } of filesOf(place)) this.#follower.read(path, place.name);
    const added = this.#added;
    this.#added = [];
    return added.sort((a, b) => a.timeMs - b.timeMs);
  }

  *#entriesOf(place: LogPlace): Generator<LogEntry> {
    const { sinceMs = -Infinity } = this.#filter;
    // All are opened first: a file that is renamed meanwhile must not be read twice, or not at all.
    const files = filesOf(place).flatMap(({ path, changedMs }) => {
      const file = openIfThere(path);
      return file === undefined ? [] : [{ file, changedMs }];
    });
    try {
      for (const { file, changedMs } of files) {
        const { ino, size } = fstatSync(file);
        if (changedMs < sinceMs) this.#follower.goOn(place.name, ino, size);
        else {
          for (const { line, end } of wholeLines(file, size)) {
            this.#follower.goOn(place.name, ino, end);
            const entry = parseEntry(place.name, line, changedMs);
            if (entry !== undefined && isWanted(entry, this.#filter)) yield entry;
          }
        }
      }
    } finally {
      for (const { file } of files) closeSync(file);
    }
  }
}

/**
 * The entries of one log in order of time: its threads write as they get to it, so that one may come behind what is younger.
 * None is held back for longer than until one comes that is `DISORDER_MS` younger.
 */
function* inOrder(entries: Iterable<LogEntry>): Generator<LogEntry> {
  let held: LogEntry[] = [];
  let first = 0;
  for (const entry of entries) {
    let at = held.length;
    while (at > first && held[at - 1]!.timeMs > entry.timeMs) at--;
    held.splice(at, 0, entry);
    const isOldMs = held.at(-1)!.timeMs - DISORDER_MS;
    while (held[first]!.timeMs < isOldMs) yield held[first++]!;
    if (first > 1024 && 2 * first > held.length) {
      held = held.slice(first);
      first = 0;
    }
  }
  for (; first < held.length; first++) yield held[first]!;
}

/** Lines with their end in the first `size` bytes of a file, and the offset behind each. */
function* wholeLines(file: number, size: number): Generator<{ readonly line: string; readonly end: number }> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let rest = Buffer.alloc(0);
  let restStart = 0;
  for (let offset = 0; offset < size; ) {
    const read = readSync(file, chunk, 0, Math.min(CHUNK_BYTES, size - offset), offset);
    if (read === 0) return;
    offset += read;
    rest = Buffer.concat([rest, chunk.subarray(0, read)]);
    let start = 0;
    for (let end = rest.indexOf(LINE_BREAK); end >= 0; end = rest.indexOf(LINE_BREAK, start)) {
      yield { line: rest.toString('utf8', start, end), end: restStart + end + 1 };
      start = end + 1;
    }
    rest = rest.subarray(start);
    restStart += start;
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    // Removed in between, as the oldest.
    return undefined;
  }
}
