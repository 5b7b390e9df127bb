import { bolt, spout, t, topology } from 'isobar';

const numbers = spout({
  emits: { value: t.int64 },
  *read(_context, from = 1) {
    for (let value = from; value <= 100; value++) {
      yield { row: { value }, position: value + 1 };
    }
  },
});

const show = bolt({
  takes: { value: t.int64 },
  process({ value }) {
    if (value % 25 === 0) console.log(`${value} went by`);
  },
});

export default topology('first', (b) => {
  const source = b.spout('numbers', numbers);
  b.bolt('show', show).shuffle(source);
});
