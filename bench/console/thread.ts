/** Prints in a thread, as user code of a topology would: with Node's own streams, or captured as Isobar does it. */
import { parentPort, workerData } from 'node:worker_threads';
import type * as Base from '../../build/base/index.js';
import type * as UserCalls from '../../build/worker/user-calls.js';
import type * as UserOutput from '../../build/worker/user-output.js';
import { loadBuilt } from '../load-built.js';

export interface PrintingThread {
  readonly way: 'node' | 'captured' | 'awaits' | 'awaits-followed';
  readonly count: number;
  readonly path: string;
}

const { way, count, path } = workerData as PrintingThread;

async function awaitOften(): Promise<void> {
  for (let index = 0; index < count; index++) await Promise.resolve(index);
}

const { createLogger, LogFile } = await loadBuilt<typeof Base>('base/index.js');
const { captureOutput, outputRecords } = await loadBuilt<typeof UserOutput>('worker/user-output.js');
const { followCalls, followed } = await loadBuilt<typeof UserCalls>('worker/user-calls.js');
if (way === 'captured') {
  const file = new LogFile({ path, maxBytes: 16_777_216, maxFiles: 4, maxRecordsPerSecond: null });
  const task = { component: 'split', task: 7 };
  const record = outputRecords(createLogger({ file, level: 'debug' }), () => task);
  captureOutput({ stdout: process.stdout, stderr: process.stderr, console }, record);
}
if (way === 'awaits-followed') followCalls();
parentPort!.once('message', () => {
  if (way === 'awaits' || way === 'awaits-followed') {
    void followed(7, awaitOften).then(() => parentPort!.postMessage('done'));
    return;
  }
  for (let index = 0; index < count; index++) console.log('row', index, 'of a key');
  parentPort!.postMessage('done');
});
parentPort!.postMessage('ready');
