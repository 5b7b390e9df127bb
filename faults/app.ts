/**
 * The accountant's topology: numbered rows through a keyed bolt into a sink that writes every number to disk before its
 * row is acked. What the numbers have to be is known, so every one can be accounted for.
 */
import { existsSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { bolt, spout, t, topology } from 'isobar';

const directory = process.env['FAULTS_DIRECTORY'] ?? '.';
const rows = Number(process.env['FAULTS_ROWS'] ?? 100_000);
const workMicros = Number(process.env['FAULTS_WORK_MICROS'] ?? 20);
const parallelism = Number(process.env['FAULTS_PARALLELISM'] ?? 2);

const numbers = spout({
  emits: { n: t.int32, key: t.string },
  *read({ index, count }, from?: number) {
    const first = from ?? index;
    for (let n = first; n < rows; n += count) yield { row: { n, key: `k${n % 97}` }, position: n + count };
  },
});

/** Works a while for each row, and ends its thread when it finds its name on the wall. */
const work = bolt({
  takes: { n: t.int32, key: t.string },
  emits: { n: t.int32 },
  prepare({ index }) {
    const trap = join(directory, `exit-${index}`);
    let seen = 0;
    return {
      process({ n }, out) {
        if ((++seen & 127) === 0 && existsSync(trap)) {
          unlinkSync(trap);
          process.exit(7);
        }
        const endAt = performance.now() + workMicros / 1000;
        while (performance.now() < endAt);
        out.emit({ n });
      },
    };
  },
});

const record = bolt({
  takes: { n: t.int32 },
  prepare({ task, generation }) {
    const file = openSync(join(directory, `sink-${task}-${generation}`), 'a');
    const line = Buffer.alloc(9, 10);
    return {
      process({ n }) {
        line.write(String(n).padStart(8, '0'), 0, 'latin1');
        writeSync(file, line);
      },
    };
  },
});

export default topology('accountant', (b) => {
  const source = b.spout('numbers', numbers, { parallelism });
  const worked = b.bolt('work', work, { parallelism }).fields(source, ['key']);
  b.bolt('record', record, { parallelism }).shuffle(worked);
});
