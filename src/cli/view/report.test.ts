import { describe, expect, it } from 'vitest';
import type { TopologyStatus, TopologyTotals } from '../../api/index.js';
import type { ErrorCode } from '../../base/index.js';
import { summaryLine } from '../json-lines.js';
import { component, topology } from '../testing/statuses.js';
import { accountsOf, drainSentence, exitCodeOf, outcomeOf, renderReport, type RunEnd } from './report.js';

const TOTALS: TopologyTotals = {
  emitted: 0,
  acked: 0,
  failed: 0,
  replayed: 0,
  pending: 0,
  executed: 0,
  deadLetters: 0,
};

function endOf(
  totals: Partial<TopologyTotals>,
  parts: Partial<TopologyStatus> = {},
  end: Partial<RunEnd> = {},
): RunEnd {
  const status = topology({
    phase: { kind: 'finished', drained: false },
    isSettled: true,
    totals: { ...TOTALS, ...totals },
    components: [component('lines', 'spout', { ...totals })],
    ...parts,
  });
  return {
    status,
    aliveTotals: null,
    isOutputLost: false,
    durationMs: 2000,
    totalMs: 3500,
    drain: null,
    isForced: false,
    ...end,
  };
}

const claims = (end: RunEnd): string => renderReport(end, 120).join('\n');

