/** Runs the vectors of Storm's scheduling through the code of `npm run vectors`, and tests that code on wrong answers. */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { agrees } from '../../tools/vectors/compare.js';
import { parseCases, readCases, type VectorCase, vectorFiles } from '../../tools/vectors/read-cases.js';
import { runCase } from '../../tools/vectors/run-case.js';

const folder = dirname(fileURLToPath(import.meta.url));
const vectors = join(folder, '..', 'vectors');
/** Recorded answers of Storm, and cases written by hand from the reference of its rules. */
const files = vectorFiles(['storm', 'storm-random', 'storm-derived'].map((name) => join(vectors, name)));

function casesOf(file: string): readonly VectorCase[] {
  const read = readCases(file);
  if ('problem' in read) throw new Error(read.problem);
  return read.cases;
}

describe('the vectors of Storm', () => {
  it('are all there', () => {
    expect(files.flatMap(casesOf)).toHaveLength(642);
  });

  for (const file of files) {
    it(`agree: ${file.slice(vectors.length + 1)}`, () => {
      for (const test of casesOf(file))
        expect({ [test.name]: runCase(test) }).toEqual({ [test.name]: { kind: 'passed' } });
    });
  }

  it('disagree as soon as any expected value is another one', () => {
    const toleratedKeys = new Set([
      'orderDependent',
      'keptWorkers',
      'stormError',
      'error',
      'maxTotalWorkers',
      'reservedHosts',
      'properties',
    ]);
    for (const test of files.flatMap(casesOf)) {
      if (test.expected['stormError'] !== undefined) continue;
      for (const [key, value] of Object.entries(test.expected)) {
        if (toleratedKeys.has(key)) continue;
        const wrong = { ...test, expected: { ...test.expected, [key]: another(value) } };
        expect([test.name, key, runCase(wrong).kind]).toEqual([test.name, key, 'failed']);
      }
    }
  });
});

/** A value that differs from the given one. */
function another(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return `${value}!`;
  if (Array.isArray(value)) return value.length === 0 ? [['more', 1]] : value.slice(1);
  const [first] = Object.entries(value as Record<string, unknown>);
  return first === undefined ? { more: [1] } : { ...(value as object), [first[0]]: another(first[1]) };
}

describe('the runner', () => {
  const base: VectorCase = { file: 'x.json', name: 'case', input: {}, expected: {} };

  it('counts an unknown operation, scheduler or fact as not supported', () => {
    expect(runCase(base).kind).toBe('not supported');
    expect(runCase({ ...base, input: { op: 'levitate' } }).kind).toBe('not supported');
    expect(runCase({ ...base, scheduler: 'levitating', input: { op: 'schedule' } }).kind).toBe(
      'not supported',
    );
    const input = { op: 'integerDivided', sum: 1, pieces: 1 };
    expect(runCase({ ...base, input, expected: { newFact: 1 } }).kind).toBe('not supported');
  });

  it('says what is malformed in the input of a known operation', () => {
    const verdict = runCase({ ...base, input: { op: 'integerDivided', sum: 'many' } });
    expect(verdict).toMatchObject({ kind: 'failed', disagreements: [{ what: 'malformed input' }] });
  });

  it('fails a case whose error did not come', () => {
    const input = { op: 'normalise', components: [{ id: 'spout', type: 'spout' }] };
    const expected = { error: 'InvalidTopology', reason: 'component-id' };
    expect(runCase({ ...base, input, expected }).kind).toBe('failed');
  });

  it('names the file and the place of what cannot be read', () => {
    expect(parseCases('a.json', '{')).toMatchObject({
      problem: expect.stringContaining('a.json: not JSON') as string,
    });
    expect(parseCases('a.json', '{}')).toMatchObject({
      problem: expect.stringContaining('list of cases') as string,
    });
    expect(parseCases('a.json', '[{"name":1}]')).toMatchObject({
      problem: expect.stringContaining('case 1 is malformed') as string,
    });
    expect(() => vectorFiles([join(folder, 'nowhere')])).toThrow('there is no such file or folder');
  });

  it('compares sets in any order, and orders in order', () => {
    expect(agrees([1, 2], [2, 1], 'sets')).toBe(true);
    expect(agrees([1, 2], [2, 1], 'exact')).toBe(false);
    expect(agrees([[1, 2]], [[2, 1]], 'sets')).toBe(false);
    expect(agrees({ a: [] }, {}, 'sets-without-empty')).toBe(true);
    expect(agrees({ a: 1 }, { a: 1, b: 2 }, 'at-least')).toBe(true);
    expect(agrees({ a: 1, b: 2 }, { a: 1 }, 'at-least')).toBe(false);
  });
});
