import { describe, expect, it } from 'vitest';
import { cut, cutName, padded, textWidth } from './text-width.js';

describe('the width of a text', () => {
  it.each([
    ['', 0],
    ['words', 5],
    ['p99 → 1.2µs –', 13],
    ['订单-流水', 9],
    ['カタカナ', 8],
    ['ｶﾀｶﾅ', 4],
    ['한국어', 6],
    ['e\u0301te\u0301', 3],
    ['한글', 4],
    ['🚀 go', 5],
    ['👩‍👩‍👧', 2],
    ['ключ', 4],
  ])('of %j is %d cells', (text, cells) => expect(textWidth(text)).toBe(cells));

  it('is what cutting keeps to, without a half character', () => {
    expect(cut('订单流水', 8)).toBe('订单流水');
    expect(cut('订单流水', 7)).toBe('订单流…');
    expect(cut('订单流水', 6)).toBe('订单…');
    expect([cut('words', 1), cut('words', 0)]).toEqual(['…', '']);
  });

  it('is what columns are filled up to', () => {
    expect([padded('计数', 6, 'left'), padded('计数', 6, 'right'), padded('split', 2, 'left')]).toEqual([
      '计数  ',
      '  计数',
      'split',
    ]);
  });
});

describe('a name that is too long', () => {
  it('keeps its beginning and its end, so that two of them can be told apart', () => {
    const names = ['enrich-customer-orders', 'enrich-customer-refunds'].map((name) => cutName(name, 16));
    expect(names).toEqual(['enrich-cus…rders', 'enrich-cus…funds']);
    expect(names.map(textWidth)).toEqual([16, 16]);
    expect(textWidth(cutName('订单流水订单流水-2026', 12))).toBeLessThanOrEqual(12);
  });

  it('is cut at its end where there is room for a few characters only', () => {
    expect(cutName('enrich-orders', 6)).toBe('enric…');
  });
});
