/** Runs the vectors of Flink's balanced scheduling through the code of `npm run vectors`. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readCases, type VectorCase, vectorFiles } from '../../tools/vectors/read-cases.js';
import { runCase } from '../../tools/vectors/run-case.js';

const vectors = join(dirname(fileURLToPath(import.meta.url)), '..', 'vectors');
const files = vectorFiles(
  ['flink', 'flink-random', 'flink-profiles', 'flink-by-hand'].map((name) => join(vectors, name)),
);

function casesOf(file: string): readonly VectorCase[] {
  const read = readCases(file);
  if ('problem' in read) throw new Error(read.problem);
  return read.cases;
}

describe('the vectors of Flink', () => {
  it('are all there', () => {
    expect(files.flatMap(casesOf)).toHaveLength(425);
  });

  for (const file of files) {
    it(`agree: ${file.slice(vectors.length + 1)}`, () => {
      for (const test of casesOf(file))
        expect({ [test.name]: runCase(test) }).toEqual({ [test.name]: { kind: 'passed' } });
    });
  }

  it('disagree as soon as a count, a time or a list is another one', () => {
    const judged = [
      'groupSizes',
      'range',
      'matchedCount',
      'matches',
      'declares',
      'allocatedAt',
      'requiredSlots',
    ];
    let checked = 0;
    for (const test of files.flatMap(casesOf)) {
      for (const key of judged) {
        const value = test.expected[key];
        if (value === undefined) continue;
        const wrong = { ...test, expected: { ...test.expected, [key]: another(value) } };
        expect([test.name, key, runCase(wrong).kind]).toEqual([test.name, key, 'failed']);
        checked++;
      }
    }
    expect(checked).toBeGreaterThan(200);
  });
});

/** A value that differs from the given one. */
function another(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (Array.isArray(value)) return [...(value as unknown[]), { t: -1 }];
  return { ...(value as object), another: 1 };
}
