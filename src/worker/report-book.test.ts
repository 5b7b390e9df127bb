import { describe, expect, it } from 'vitest';
import { ReportBook } from './report-book.js';

const error = (message: string) => ({
  component: 'c',
  task: 1,
  error: { code: 'USER_CODE_FAILED' as const, message, details: {} },
});

describe('ReportBook', () => {
  it('counts equal errors with first and last time', () => {
    const book = new ReportBook();
    book.addError(error('a'), 1);
    book.addError(error('b'), 2);
    book.addError(error('a'), 3);
    expect(
      book.errors.map(({ error: { message }, count, firstMs, lastMs }) => [message, count, firstMs, lastMs]),
    ).toEqual([
      ['b', 1, 2, 2],
      ['a', 2, 1, 3],
    ]);
  });

  it('counts records that could not be written, and says nothing anew while there are no more', () => {
    const book = new ReportBook();
    const log = (unwritten: number) => ({ unwritten, lastFailure: 'ENOSPC', path: '/w/worker.log' });
    book.setUnwrittenRecords(log(0), 1);
    expect(book.errors).toEqual([]);
    book.setUnwrittenRecords(log(3), 2);
    book.setUnwrittenRecords(log(5), 3);
    book.setUnwrittenRecords(log(5), 4);
    expect(book.errors).toMatchObject([
      {
        component: '',
        count: 5,
        firstMs: 2,
        lastMs: 3,
        error: { code: 'OUTPUT_LOST', details: { found: 'ENOSPC' } },
      },
    ]);
  });

  it('stays bounded when every error is another one', () => {
    const book = new ReportBook();
    for (let i = 0; i < 1000; i++) book.addError(error(String(i)), i);
    expect(book.errors.length).toBeLessThanOrEqual(8);
    expect(book.errors.at(-1)!.error.message).toBe('999');
  });

  it('keeps the errors of a component that fails once beside those of one that fails in many ways', () => {
    const book = new ReportBook();
    book.addError({ ...error('rare'), component: 'quiet' }, 0);
    for (let i = 0; i < 1000; i++) book.addError(error(String(i)), i);
    expect(book.errors.find(({ component }) => component === 'quiet')?.error.message).toBe('rare');
  });

  it('sums user counters over threads and takes the oldest pending row of all', () => {
    const book = new ReportBook();
    const oldest = (ageMs: number) => ({ component: 's', task: 1, ageMs, row: 'r', heldBy: null });
    book.setThreadReport(0, [['c', 'hits', 2]], oldest(5), []);
    book.setThreadReport(
      1,
      [
        ['c', 'hits', 3],
        ['d', 'hits', 1],
      ],
      oldest(9),
      [{ component: 'c', task: 2, call: 'prepare', forMs: 6000, isBlocking: false }],
    );
    expect(book.userCounters('c')).toEqual({ hits: 5 });
    expect(book.oldestPending?.ageMs).toBe(9);
    expect(book.longCalls(0)).toEqual([]);
    expect(book.longCalls(1)).toHaveLength(1);
    book.forgetThread(1);
    expect(book.oldestPending?.ageMs).toBe(5);
    expect(book.longCalls(1)).toEqual([]);
  });
});
