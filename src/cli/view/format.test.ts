import { describe, expect, it } from 'vitest';
import {
  columns,
  columnsWithRemarks,
  compact,
  counted,
  cut,
  duration,
  grouped,
  micros,
  printable,
  rate,
  wrapped,
} from './format.js';

describe('numbers', () => {
  it.each([
    [0, '0'],
    [9999, '9,999'],
    [10_000, '10.0k'],
    [123_456, '123k'],
    [999_999, '1.00M'],
    [4_560_000, '4.56M'],
    [7.2e12, '7.20T'],
  ])('%d is compactly %s', (value, text) => expect(compact(value)).toBe(text));

  it.each([
    [null, '–'],
    [0.34, '0.3µs'],
    [830, '830µs'],
    [1234, '1.23ms'],
    [999_600, '1.00s'],
    [61e6, '61.0s'],
  ])('%s microseconds are %s', (value, text) => expect(micros(value)).toBe(text));

  it.each([
    [250, '250 ms'],
    [12_340, '12.3 s'],
    [59_990, '1 m 00 s'],
    [245_000, '4 m 05 s'],
    [7_380_000, '2 h 03 m'],
  ])('%d ms last %s', (value, text) => expect(duration(value)).toBe(text));

  it('are grouped by thousands, rates keep a digit below ten', () => {
    expect(grouped(1234567)).toBe('1,234,567');
    expect([rate(null), rate(0), rate(3.14), rate(31.4)]).toEqual(['–', '0', '3.1', '31']);
    expect([counted(1, 'row'), counted(2, 'row')]).toEqual(['1 row', '2 rows']);
  });
});

describe('texts', () => {
  it('are cut visibly, and cannot steer the terminal', () => {
    expect(cut('abcdef', 4)).toBe('abc…');
    expect(printable('a\u001b[2Jb\nc')).toBe('a [2Jb c');
  });

  it('break between words', () => {
    expect(wrapped('a bc defgh i', 4)).toEqual(['a bc', 'defgh', 'i']);
    expect(wrapped('as it is', 80)).toEqual(['as it is']);
  });

  it('are aligned in columns; the first gives way to the others', () => {
    const all = [
      { title: 'name', align: 'left', cell: ([name]: [string, number]) => name },
      { title: 'n', align: 'right', cell: ([, n]: [string, number]) => String(n) },
    ] as const;
    expect(
      columns(
        [
          ['a', 1],
          ['a-rather-long-name', 22],
        ],
        all,
        16,
      ),
    ).toEqual(['name           n', 'a              1', 'a-rather…ame  22']);
  });

  it('give columns up for names, in the order that these say, and fill up by the cells of a terminal', () => {
    const all = [
      { title: 'name', align: 'left', cell: ([name]: [string, number]) => name },
      { title: 'kind', align: 'left', givesWay: 2, cell: () => 'bolt' },
      { title: 'n', align: 'right', cell: ([, n]: [string, number]) => String(n) },
      { title: 'tasks', align: 'right', givesWay: 1, cell: () => '1' },
    ] as const;
    const rows: [string, number][] = [
      ['计数', 1],
      ['a-rather-long-name', 22],
    ];
    expect(columns(rows, all, 40)[0]).toBe('name                kind   n  tasks');
    expect(columns(rows, all, 30)[0]).toBe('name                kind   n');
    expect(columns(rows, all, 22)).toEqual([
      'name                 n',
      '计数                 1',
      'a-rather-long-name  22',
    ]);
  });

  it('have remarks beside them, or below where they do not fit', () => {
    const all = [{ title: 'name', align: 'left', cell: ([name]: [string, string]) => name }] as const;
    const remark = { title: 'problem', align: 'left', cell: ([, text]: [string, string]) => text } as const;
    const rows: [string, string][] = [
      ['a', ''],
      ['b', 'was ended by SIGKILL'],
    ];
    expect(columnsWithRemarks(rows, all, remark, 40)).toEqual([
      'name  problem',
      'a',
      'b     was ended by SIGKILL',
    ]);
    expect(columnsWithRemarks(rows, all, remark, 20)).toEqual([
      'name',
      'a',
      'b',
      '    was ended by',
      '    SIGKILL',
    ]);
  });
});
