import { describe, expect, it } from 'vitest';
import { plainColors } from '../colors.js';
import { LineBatch } from './line-batch.js';
import { PlainDisplay } from './plain-display.js';

describe('LineBatch', () => {
  it('writes what was given in one turn at once, in order, and nothing twice', async () => {
    const written: string[] = [];
    const batch = new LineBatch({ write: (text) => written.push(text) });
    for (const line of ['a', 'b', 'c']) batch.add(line);
    expect(written).toEqual([]);
    await Promise.resolve();
    expect(written).toEqual(['a\nb\nc\n']);
    batch.add('d');
    batch.flush();
    await Promise.resolve();
    expect(written).toEqual(['a\nb\nc\n', 'd\n']);
  });

  it('does not let many lines of one turn grow into one huge write', () => {
    const written: string[] = [];
    const batch = new LineBatch({ write: (text) => written.push(text) });
    for (let i = 0; i < 300; i++) batch.add('x'.repeat(1000));
    expect(Math.max(...written.map(({ length }) => length))).toBeLessThan(70_000);
    batch.flush();
    expect(written.join('')).toHaveLength(300 * 1001);
  });
});

describe('PlainDisplay', () => {
  it('shows what was printed before a problem before it', () => {
    const written: string[] = [];
    const stream = { write: (text: string) => written.push(text) };
    const display = new PlainDisplay({
      out: stream,
      err: stream,
      colors: plainColors,
      place: { prefixes: [] },
      quiet: true,
      nowMs: () => 0,
    });
    display.output('6700', 'printed');
    const error = { code: 'USER_CODE_FAILED', message: 'boom', details: {} } as const;
    display.problem({ component: 'split', task: 3, error, count: 1 });
    display.output('6700', 'last');
    display.close();
    expect(written.map((text) => text.split('\n')[0])).toEqual([
      'printed',
      'split task 3 USER_CODE_FAILED: boom',
      'last',
    ]);
  });
});
