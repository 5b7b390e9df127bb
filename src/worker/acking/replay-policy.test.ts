import { describe, expect, it } from 'vitest';
import { decideAfterFailure, type FailureReason, type RowHistory } from './replay-policy.js';

const FRESH: RowHistory = { failures: 0, crashes: 0 };
const SETTINGS = { maxFailures: 3 };

type Event = FailureReason | readonly ['lost', string];

/** The actions after each event in turn. */
function replay(events: readonly Event[], settings = SETTINGS) {
  let history = FRESH;
  return events.map((event) => {
    const decision =
      typeof event === 'string'
        ? decideAfterFailure(history, event, settings)
        : decideAfterFailure(history, event[0], settings, event[1]);
    history = decision.history;
    return decision.action;
  });
}

describe('what happens to a failed row', () => {
  it('counts failures of user code and overflows, and dead-letters the row at the limit', () => {
    expect(replay(['user', 'overflow', 'user'])).toEqual(['replay', 'replay', 'dead-letter']);
    expect(replay(['user'], { maxFailures: 1 })).toEqual(['dead-letter']);
  });

  it('blames no row for sessions between workers that were lost, however many', () => {
    let history = FRESH;
    for (let loss = 0; loss < 100; loss++) {
      const decision = decideAfterFailure(history, 'lost', { ...SETTINGS, isCrash: false });
      expect(decision.action).toBe('replay');
      history = decision.history;
    }
    expect(history).toEqual(FRESH);
  });

  it('replays time-outs and moves without counting, however many', () => {
    const events = Array.from({ length: 1000 }, (_, i): FailureReason => (i % 2 === 0 ? 'timeout' : 'moved'));
    expect(new Set(replay(events))).toEqual(new Set(['replay']));
    expect(replay([...events, 'user', 'user']).at(-1)).toBe('replay');
  });

  it('replays a row alone after three crashes, and counts only the crashes with the row alone', () => {
    expect(replay(['lost', 'lost', 'lost', 'lost', 'lost', 'lost'])).toEqual([
      'replay',
      'replay',
      'replay-alone',
      'replay-alone',
      'replay-alone',
      'dead-letter',
    ]);
  });

  it('goes on replaying a suspect alone after other failures', () => {
    expect(replay(['lost', 'lost', 'lost', 'timeout', 'user', 'moved', 'lost', 'user'])).toEqual([
      'replay',
      'replay',
      'replay-alone',
      'replay-alone',
      'replay-alone',
      'replay-alone',
      'replay-alone',
      'dead-letter',
    ]);
  });

  it('adds up crashes of one executor only, where it is known', () => {
    const others: Event[] = Array.from({ length: 50 }, (_, i) => ['lost', `executor ${i % 2}`] as const);
    expect(new Set(replay(others))).toEqual(new Set(['replay']));
    expect(
      replay([
        ['lost', 'a'],
        ['lost', 'b'],
        ['lost', 'b'],
        ['lost', 'b'],
        ['lost', 'c'],
        ['lost', 'c'],
        ['lost', 'c'],
      ]),
    ).toEqual(['replay', 'replay', 'replay', 'replay-alone', 'replay', 'replay', 'replay-alone']);
    expect(replay([['lost', 'a'], 'lost', ['lost', 'a']])).toEqual(['replay', 'replay', 'replay-alone']);
  });

  it('does not change the history that it was given', () => {
    const history = Object.freeze({ failures: 2, crashes: 5 });
    decideAfterFailure(history, 'lost', SETTINGS);
    decideAfterFailure(history, 'user', SETTINGS);
    expect(history).toEqual({ failures: 2, crashes: 5 });
  });
});
