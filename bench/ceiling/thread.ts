/** One host in a thread of its own: a plain loop that never meets the event loop until it is told to stop. */
import { parentPort, workerData } from 'node:worker_threads';
import { Host } from './host.js';
import { openHostMemory, RUN, STOP } from './protocol.js';
import { RingLink } from './ring-link.js';

export interface ThreadStart {
  readonly index: number;
  readonly acking: boolean;
  readonly rate: number;
  readonly memory: SharedArrayBuffer;
  /** null: it is alone. */
  readonly rings: { readonly out: SharedArrayBuffer; readonly into: SharedArrayBuffer } | null;
}

// The process that starts this thread gives exactly this.
const start = workerData as ThreadStart;
const { control, totals, histogram } = openHostMemory(start.memory);
const link = start.rings === null ? null : new RingLink(start.rings.out, start.rings.into);
const host = new Host({
  acking: start.acking,
  index: start.index,
  link,
  rate: start.rate,
  totals,
  histogram,
  nowMs: () => performance.now(),
});

for (;;) {
  const phase = Atomics.load(control, 0);
  if (phase === STOP) break;
  if (host.step(phase === RUN) > 0) continue;
  if (link === null) Atomics.wait(control, 0, phase, host.idleMs());
  else link.sleep(host.idleMs());
}
parentPort!.postMessage(host.counts);
