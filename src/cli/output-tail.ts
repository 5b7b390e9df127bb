/**
 * Follows what the code of a topology prints: records of that kind in the workers' logs (`worker.log`), and what native code
 * writes to `output.log`, with their predecessors. Lines of one worker stay in order.
 *
 * T1  What was lost is noticed: no log that was read at the last look is there any more, so that what followed in it has
 *     gone with it; or the log says that it dropped records.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { IsobarError, LineFollower } from '../base/index.js';

const FILE = /^(output|worker)\.log(?:\.(\d+))?$/;
/** So often may a log be renamed between listing its files and opening them. */
const RENAMES_AT_ONCE = 2;
/** Of the line that holds a record, so that the others need not be parsed. */
const OUTPUT_FIELD = '"output":"';
const DROPPED_FIELD = '"msg":"log.dropped"';

export class OutputTail {
  readonly #workersDirectory: string;
  readonly #topologyId: string;
  readonly #raw: LineFollower;
  readonly #records: LineFollower;
  readonly #onLost: (worker: string, fault: IsobarError) => void;
  /** Directories of workers whose log has been read. */
  readonly #known = new Set<string>();
  #lines = 0;

  /**
   * @param onLine called with each whole line; `worker` is the port of its slot
   * @param onLost called when lines of a worker were lost
   */
  constructor(options: {
    supervisorDirectory: string;
    topologyId: string;
    onLine: (worker: string, line: string) => void;
    onLost: (worker: string, fault: IsobarError) => void;
  }) {
    this.#onLost = options.onLost;
    this.#workersDirectory = join(options.supervisorDirectory, 'workers');
    this.#topologyId = options.topologyId;
    const onLine = (worker: string, line: string): void => {
      this.#lines++;
      options.onLine(worker, line);
    };
    this.#raw = new LineFollower(onLine);
    this.#records = new LineFollower((worker, record) => {
      if (record.includes(DROPPED_FIELD))
        this.#onLost(worker, lostOutput(worker, 'a log that could not be written'));
      for (const line of printedLines(record)) onLine(worker, line);
    });
  }

  /** Hands out what has been written since the last call. @returns how many lines that were */
  poll(): number {
    const before = this.#lines;
    for (const name of namesIn(this.#workersDirectory)) {
      if (!name.startsWith(`${this.#topologyId}-`)) continue;
      const worker = name.slice(this.#topologyId.length + 1);
      const directory = join(this.#workersDirectory, name);
      const names = namesIn(directory);
      this.#raw.readLog(filesOf(directory, 'output', names), worker);
      const logs = new Set(this.#records.readLog(filesOf(directory, 'worker', names), worker));
      if (logs.has('new') && !logs.has('continued') && this.#known.has(directory))
        this.#onLost(
          worker,
          lostOutput(worker, 'a full log that was removed before all of it had been shown'),
        );
      if (logs.has('new')) this.#known.add(directory);
    }
    return this.#lines - before;
  }

  /** As {@link poll}, and the last lines that have no end. */
  end(): void {
    this.poll();
    this.#raw.end();
  }
}

function printedLines(record: string): readonly string[] {
  if (!record.includes(OUTPUT_FIELD)) return [];
  try {
    const { output, msg } = JSON.parse(record) as { readonly output?: unknown; readonly msg?: unknown };
    return typeof output === 'string' && typeof msg === 'string' ? msg.split(/\r?\n/) : [];
  } catch {
    // A record that was cut when the disk was full.
    return [];
  }
}

/** Lines that a worker's code printed were lost. */
function lostOutput(worker: string, found: string): IsobarError {
  return new IsobarError('OUTPUT_LOST', `lines that code in worker ${worker} printed were lost`, {
    expected: 'a log that keeps what was printed until it has been shown',
    found,
  });
}

/** The files of one log, the youngest first, and those that renames of this moment may make. */
function filesOf(directory: string, log: 'output' | 'worker', names: readonly string[]): readonly string[] {
  const ages = names.flatMap((name) => {
    const match = FILE.exec(name);
    return match?.[1] === log ? [Number(match[2] ?? 0)] : [];
  });
  if (ages.length === 0) return [];
  return Array.from({ length: Math.max(...ages) + 1 + RENAMES_AT_ONCE }, (_, age) =>
    join(directory, age === 0 ? `${log}.log` : `${log}.log.${age}`),
  );
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
