import { bolt, spout, t, topology } from 'isobar';

const TEXT = ['the cow jumped over the moon', 'the dish ran away with the spoon', 'the little dog laughed'];

const lines = spout({
  emits: { line: t.string },
  *read(context, from = context.index) {
    for (let i = from; i < TEXT.length; i += context.count) {
      yield { row: { line: TEXT[i]! }, position: i + context.count };
    }
  },
});

const split = bolt({
  takes: { line: t.string },
  emits: { word: t.string },
  process({ line }, out) {
    for (const word of line.split(' ')) out.emit({ word });
  },
});

const count = bolt({
  takes: { word: t.string },
  emits: { word: t.string, count: t.int64 },
  prepare() {
    const counts = new Map<string, number>();
    return {
      process({ word }) {
        counts.set(word, (counts.get(word) ?? 0) + 1);
      },
      end(out) {
        for (const [word, count] of counts) out.emit({ word, count });
      },
    };
  },
});

const top = bolt({
  takes: { word: t.string, count: t.int64 },
  prepare() {
    const counts = new Map<string, number>();
    return {
      process({ word, count }) {
        counts.set(word, count);
      },
      end() {
        for (const [word, count] of [...counts].sort().sort((a, b) => b[1] - a[1])) {
          console.log(`${count} ${word}`);
        }
      },
    };
  },
});

export default topology('words', (b) => {
  const source = b.spout('lines', lines, { parallelism: 2 });
  const words = b.bolt('split', split, { parallelism: 2 }).shuffle(source);
  const counts = b.bolt('count', count, { parallelism: 2, tasks: 4 }).fields(words, ['word']);
  b.bolt('top', top).global(counts);
});
