import { bolt, spout, t, topology } from 'isobar';

const TEXT = ['the cow jumped over the moon', 'the dish ran away with the spoon'];

const lines = spout({
  emits: { line: t.string },
  *read(_context, from = 0) {
    for (let i = from; i < TEXT.length; i++) yield { row: { line: TEXT[i]! }, position: i + 1 };
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
  prepare() {
    const counts = new Map<string, number>();
    return {
      process: ({ word }) => counts.set(word, (counts.get(word) ?? 0) + 1),
      end: () => console.log([...counts].join(' ')),
    };
  },
});
export default topology('words', (b) => {
  const source = b.spout('lines', lines);
  const words = b.bolt('split', split, { parallelism: 2 }).shuffle(source);
  b.bolt('count', count, { parallelism: 2 }).fields(words, ['word']);
});
