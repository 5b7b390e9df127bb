/**
 * Follows what the code of a topology prints: records of that kind in the workers' logs (`worker.log`), and what native code
 * writes to `output.log`, with their predecessors. Lines of one worker stay in order.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { LineFollower } from '../base/index.js';

const FILE = /^(output|worker)\.log(?:\.(\d+))?$/;
/** Of the line that holds a record, so that the others need not be parsed. */
const OUTPUT_FIELD = '"output":"';

export class OutputTail {
  readonly #workersDirectory: string;
  readonly #topologyId: string;
  readonly #raw: LineFollower;
  readonly #records: LineFollower;

  /** @param onLine called with each whole line; `worker` is the port of its slot */
  constructor(options: {
    supervisorDirectory: string;
    topologyId: string;
    onLine: (worker: string, line: string) => void;
  }) {
    this.#workersDirectory = join(options.supervisorDirectory, 'workers');
    this.#topologyId = options.topologyId;
    this.#raw = new LineFollower(options.onLine);
    this.#records = new LineFollower((worker, record) => {
      for (const line of printedLines(record)) options.onLine(worker, line);
    });
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
          const match = FILE.exec(file);
          return match === null ? [] : [{ file, kind: match[1], age: Number(match[2] ?? 0) }];
        })
        .sort((a, b) => b.age - a.age);
      for (const { file, kind } of files)
        (kind === 'output' ? this.#raw : this.#records).read(join(directory, file), worker);
    }
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

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
