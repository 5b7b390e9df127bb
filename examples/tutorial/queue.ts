import { bolt, spout, t, topology } from 'isobar';

/** In place of a broker that gives a message again until it is confirmed. */
const queue = spout({
  emits: { text: t.string },
  open() {
    const waiting = Array.from({ length: 20 }, (_, i) => `message ${i}`);
    const unconfirmed = new Map<unknown, string>();
    let lastId = 0;
    return {
      next(out) {
        const text = waiting.shift();
        if (text === undefined) return unconfirmed.size === 0 ? 'ended' : 'idle';
        const id = ++lastId;
        unconfirmed.set(id, text);
        out.emit({ text }, { id });
        return;
      },
      ack(id) {
        unconfirmed.delete(id);
      },
      fail(id, reason) {
        const text = unconfirmed.get(id)!;
        console.log(`again because of ${reason}: ${text}`);
        unconfirmed.delete(id);
        waiting.push(text);
      },
    };
  },
});

const show = bolt({
  takes: { text: t.string },
  prepare() {
    let calls = 0;
    return {
      process({ text }) {
        calls++;
        if (calls === 5) throw new Error('the fifth call fails');
        console.log(`done: ${text}`);
      },
    };
  },
});

export default topology('queue', { 'topology.max-spout-pending': 4 }, (b) => {
  b.bolt('show', show).shuffle(b.spout('queue', queue));
});
