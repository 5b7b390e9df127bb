import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from 'isobar';

const events = spout({
  emits: { value: t.int64 },
  async *read(context, from = 0) {
    for (let value = from; !context.signal.aborted; value++) {
      yield { row: { value }, position: value + 1 };
      await pause(5);
    }
  },
});

const rate = bolt({
  takes: { value: t.int64 },
  emits: { rows: t.int64 },
  every: '500ms',
  prepare() {
    let rows = 0;
    return {
      process() {
        rows++;
      },
      tick(out) {
        out.emit({ rows });
        rows = 0;
      },
    };
  },
});

const show = bolt({
  takes: { rows: t.int64 },
  process({ rows }) {
    console.log(`${rows} rows in half a second`);
  },
});

export default topology('clock', (b) => {
  const rates = b.bolt('rate', rate).shuffle(b.spout('events', events));
  b.bolt('show', show).shuffle(rates);
});
