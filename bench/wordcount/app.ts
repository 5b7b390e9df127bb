/**
 * The word count as a user writes it. The harness sets what differs between cases by the environment (parallelism and
 * rate) and by `--set` (workers, threads, ackers); everything else is the same in each.
 */
import { bolt, spout, t, topology } from 'isobar';
import { generateSentences } from '../sentences.js';

const parallelism = Number(process.env['ISOBAR_BENCH_PARALLELISM'] ?? 1);
/** Sentences per second in all; 0: as fast as it goes. */
const rate = Number(process.env['ISOBAR_BENCH_RATE'] ?? 0);
/** With acking off nobody waits for a position. */
const replayable = process.env['ISOBAR_BENCH_ACKING'] !== 'off';
const ROWS_PER_YIELD = 64;

const endless = spout({
  emits: { sentence: t.string },
  *read(_context, from?: number) {
    const sentences = generateSentences();
    let position = from ?? 0;
    for (;;) {
      const rows: { row: { sentence: string }; position?: number }[] = [];
      for (let i = 0; i < ROWS_PER_YIELD; i++) {
        const row = { sentence: sentences[position++ % sentences.length]! };
        rows.push(replayable ? { row, position } : { row });
      }
      yield rows;
    }
  },
});

const paced = spout({
  emits: { sentence: t.string },
  open(context, from?: number) {
    const sentences = generateSentences();
    const perMs = rate / context.count / 1000;
    const startMs = performance.now();
    const first = from ?? 0;
    let position = first;
    return {
      next(out) {
        if (position - first >= (performance.now() - startMs) * perMs) return 'idle';
        out.emit({ sentence: sentences[position++ % sentences.length]! }, { position });
        return undefined;
      },
    };
  },
});

const split = bolt({
  takes: { sentence: t.string },
  emits: { word: t.string },
  process({ sentence }, out) {
    for (const word of sentence.split(' ')) out.emit({ word });
  },
});

const count = bolt({
  takes: { word: t.string },
  prepare() {
    const counts = new Map<string, { times: number }>();
    return {
      process({ word }) {
        const entry = counts.get(word);
        if (entry === undefined) counts.set(word, { times: 1 });
        else entry.times++;
      },
    };
  },
});

export default topology('word-count', (b) => {
  const sentences = b.spout('sentences', rate === 0 ? endless : paced, { parallelism });
  const words = b.bolt('split', split, { parallelism }).shuffle(sentences);
  b.bolt('count', count, { parallelism }).fields(words, ['word']);
});
