/**
 * The smallest topology that never ends: a generator of numbers, and a bolt that says once a second how many it has seen.
 *
 *     isobar run examples/ticker/app.ts          (Ctrl-C drains and ends it)
 */
import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from 'isobar';

const numbers = spout({
  emits: { value: t.int64 },
  async *read(context, from = 0) {
    for (let value = from; !context.signal.aborted; value++) {
      yield { row: { value }, position: value + 1 };
      await pause(10);
    }
  },
});

const watch = bolt({
  takes: { value: t.int64 },
  every: '1s',
  prepare() {
    let seen = 0;
    let last = 0;
    return {
      process({ value }) {
        seen++;
        last = value;
      },
      tick() {
        console.log(`${seen} numbers, the last is ${last}`);
      },
    };
  },
});

export default topology('ticker', (b) => {
  const source = b.spout('numbers', numbers);
  b.bolt('watch', watch).shuffle(source);
});
