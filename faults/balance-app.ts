/**
 * Rows through components of unequal parallelism: where they run is what a balance round looks at. The counts come from
 * `BALANCE_COUNTS`, such as `2,4,6`.
 */
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { threadId } from 'node:worker_threads';
import { bolt, spout, t, topology } from 'isobar';

const [sources = 2, maps = 4, sinks = 6] = (process.env['BALANCE_COUNTS'] ?? '2,4,6').split(',').map(Number);

const numbers = spout({
  emits: { n: t.int32 },
  async *read(_context, from: number = 0) {
    for (let n = from; ; n++) {
      yield { row: { n: n % 1_000_000 }, position: n + 1 };
      // Often enough to see where rows stop, and seldom enough to leave the cores to the processes that start.
      await pause(10);
    }
  },
});

const map = bolt({
  takes: { n: t.int32 },
  emits: { n: t.int32 },
  process({ n }, out) {
    out.emit({ n: n + 1 });
  },
});

/** One for all sinks of a thread. */
let file: number | undefined;

/** Every row is on disk before it is acked, so that whether rows flow can be seen from outside at any moment. */
const sink = bolt({
  takes: { n: t.int32 },
  process({ n }) {
    file ??= openSync(join(process.env['FAULTS_DIRECTORY'] ?? '.', `sink-${process.pid}-${threadId}`), 'a');
    writeSync(file, `${String(n).padStart(8, '0')}\n`);
  },
});

export default topology('balance', { 'topology.workers': 'max-parallelism' }, (b) => {
  const mapped = b
    .bolt('map', map, { parallelism: maps })
    .shuffle(b.spout('source', numbers, { parallelism: sources }));
  b.bolt('sink', sink, { parallelism: sinks }).shuffle(mapped);
});
