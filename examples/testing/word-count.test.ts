/** How a topology and a bolt of it are tested: the code of docs/testing.md. */
import { expect, it } from 'vitest';
import { bolt, t, topology } from 'isobar';
import { controlledSource, driveBolt, runTopology } from 'isobar/testing';

const split = bolt({
  takes: { line: t.string },
  emits: { word: t.string },
  process({ line }, out) {
    for (const word of line.split(' ')) out.emit({ word });
  },
});
const count = bolt({
  takes: { word: t.string },
  emits: { word: t.string, count: t.int32 },
  prepare() {
    const counts = new Map<string, number>();
    return {
      process: ({ word }) => void counts.set(word, (counts.get(word) ?? 0) + 1),
      end: (out) => counts.forEach((total, word) => out.emit({ word, count: total })),
    };
  },
});

it('counts words', async () => {
  const lines = controlledSource({ line: t.string });
  lines.push({ line: 'to be or' }, { line: 'not to be' }).end();
  const run = await runTopology(
    topology('words', (b) => {
      const words = b.bolt('split', split, { parallelism: 2 }).shuffle(b.spout('lines', lines.definition));
      b.bolt('count', count, { parallelism: 2 }).fields(words, ['word']);
    }),
  );
  expect(run.rows('count')).toHaveLength(4);
  expect(run.rows('count')).toContainEqual({ word: 'be', count: 2 });
  expect(lines.acked).toHaveLength(2);
});

it('splits a line', async () => {
  const driver = driveBolt(split);
  const { outcome, emitted } = await driver.process({ line: 'to be' });
  expect(outcome).toBe('acked');
  expect(emitted.map(({ row }) => row['word'])).toEqual(['to', 'be']);
  await driver.close();
});
