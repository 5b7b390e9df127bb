import { bolt, spout, t, topology } from 'isobar';

const numbers = spout({
  emits: { value: t.int64 },
  *read(_context, from = 1) {
    for (let value = from; value <= 10; value++) yield { row: { value }, position: value + 1 };
  },
});

const work = bolt({
  takes: { value: t.int64 },
  prepare() {
    const tried = new Set<number>();
    return {
      process({ value }) {
        if (value === 7) throw new Error('seven is always too much');
        if (value === 3 && !tried.has(value)) {
          tried.add(value);
          throw new Error('three needs a second attempt');
        }
        console.log(`done ${value}`);
      },
    };
  },
});

export default topology('failing', { 'replay.max-failures': 2 }, (b) => {
  b.bolt('work', work).shuffle(b.spout('numbers', numbers));
});
