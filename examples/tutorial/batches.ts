import { bolt, spout, t, topology, type Anchor } from 'isobar';

const ROWS_AT_ONCE = 10;

const numbers = spout({
  emits: { value: t.int64 },
  *read(_context, from = 1) {
    for (let value = from; value <= 95; value++) yield { row: { value }, position: value + 1 };
  },
});

const batch = bolt({
  takes: { value: t.int64 },
  emits: { rows: t.int32, sum: t.int64 },
  manual: true,
  every: '100ms',
  prepare() {
    let held: { value: number; anchor: Anchor }[] = [];
    const take = () => {
      const taken = held;
      held = [];
      const sum = taken.reduce((total, { value }) => total + value, 0);
      return { row: { rows: taken.length, sum }, anchors: taken.map(({ anchor }) => anchor) };
    };
    return {
      process({ value }, out, anchor) {
        held.push({ value, anchor });
        if (held.length < ROWS_AT_ONCE) return;
        const { row, anchors } = take();
        out.emit(row, { anchors });
        for (const one of anchors) one.ack();
      },
      tick(out) {
        if (held.length === 0) return;
        const { row, anchors } = take();
        out.emit(row, { anchors });
        for (const one of anchors) one.ack();
      },
    };
  },
});

const show = bolt({
  takes: { rows: t.int32, sum: t.int64 },
  process({ rows, sum }) {
    console.log(`${rows} rows, sum ${sum}`);
  },
});

export default topology('batches', (b) => {
  const batches = b.bolt('batch', batch).shuffle(b.spout('numbers', numbers));
  b.bolt('show', show).shuffle(batches);
});
