import { bolt, spout, t, topology } from 'isobar';

const numbers = spout({
  emits: { start: t.int64, value: t.int64, steps: t.int32 },
  *read(_context, from = 1) {
    for (let start = from; start <= 30; start++) {
      yield { row: { start, value: start, steps: 0 }, position: start + 1 };
    }
  },
});

/** Halves what is even, makes 3n + 1 of what is odd, until 1 is reached. */
const step = bolt({
  takes: { start: t.int64, value: t.int64, steps: t.int32 },
  emits: { start: t.int64, value: t.int64, steps: t.int32 },
  streams: { done: { start: t.int64, steps: t.int32 } },
  process({ start, value, steps }, out) {
    if (value === 1) out.to.done({ start, steps });
    else out.emit({ start, value: value % 2 === 0 ? value / 2 : 3 * value + 1, steps: steps + 1 });
  },
});

const show = bolt({
  takes: { start: t.int64, steps: t.int32 },
  process({ start, steps }) {
    console.log(`${start} takes ${steps} steps`);
  },
});

export default topology('cycle', (b) => {
  const source = b.spout('numbers', numbers);
  const steps = b.bolt('step', step, { parallelism: 2 }).shuffle(source);
  steps.shuffle(steps);
  b.bolt('show', show).shuffle(steps.streams.done);
});
