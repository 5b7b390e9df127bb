import { describe, expect, it } from 'vitest';
import type { TapRequest } from '../coordination/index.js';
import { RowTap } from './row-tap.js';

function tap(parts: Partial<TapRequest> = {}): RowTap {
  const request = { component: 'split', taken: false, where: null, limit: 10, windowMs: 1000, ...parts };
  return new RowTap({ request, firstTask: 3, lastTask: 4, nowMs: 0, wallMs: () => 99 });
}

const words = (one: RowTap): unknown[] =>
  one.rows.map(({ row }) => (JSON.parse(row) as { word: unknown }).word);

describe('a tap', () => {
  it('takes rows of its component alone, and of the side that was asked for', () => {
    const emitted = tap();
    emitted.onEmitted(2, 'default', { word: 'other' }, 0);
    emitted.onEmitted(3, 'side', { word: 'mine' }, 0);
    emitted.onTaken(3, 'default', { word: 'taken' }, 0);
    expect(emitted.rows).toEqual([
      { atMs: 99, task: 3, stream: 'side', row: '{"word":"mine"}', isCut: false },
    ]);
    const taken = tap({ taken: true });
    taken.onEmitted(3, 'default', { word: 'mine' }, 0);
    taken.onTaken(4, 'lines', { word: 'taken' }, 0);
    expect(taken.rows).toMatchObject([{ task: 4, stream: 'lines' }]);
    expect([emitted.seen, taken.seen]).toEqual([1, 1]);
  });

  it('takes rows at even distances where many pass, and all where few do', () => {
    const many = tap({ limit: 10 });
    for (let at = 0; at < 1000; at++) for (let i = 0; i < 5; i++) many.onEmitted(3, 's', { word: at }, at);
    expect(words(many)).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    expect(many.seen).toBe(5000);
    const few = tap({ limit: 10 });
    for (const at of [10, 300, 720]) few.onEmitted(3, 's', { word: at }, at);
    expect(words(few)).toEqual([10, 300, 720]);
    const late = tap({ limit: 10 });
    for (let at = 800; at < 1000; at++) late.onEmitted(3, 's', { word: at }, at);
    // A pause is not made up for with a burst.
    expect(words(late)).toEqual([800, 801, 900]);
  });

  it('shows only rows whose field reads so, comparing a bounded number of them in a turn', () => {
    const one = tap({ where: { field: 'word', value: 'b' } });
    for (let at = 0; at < 1000; at++) one.onEmitted(3, 's', { word: at % 7 === 0 ? 'b' : 'a' }, at);
    expect(new Set(words(one))).toEqual(new Set(['b']));
    expect(one.rows).toHaveLength(10);
    const far = tap({ where: { field: 'word', value: 'rare' } });
    for (let i = 0; i < 1000; i++) far.onEmitted(3, 's', { word: i === 900 ? 'rare' : 'a' }, 5);
    expect(far.rows).toEqual([]);
  });

  it.each([
    ['text', 'storm', 'storm'],
    ['a number', -5, '-5'],
    ['a bigint', 12n, '12'],
    ['nothing', null, 'null'],
    ['a truth', true, 'true'],
    ['a list', [1, 'a'], '[1,"a"]'],
  ])('compares %s as a user would write it', (_, word, value) => {
    const one = tap({ where: { field: 'word', value } });
    one.onEmitted(3, 's', { word }, 0);
    expect(one.rows).toHaveLength(1);
  });

  it('shows values that JSON cannot say, and cuts what is long', () => {
    const one = tap({ limit: 100 });
    one.onEmitted(3, 's', { word: Number.NaN, bytes: new Uint8Array([1]) }, 0);
    one.onEmitted(3, 's', { word: 'x'.repeat(5000) }, 10);
    expect(JSON.parse(one.rows[0]!.row)).toEqual({ word: { $number: 'NaN' }, bytes: { $bytes: 'AQ==' } });
    expect([one.rows[1]!.row.length, one.rows[1]!.isCut]).toEqual([4096, true]);
  });
});
