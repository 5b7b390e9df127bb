/** A topology with nothing to do: its spout has never a row. */
import { bolt, spout, t, topology } from 'isobar';

const silent = spout({
  emits: { word: t.string },
  open: () => ({ next: () => 'idle' as const }),
});

const count = bolt({
  takes: { word: t.string },
  prepare() {
    const counts = new Map<string, number>();
    return { process: ({ word }) => void counts.set(word, (counts.get(word) ?? 0) + 1) };
  },
});

export default topology('idle', (b) => {
  const words = b.spout('silent', silent);
  b.bolt('count', count).fields(words, ['word']);
});
