/**
 * A topology with nothing to do. ISOBAR_BENCH_SOURCE chooses how its spout has nothing: `waiting` in a promise, or
 * `polled` and answering that it is idle; `both`: a spout of each kind.
 */
import { once } from 'node:events';
import { bolt, spout, t, topology } from 'isobar';

const waiting = spout({
  emits: { word: t.string },
  async *read(context): AsyncGenerator<{ row: { word: string } }> {
    await once(context.signal, 'abort');
    // Never reached while the topology runs; the source ends with it.
    yield* [];
  },
});

const polled = spout({
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

const SOURCES = { waiting, polled };
const wanted = process.env['ISOBAR_BENCH_SOURCE'] ?? 'waiting';

export default topology('idle', (b) => {
  const join = b.bolt('count', count, { parallelism: wanted === 'both' ? 2 : 1 });
  for (const [name, source] of Object.entries(SOURCES)) {
    if (wanted === name || wanted === 'both') join.fields(b.spout(name, source), ['word']);
  }
});
