import { describe, expect, it } from 'vitest';
import type { TopologyStatus, TopologyTotals } from '../../api/index.js';
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
  return { status, durationMs: 2000, drain: null, isForced: false, ...end };
}

const claims = (end: RunEnd): string => renderReport(end, 120).join('\n');

describe('what a run comes to', () => {
  it('says that every row was acked when the counts say so, replays counted once', () => {
    const end = endOf({ emitted: 1010, acked: 1000, failed: 10, replayed: 10 });
    expect(accountsOf(end)).toMatchObject({ rows: 1000, isEveryRowAcked: true });
    expect(claims(end)).toContain('Every one of 1,000 rows was acked.');
    expect(claims(end)).toContain('words ran to the end of its input after 2.0 s: 1,000 rows, 500 rows/s.');
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

  it('claims nothing when acking is off', () => {
    const end = endOf({ emitted: 100 }, { ackers: 0 });
    expect(accountsOf(end).isEveryRowAcked).toBeNull();
    expect(claims(end)).toContain('100 rows emitted; acking is off');
  });

  it('says what a drain did', () => {
    const drain = { pending: 40, acked: 60, failed: 0, deadLetters: 0 };
    const drained = endOf(
      { emitted: 100, acked: 100 },
      { phase: { kind: 'finished', drained: true } },
      { drain },
    );
    expect(drainSentence(drained)).toBe(
      'Drained: 40 rows completed after the signal, 0 failed, 0 left (40 were pending in the last report before it).',
    );
    expect([outcomeOf(drained), exitCodeOf(drained)]).toEqual(['drained', 0]);
    const late = endOf({ emitted: 100, acked: 70, pending: 30 }, { phase: { kind: 'killed' } }, { drain });
    expect(drainSentence(late)).toContain('10 rows completed after the signal, 0 failed, 30 left');
    expect([outcomeOf(late), exitCodeOf(late)]).toEqual(['drain-timeout', 1]);
    expect(claims(late)).toContain('Of 100 rows: 70 acked, 30 not acked.');
  });

  it('names force, failure and lost state', () => {
    const forced = endOf({}, { phase: { kind: 'killed' } }, { isForced: true });
    expect([outcomeOf(forced), exitCodeOf(forced)]).toEqual(['forced', 130]);
    const error = { code: 'GRAPH_MISMATCH', message: 'differs', details: {} } as const;
    const failed = endOf({}, { phase: { kind: 'failed', error } });
    expect([outcomeOf(failed), exitCodeOf(failed)]).toEqual(['failed', 1]);
    const lost = endOf({}, { lostStates: [{ component: 'count', task: 5, atMs: 0 }] });
    expect(claims(lost)).toContain('State of count task 5 was lost in a crash at 1970-01-01T00:00:00.000Z.');
  });

  it('is the same in the JSON summary', () => {
    expect(summaryLine(endOf({ emitted: 10, acked: 10 }), 5)).toMatchObject({
      type: 'summary',
      outcome: 'finished',
      exitCode: 0,
      everyRowAcked: true,
      deadLetters: 0,
      rowsPerSecond: 5,
      totals: { acked: 10 },
    });
  });
});
