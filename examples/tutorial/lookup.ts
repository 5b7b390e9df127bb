import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from 'isobar';

const users = spout({
  emits: { id: t.int32 },
  *read(_context, from = 0) {
    for (let id = from; id < 200; id++) yield { row: { id }, position: id + 1 };
  },
});

const lookup = bolt({
  takes: { id: t.int32 },
  emits: { id: t.int32, name: t.string },
  unordered: true,
  async process({ id }, out) {
    await pause(20); // in place of a request to a database or a service
    out.emit({ id, name: `user number ${id}` });
  },
});

const show = bolt({
  takes: { name: t.string },
  prepare() {
    let names = 0;
    return {
      process() {
        names++;
      },
      end() {
        console.log(`${names} names`);
      },
    };
  },
});

export default topology('lookup', { 'bolt.max-in-flight': 100 }, (b) => {
  const found = b.bolt('lookup', lookup).shuffle(b.spout('users', users));
  b.bolt('show', show).shuffle(found);
});
