/**
 * The topology of the accountant of planned moves: numbered rows, counted by key with state that travels, into a sink that is
 * keyed as well and writes every row to disk before it is acked. Each life of each task leaves a file that says when it began,
 * when it took its first and its last row, and when it was closed, so that two lives at once can be seen.
 *
 * `trap-STEP` in the directory, with an action in it, does harm at that step of the next move.
 */
import { existsSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { bolt, spout, t, topology } from 'isobar';

const directory = process.env['FAULTS_DIRECTORY'] ?? '.';
const workMicros = Number(process.env['FAULTS_WORK_MICROS'] ?? 20);
const KEYS = 97;
const SLOW_MS = 900;
/** Longer than the `rebalance.save-timeout` that the accountant sets. */
const HANG_MS = 3000;

/** Microseconds of the machine's monotonic clock: the same for all processes. */
function nowMicros(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1_000_000 + Math.floor(nanos / 1000);
}

/** Six numbers of 20 characters: begun, first row, last row, closed, process, thread. */
class Life {
  readonly #file: number;
  readonly #text = Buffer.alloc(20);
  #hasRow = false;

  constructor({ component, task, generation }: { component: string; task: number; generation: number }) {
    this.#file = openSync(join(directory, `life-${component}-${task}-${generation}`), 'w');
    this.#write(4, process.pid);
    this.#write(5, threadId);
    this.#write(0, nowMicros());
  }

  /** A row is taken or read; true: the first. */
  note(): boolean {
    const now = nowMicros();
    const isFirst = !this.#hasRow;
    this.#hasRow = true;
    if (isFirst) this.#write(1, now);
    this.#write(2, now);
    return isFirst;
  }

  close(): void {
    this.#write(3, nowMicros());
  }

  #write(field: number, value: number): void {
    this.#text.write(String(value).padStart(20), 0, 'latin1');
    writeSync(this.#file, this.#text, 0, 20, field * 20);
  }
}

/** What is to be done at a step; each trap is for one task. */
function trapAt(step: string): string | null {
  const trap = join(directory, `trap-${step}`);
  if (!existsSync(trap)) return null;
  try {
    renameSync(trap, join(directory, `fired-${step}`));
  } catch {
    // Another task was faster.
    return null;
  }
  return readFileSync(join(directory, `fired-${step}`), 'utf8');
}

function springTrap(step: string): void {
  const action = trapAt(step);
  switch (action) {
    case null:
      return;
    case 'throw':
      throw new Error(`the trap at ${step}`);
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return;
    case 'exit':
      // In an executor thread this ends the thread only.
      process.exit(7);
      return;
    case 'hang':
      return waitBusily(HANG_MS);
    default:
      return waitBusily(SLOW_MS);
  }
}

function waitBusily(ms: number): void {
  const endAt = performance.now() + ms;
  while (performance.now() < endAt);
}

/** The number that the source ends before, once it has been decided. */
function readEnd(): number {
  const file = join(directory, 'end');
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : Infinity;
}

const numbers = spout({
  emits: { n: t.int32, key: t.string },
  *read(context, from?: number) {
    const life = new Life(context);
    let end = readEnd();
    try {
      for (let n = from ?? context.index, i = 0; n < end; n += context.count, i++) {
        if ((i & 63) === 0) end = readEnd();
        if (n >= end) break;
        life.note();
        yield { row: { n, key: `k${n % KEYS}` }, position: n + context.count };
      }
    } finally {
      life.close();
    }
  },
});

const count = bolt({
  takes: { n: t.int32, key: t.string },
  emits: { n: t.int32, key: t.string, seen: t.int32 },
  prepare(context, saved?: Map<string, number>) {
    if (saved !== undefined) {
      springTrap('start');
    }
    const life = new Life(context);
    const counts = saved ?? new Map<string, number>();
    return {
      process({ n, key }, out) {
        if (life.note() && saved !== undefined) springTrap('first-row');
        const seen = (counts.get(key) ?? 0) + 1;
        counts.set(key, seen);
        waitBusily(workMicros / 1000);
        out.emit({ n, key, seen });
      },
      save() {
        springTrap('save');
        return counts;
      },
      close() {
        springTrap('close');
        life.close();
      },
    };
  },
});

const record = bolt({
  takes: { n: t.int32, key: t.string, seen: t.int32 },
  prepare(context) {
    const life = new Life(context);
    const file = openSync(join(directory, `sink-${context.task}-${context.generation}`), 'a');
    const line = Buffer.alloc(37, 10);
    return {
      process({ n, seen }) {
        life.note();
        line.write(String(n).padStart(9, '0'), 0, 'latin1');
        line.write(String(seen).padStart(9), 9, 'latin1');
        line.write(String(nowMicros()).padStart(18), 18, 'latin1');
        writeSync(file, line);
      },
      // It has nothing to take along; that it says so makes it movable.
      save: () => null,
      close: () => life.close(),
    };
  },
});

export default topology('movers', (b) => {
  const source = b.spout('numbers', numbers, { parallelism: 2, tasks: 4 });
  const counted = b.bolt('count', count, { parallelism: 3, tasks: 8 }).fields(source, ['key']);
  b.bolt('record', record, { parallelism: 2, tasks: 4 }).fields(counted, ['key']);
});
