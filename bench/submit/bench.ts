/**
 * `bench submit`: from the command `isobar submit` to the first acked row on daemons that run, without and with the type
 * check. The application of `bench startup` writes the moments down itself.
 */
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { processStartMs } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { DevRun } from '../product/dev-run.js';
import { summarize, type Report } from '../report.js';
import { readMarks } from '../startup/marks.js';
import { waitUntilQuiet } from '../window.js';

const APP = 'bench/startup/app.ts';
const NAME = 'startup';
const LONGEST_MS = 60_000;
const POLL_MS = 5;
/** Submissions that one window of the other benches stands for: one is short and varies. */
const SUBMISSIONS_PER_WINDOW = 2;

interface Submission {
  readonly firstAckMs: number;
  readonly commandMs: number;
  /** From the end of the command to the start of the worker process; below 0 when that came first. */
  readonly workerStartMs: number;
  /** From the start of the worker process. */
  readonly firstRowMs: number;
}

export async function benchSubmit(options: BenchOptions, report: Report): Promise<void> {
  const cluster = new DevRun((root) => ({ ISOBAR_BENCH_MARKS: join(root, 'marks') }));
  try {
    await cluster.start();
    for (const check of [false, true]) {
      const all: Submission[] = [];
      const runs = options.quick ? 1 : options.windows * SUBMISSIONS_PER_WINDOW;
      for (let run = 0; run < runs; run++) {
        await waitUntilQuiet(options.window.quietWaitMs);
        all.push(await submitOnce(cluster, check));
      }
      const names = { bench: 'submit', case: check ? 'type-checked' : 'no-check', unit: 'ms' };
      const say = (metric: string, value: (one: Submission) => number): void =>
        report(summarize({ ...names, metric }, all.map(value)));
      say('first-acked-row', ({ firstAckMs }) => firstAckMs);
      say('command', ({ commandMs }) => commandMs);
      say('command-end-to-worker-start', ({ workerStartMs }) => workerStartMs);
      say('worker-start-to-first-row', ({ firstRowMs }) => firstRowMs);
    }
  } finally {
    await cluster.close();
  }
}

async function submitOnce(cluster: DevRun, check: boolean): Promise<Submission> {
  const marksPath = join(cluster.root, 'marks');
  rmSync(marksPath, { force: true });
  const startedMs = Date.now();
  await cluster.ask('submit', resolve(APP), ...(check ? [] : ['--no-check']));
  const submittedMs = Date.now();
  for (;;) {
    const marks = readMarks(marksPath);
    const [row, ack] = [marks.get('row'), marks.get('ack')];
    if (row !== undefined && ack !== undefined) {
      const workerMs = processStartMs(row.pid);
      if (workerMs === undefined) throw new Error('The worker was gone before its start time could be read.');
      await killAndWait(cluster);
      return {
        firstAckMs: ack.atMs - startedMs,
        commandMs: submittedMs - startedMs,
        workerStartMs: workerMs - submittedMs,
        firstRowMs: row.atMs - workerMs,
      };
    }
    if (Date.now() - startedMs > LONGEST_MS)
      throw new Error(`No row was acked within ${LONGEST_MS / 1000} s.`);
    await pause(POLL_MS);
  }
}

/** The next submission finds the cluster as the first one did: no topology, no worker. */
async function killAndWait(cluster: DevRun): Promise<void> {
  await cluster.ask('kill', NAME, '--wait', '0');
  const deadlineMs = Date.now() + LONGEST_MS;
  for (;;) {
    const { topologies } = (await cluster.ask('list')) as { topologies: readonly unknown[] };
    if (topologies.length === 0) return;
    if (Date.now() > deadlineMs) throw new Error(`The topology was not removed in ${LONGEST_MS / 1000} s.`);
    await pause(POLL_MS);
  }
}
