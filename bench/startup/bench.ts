/**
 * `bench startup`: from the command to the first acked row, without and with the type check, and from a worker
 * process's start to the first row in its last bolt. The application writes the moments down itself.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { processStartMs } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { ProductRun } from '../product/run.js';
import { summarize, type Report } from '../report.js';
import { waitUntilQuiet } from '../window.js';
import { readMarks } from './marks.js';

const LONGEST_START_MS = 60_000;
const POLL_MS = 5;
/** Runs that one window of the other benches stands for: a start is short and varies. */
const STARTS_PER_WINDOW = 2;

interface Start {
  readonly firstAckMs: number;
  /** From the start of the worker process. */
  readonly firstRowMs: number;
}

export async function benchStartup(options: BenchOptions, report: Report): Promise<void> {
  for (const check of [false, true]) {
    const starts: Start[] = [];
    const runs = options.quick ? 1 : options.windows * STARTS_PER_WINDOW;
    for (let run = 0; run < runs; run++) {
      await waitUntilQuiet(options.window.quietWaitMs);
      starts.push(await measureStart(check));
    }
    const names = { bench: 'startup', case: check ? 'type-checked' : 'no-check', unit: 'ms' };
    report(
      summarize(
        { ...names, metric: 'first-acked-row' },
        starts.map((start) => start.firstAckMs),
      ),
    );
    report(
      summarize(
        { ...names, metric: 'worker-start-to-first-row' },
        starts.map((start) => start.firstRowMs),
      ),
    );
  }
}

async function measureStart(check: boolean): Promise<Start> {
  const directory = mkdtempSync(join(tmpdir(), 'isobar-bench-'));
  const marksPath = join(directory, 'marks');
  const run = new ProductRun({
    app: 'bench/startup/app.ts',
    arguments: check ? [] : ['--no-check'],
    environment: { ISOBAR_BENCH_MARKS: marksPath },
  });
  try {
    for (;;) {
      const marks = readMarks(marksPath);
      const [row, ack] = [marks.get('row'), marks.get('ack')];
      if (row !== undefined && ack !== undefined) {
        const workerMs = processStartMs(row.pid);
        if (workerMs === undefined)
          throw new Error('The worker was gone before its start time could be read.');
        await run.interrupt();
        return { firstAckMs: ack.atMs - run.startedMs, firstRowMs: row.atMs - workerMs };
      }
      if (run.hasClosed) throw new Error(`isobar run ended before a row was acked.\n${run.errors}`);
      if (Date.now() - run.startedMs > LONGEST_START_MS) {
        throw new Error(`No row was acked within ${LONGEST_START_MS / 1000} s.\n${run.errors}`);
      }
      await pause(POLL_MS);
    }
  } finally {
    run.kill();
    rmSync(directory, { recursive: true, force: true });
  }
}
