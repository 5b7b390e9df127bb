/**
 * A small topology that notes when things happen first, in the file named by ISOBAR_BENCH_MARKS: a line
 * `row PID MS-SINCE-EPOCH` when the first row reaches the last bolt, `ack PID MS` when the first tree is complete.
 */
import { appendFileSync } from 'node:fs';
import { bolt, spout, t, topology } from 'isobar';

function mark(what: string): void {
  const path = process.env['ISOBAR_BENCH_MARKS'];
  if (path !== undefined) appendFileSync(path, `${what} ${process.pid} ${Date.now()}\n`);
}

const numbers = spout({
  emits: { number: t.int32 },
  open() {
    let next = 0;
    let acked = false;
    return {
      next(out) {
        if (next === 1000) return 'idle';
        out.emit({ number: next }, { id: next });
        next++;
        return undefined;
      },
      ack() {
        if (!acked) mark('ack');
        acked = true;
      },
    };
  },
});

const double = bolt({
  takes: { number: t.int32 },
  emits: { number: t.int32 },
  process({ number }, out) {
    out.emit({ number: number * 2 });
  },
});

const last = bolt({
  takes: { number: t.int32 },
  prepare() {
    let seen = false;
    return {
      process() {
        if (!seen) mark('row');
        seen = true;
      },
    };
  },
});

export default topology('startup', (b) => {
  const source = b.spout('numbers', numbers);
  const doubled = b.bolt('double', double).shuffle(source);
  b.bolt('last', last).fields(doubled, ['number']);
});