describe('what a run comes to', () => {
  it('says that every row was acked when the counts say so, replays counted once', () => {
    const end = endOf({ emitted: 1010, acked: 1000, failed: 10, replayed: 10 });
    expect(accountsOf(end)).toMatchObject({ rows: 1000, isEveryRowAcked: true });
    expect(claims(end)).toContain('Every one of 1,000 rows was acked.');
    expect(claims(end)).toContain(
      'words ran to the end of its input: 1,000 rows, 500 rows/s; ran 2.0 s (3.5 s with checking and starting).',
    );
    expect(exitCodeOf(end)).toBe(0);
  });

  it('claims nothing of the sort when a row became a dead letter, and fails', () => {
    const end = endOf(
      { emitted: 1002, acked: 999, failed: 3, replayed: 2, deadLetters: 1 },
      { deadLetterFiles: ['/state/dead-letters/a.jsonl'] },
    );
    expect(claims(end)).toContain('Of 1,000 rows: 999 acked, 1 dead letter.');
    expect(claims(end)).toContain('  /state/dead-letters/a.jsonl');
    expect(exitCodeOf(end)).toBe(1);
  });

  it('tells rows that were given up from rows that were read again after a loss', () => {
    const end = endOf({ emitted: 100, acked: 90, failed: 4 });
    expect(accountsOf(end)).toMatchObject({
      rows: 100,
      givenUp: 4,
      readAgain: 6,
      left: 0,
      isEveryRowAcked: false,
    });
    expect(claims(end)).toContain('4 failed and not replayed');
    expect(claims(end)).toContain('6 under way when their spout was lost');
    expect(exitCodeOf(end)).toBe(1);
    expect(exitCodeOf(endOf({ emitted: 100, acked: 94 }))).toBe(0);
  });

  it('says how many rows nothing would have replayed, which makes no run a failure', () => {
    const components = [component('lines', 'spout', { emitted: 5, acked: 5, unreplayable: 5 })];
    const end = endOf({ emitted: 5, acked: 5 }, { components });
    expect(claims(end)).toContain('Nothing would have replayed 5 rows of lines, which had no position.');
    expect(exitCodeOf(end)).toBe(0);
    expect(claims(endOf({ emitted: 5 }, { components, ackers: 0 }))).not.toContain('Nothing would');
  });

  it('claims nothing when acking is off', () => {
    const end = endOf({ emitted: 100 }, { ackers: 0 });
    expect(accountsOf(end).isEveryRowAcked).toBeNull();
    expect(claims(end)).toContain('100 rows emitted; acking is off');
  });

  it('says what a drain did', () => {
    const drain = { atMs: 100_000, pending: 40, acked: 60, failed: 0, deadLetters: 0 };
    const drained = endOf(
      { emitted: 100, acked: 100 },
      { phase: { kind: 'finished', drained: true } },
      { drain },
    );
    expect(drainSentence(drained)).toBe(
      'Drained: 40 rows completed since the last report before the signal, 0 failed, 0 left (40 were pending in it).',
    );
    expect([outcomeOf(drained), exitCodeOf(drained)]).toEqual(['drained', 0]);
    const late = endOf({ emitted: 100, acked: 70 }, { phase: { kind: 'stopped' } }, { drain });
    expect(drainSentence(late)).toContain(
      '10 rows completed since the last report before the signal, 0 failed, 30 left',
    );
    expect([outcomeOf(late), exitCodeOf(late)]).toEqual(['drain-timeout', 1]);
    expect(claims(late)).toContain('Of 100 rows: 70 acked, 30 not acked.');
  });

  it('tells rows that the end cut off from those that were gone before, though nobody says any more what was pending', () => {
    // Of 1,000 rows 4 were given up and 6 read again; 40 were pending, and 10 of them were completed in the last moment.
    const totals = { emitted: 1010, acked: 950, failed: 14, replayed: 10 };
    const end = endOf(
      { ...totals, acked: 960 },
      { phase: { kind: 'stopped' } },
      { aliveTotals: { ...TOTALS, ...totals, pending: 40 } },
    );
    expect(accountsOf(end)).toMatchObject({ rows: 1000, acked: 960, givenUp: 4, readAgain: 6, left: 30 });
  });

  it('counts rows whose dead letter could not be written as left', () => {
    const totals = { emitted: 100, acked: 50, failed: 50, deadLetters: 10 };
    const end = endOf(
      totals,
      { phase: { kind: 'stopped' } },
      { aliveTotals: { ...TOTALS, ...totals, pending: 40 } },
    );
    expect(claims(end)).toContain('Of 100 rows: 50 acked, 10 dead letters, 40 not acked.');
  });

  it('fails a run that lost what was printed', () => {
    const end = endOf({ emitted: 5, acked: 5 }, {}, { isOutputLost: true });
    expect(claims(end)).toContain('Some of what the topology printed was lost: see OUTPUT_LOST.');
    expect(exitCodeOf(end)).toBe(1);
    expect(summaryLine(end, 0)).toMatchObject({ printedLinesLost: true, exitCode: 1 });
  });

  it('names force, failure and lost state', () => {
    const forced = endOf({}, { phase: { kind: 'stopped' } }, { isForced: true });
    expect([outcomeOf(forced), exitCodeOf(forced)]).toEqual(['forced', 130]);
    const error = { code: 'GRAPH_MISMATCH', message: 'differs', details: {} } as const;
    const failed = endOf({}, { phase: { kind: 'failed', error } });
    expect([outcomeOf(failed), exitCodeOf(failed)]).toEqual(['failed', 1]);
    const lost = endOf({}, { lostStates: [{ component: 'count', task: 5, atMs: 0 }] });
    expect(claims(lost)).toContain('State of count task 5 was lost in a crash at 1970-01-01T00:00:00.000Z.');
    const often = [0, 1000, 3000].map((atMs) => ({ component: 'count', task: 5, atMs }));
    expect(claims(endOf({}, { lostStates: often }))).toContain(
      'State of count task 5 was lost in 3 crashes, the last at 1970-01-01T00:00:03.000Z.',
    );
  });

  const failure = (
    code: ErrorCode,
    message: string,
    component: string,
    lastMs: number,
    count = 1,
    call = 'read',
  ): TopologyStatus['errors'][number] => ({
    component,
    task: 1,
    error: {
      code,
      message,
      details: { where: `component "${component}", task 1, ${call}` },
      stack: `Error: ${message}\n    at one (/app.ts:1:1)`,
    },
    count,
    firstMs: 0,
    lastMs,
  });

  it('lists errors although every row was acked, one line a kind', () => {
    const errors = ['row 1', 'row 2', 'row 3'].map((text, i) =>
      failure('USER_CODE_FAILED', text, 'split', i, 2),
    );
    const end = endOf({ emitted: 200, acked: 200 }, { errors });
    expect(claims(end)).toContain('Every one of 200 rows was acked.');
    expect(claims(end)).toContain('Errors:\n  6 × split: USER_CODE_FAILED: row 3\n');
    expect(summaryLine(end, 5)).toMatchObject({
      errors: [{ component: 'split', count: 6, message: 'row 3' }],
    });
    expect(exitCodeOf(end)).toBe(0);
  });

  it.each(['EMIT_OUTSIDE_PROCESS', 'ANCHOR_MISUSED'] as const)(
    'fails after %s, and says that output may be missing',
    (code) => {
      const end = endOf({ emitted: 200, acked: 200 }, { errors: [failure(code, 'late', 'split', 5)] });
      expect(exitCodeOf(end)).toBe(1);
      expect(claims(end)).toContain('Output of split may be missing');
      expect(summaryLine(end, 5)).toMatchObject({ exitCode: 1, outputMayBeMissing: ['split'] });
    },
  );

  it('fails when a spout was throwing until the drain, and not when it has recovered', () => {
    const drainedWith = (error: TopologyStatus['errors'][number]): RunEnd =>
      endOf(
        { emitted: 8, acked: 8 },
        { phase: { kind: 'finished', drained: true }, errors: [error] },
        { drain: { atMs: 100_000, pending: 0, acked: 8, failed: 0, deadLetters: 0 } },
      );
    const still = drainedWith(failure('USER_CODE_FAILED', 'bad row', 'lines', 95_000, 12));
    expect(exitCodeOf(still)).toBe(1);
    expect(claims(still)).toContain(
      'lines was still throwing at the end: rows behind that place were not read.',
    );
    expect(summaryLine(still, 5)).toMatchObject({ spoutsStillThrowing: ['lines'] });
    const recovered = [
      failure('USER_CODE_FAILED', 'bad row', 'lines', 80_000, 12),
      failure('USER_CODE_FAILED', 'bad row', 'lines', 95_000, 1),
      failure('USER_CODE_FAILED', 'bad row', 'lines', 95_000, 12, 'ack'),
    ];
    for (const error of recovered) expect(exitCodeOf(drainedWith(error))).toBe(0);
  });

  it('tells no rate of a short run, and no claim about no rows', () => {
    expect(claims(endOf({ emitted: 10, acked: 10 }))).toContain('its input: 10 rows; ran 2.0 s');
    expect(claims(endOf({}))).toContain('No row was read.');
  });

  it('breaks sentences between words', () => {
    const end = endOf({ emitted: 1000, acked: 900, failed: 100 });
    const sentence = 'Of 1,000 rows: 900 acked, 100 failed and not replayed, for want of a position.';
    const lines = renderReport(end, 40);
    expect(lines.join(' ')).toContain(sentence);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  });

  it('is the same in the JSON summary', () => {
    expect(summaryLine(endOf({ emitted: 200, acked: 200 }), 5)).toMatchObject({
      type: 'summary',
      outcome: 'finished',
      exitCode: 0,
      everyRowAcked: true,
      deadLetters: 0,
      durationMs: 2000,
      totalMs: 3500,
      rowsPerSecond: 100,
      totals: { acked: 200 },
    });
    expect(summaryLine(endOf({ emitted: 10, acked: 10 }), 5)).toMatchObject({ rowsPerSecond: null });
  });
});
