/**
 * `bench console`: processor time that a line printed in an executor thread costs, captured with its task and as Node prints it
 * (into a stream that throws it away), and what following calls over their awaits adds to an `await`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker as Thread } from 'node:worker_threads';
import { within } from '../child.js';
import type { BenchOptions } from '../options.js';
import { summarize, type Report } from '../report.js';
import type { PrintingThread } from './thread.js';

const LINES = 100_000;
const AWAITS = 1_000_000;
const LONGEST_MS = 60_000;

export async function benchConsole(options: BenchOptions, report: Report): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'isobar-console-'));
  const measure = async (way: PrintingThread['way'], full: number): Promise<number[]> => {
    const count = options.quick ? full / 10 : full;
    const values: number[] = [];
    for (let window = 0; window < options.windows; window++)
      values.push(await cpuMicrosOfOne({ way, count, path: join(directory, 'worker.log') }));
    return values;
  };
  try {
    const node = await measure('node', LINES);
    const lines = { bench: 'console', case: 'a-line', unit: 'µs' };
    report(summarize({ ...lines, metric: 'cpu-of-node' }, node));
    const toNode = { name: 'node', values: node };
    report(summarize({ ...lines, metric: 'cpu-captured' }, await measure('captured', LINES), toNode));
    const awaits = { bench: 'console', case: 'an-await', unit: 'µs' };
    const plain = await measure('awaits', AWAITS);
    report(summarize({ ...awaits, metric: 'cpu' }, plain));
    const followed = await measure('awaits-followed', AWAITS);
    report(summarize({ ...awaits, metric: 'cpu-followed' }, followed, { name: 'plain', values: plain }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function cpuMicrosOfOne(work: PrintingThread): Promise<number> {
  const thread = new Thread(new URL('./thread.js', import.meta.url), { workerData: work, stdout: true });
  thread.stdout.resume();
  const heard = (): Promise<void> =>
    new Promise((resolve, reject) => {
      thread.once('message', () => resolve());
      thread.once('error', reject);
    });
  try {
    await within(LONGEST_MS, 'the thread', heard());
    const before = process.cpuUsage();
    const done = heard();
    thread.postMessage('go');
    await within(LONGEST_MS, `${work.count} times ${work.way}`, done);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / work.count;
  } finally {
    await thread.terminate();
  }
}
