import { describe, expect, it } from 'vitest';
import type { ComponentLoad, Diagnosis, TopologyDetail } from '../../api/index.js';
import { topology } from '../testing/statuses.js';
import { whyJson, whyLines } from './why-lines.js';

// What is not shown is left out.
const detail = {
  summary: { id: 'words-1-99', name: 'words', status: 'ACTIVE', submittedMs: 0, uptimeMs: 60_000 },
  desired: null,
  status: topology(),
  events: [],
} as unknown as TopologyDetail;

const load = (component: string, parts: Partial<ComponentLoad> = {}): ComponentLoad => ({
  ...{ component, kind: 'bolt', executors: 2, capacity: 0.1, heldUp: 0, queued: 0, queuedPerSecond: 0 },
  ...{ waitMs: 0, rowsPerSecond: 12, p99Micros: 1500, lag: null, lagPerSecond: null, ...parts },
});

const diagnosis = (parts: Partial<Diagnosis> = {}): Diagnosis => ({
  windowMs: 3000,
  verdict: { kind: 'busy', component: 'count', threadsFull: false },
  components: [
    load('lines', { kind: 'spout', heldUp: 0.8, lag: 5000, lagPerSecond: 20 }),
    load('count', { capacity: 0.97, queued: 3000, queuedPerSecond: -5, waitMs: 2500 }),
  ],
  threads: [{ worker: 's1:6700', thread: 1, active: 0.99, restarts: 0, tasks: ['count[3]'] }],
  skews: [],
  stuckCalls: [],
  oldestPending: null,
  move: null,
  replay: { waiting: 0, lost: 0 },
  errors: [],
  lostStates: [],
  ...parts,
});

const text = (parts?: Partial<Diagnosis>, width = 200): string =>
  whyLines(detail, diagnosis(parts), width).join('\n');

describe('why, on a screen', () => {
  it('begins with the bottleneck and what to do about it, then shows all components', () => {
    const lines = text().split('\n');
    expect(lines[0]).toBe('words (ACTIVE): count is the bottleneck: its executors are busy 97 % of the time');
    expect(lines[1]).toBe(
      '  → isobar rebalance words -e count=4 if it has tasks for it, or make count cheaper',
    );
    expect(lines[3]).toMatch(
      /^COMPONENT +BUSY +HELD UP +QUEUED +GROWTH\/S +WAIT +ROWS\/S +P99 +LAG +LAG\/S$/,
    );
    expect(lines[4]).toMatch(/^lines +10 % +80 % +0 +0 +– +12 +1.50ms +5,000 +\+20$/);
    expect(lines[5]).toMatch(/^count +97 % +0 % +3,000 +-5.0 +2.5 s +12 +1.50ms +– +–$/);
    expect(text()).toContain('thread       s1:6700/1 is active 99 %: count[3]');
  });

  it('breaks what is longer than a line, and cuts nothing of the sentence at the top', () => {
    const lines = text({ windowMs: 3000, verdict: { kind: 'sources', lagPerSecond: 5 } }, 60).split('\n');
    expect(lines.slice(0, 2)).toEqual([
      'words (ACTIVE): nothing is held up; it does what its sources',
      '    give (seen for 3.0 s)',
    ]);
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
  });

  it('advises against more executors where one key has most rows', () => {
    const skews: Diagnosis['skews'] = [
      { kind: 'hot-key', component: 'count', task: 3, worker: 's1:6700', share: 0.7, tasks: 4 },
    ];
    expect(text({ skews })).toContain('hot key: count[3] on s1:6700 got 70 % of the rows, one of 4 tasks');
    expect(text({ skews })).toContain('more executors do not help');
  });

  it('says how many rows wait for their replay, and that none is lost', () => {
    expect(text({ replay: { waiting: 0, lost: 0 } })).not.toContain('replay ');
    expect(text({ replay: { waiting: 1200, lost: 0 } })).toContain(
      'replay       waiting for replay 1,200, lost 0',
    );
    expect(text({ replay: { waiting: 0, lost: 3 } })).toContain('lost 3 at most (rows without position)');
  });

  it('names the task that gets most rows, and how to see its keys', () => {
    const [verdict, advice] = text({
      verdict: {
        ...{ kind: 'hot-task', component: 'count', task: 3, worker: 's1:6700' },
        ...{ share: 0.94, tasks: 4, active: 0.79 },
      },
    }).split('\n');
    expect(verdict).toBe(
      'words (ACTIVE): count is the bottleneck: one of its 4 tasks, count[3] on s1:6700, gets 94 % of its rows, and its thread is active 79 %',
    );
    expect(advice).toContain('isobar tap words count --taken');
  });

  it('names who holds the oldest row, what failed last, and what state was lost', () => {
    const shown = text({
      verdict: { kind: 'sources', lagPerSecond: 3 },
      oldestPending: {
        component: 'lines',
        task: 1,
        row: 'position 7',
        ageMs: 12_000,
        heldBy: 'count (queued)',
      },
      errors: [
        {
          ...{ component: 'count', task: 3, count: 1234, firstMs: 0, lastMs: 57_000 },
          error: { code: 'USER_CODE_FAILED', message: 'no\u001b[2J', details: {} },
        },
      ],
      lostStates: [{ component: 'count', task: 4, atMs: 30_000 }],
    });
    expect(shown).toContain('oldest row   lines[1] position 7, pending for 12.0 s; held by count (queued)');
    expect(shown).toContain('error        count[3] USER_CODE_FAILED: no [2J (1,234 ×, last 3.0 s ago)');
    expect(shown).toContain('lost state   count[4], 30.0 s ago');
    expect(shown).toContain('fall behind though nothing holds them up');
  });

  it.each([
    [
      { kind: 'not-running', reasons: ['worker s1:6700 is starting, and not ready'] },
      'not all of it runs: worker s1:6700',
    ],
    [{ kind: 'ended', status: 'FINISHED', reasons: [] }, 'it has ended, and nothing of it runs'],
    [{ kind: 'ended', status: 'FAILED', reasons: ['NO: \u001bway'] }, 'nothing of it runs: NO:  way'],
    [{ kind: 'not-reading', status: 'INACTIVE' }, '→ isobar activate words'],
    [{ kind: 'waiting', component: 'count' }, 'Raise bolt.max-in-flight'],
    [
      {
        ...{ kind: 'throwing', component: 'lines', task: 1, message: 'broker 3 is away' },
        ...{ count: 8, lastMs: 57_000 },
      },
      'lines[1] gives no rows, since its source throws: broker 3 is away (8 ×, last 3.0 s ago)',
    ],
    [{ kind: 'busy', component: 'count', threadsFull: true }, 'More threads or workers'],
    [
      {
        kind: 'stuck',
        call: {
          ...{ worker: 's1:6700', thread: 0, component: 'count', task: 3 },
          ...{ call: 'process', forMs: 9000, isBlocking: true },
        },
      },
      'count[3] on s1:6700 has been in process for 9.0 s; its thread does nothing else',
    ],
  ] satisfies [Diagnosis['verdict'], string][])('says of %o what it means', (verdict, expected) => {
    expect(text({ verdict })).toContain(expected);
  });

  it('says how long rows wait in what waits for its promises', () => {
    const components = [load('call', { queued: 3532, queuedPerSecond: 114, waitMs: 41_400 })];
    expect(text({ verdict: { kind: 'waiting', component: 'call' }, components })).toContain(
      'call is the bottleneck: rows wait in it (3,532, 41.4 s) while its threads rest',
    );
    expect(
      text({ verdict: { kind: 'waiting', component: 'call' }, components: [load('call', { waitMs: 90 })] }),
    ).toContain('rows wait in it while its threads rest');
  });

  it('says how a call that does not return is ended', () => {
    const call = {
      ...{ worker: 's1:6700', thread: 0, component: 'count', task: 3 },
      ...{ call: 'process', forMs: 9000, isBlocking: true },
    };
    const shown = text({ verdict: { kind: 'stuck', call } });
    expect(shown).toContain('worker.stuck-timeout');
    expect(shown).toContain('pid in isobar describe words');
  });

  it('tells of a move that is under way, and of threads that were started again', () => {
    const shown = text({
      move: { step: 'moving', tasks: 1, problems: ['call[3] finishes its rows'] },
      threads: [{ worker: 's1:6700', thread: 0, active: 0.2, restarts: 5, tasks: [] }],
    });
    expect(shown).toContain('rebalance    1 task, moving; what does not move runs meanwhile');
    expect(shown).toContain('             call[3] finishes its rows');
    expect(shown.split('\n')).toContain('thread       s1:6700/0 is active 20 %, started again 5 ×');
  });

  it('does not wonder who holds a row that is on its way', () => {
    const row = { component: 'lines', task: 1, row: 'position 7', heldBy: null };
    expect(text({ oldestPending: { ...row, ageMs: 56 } }).split('\n')).toContain(
      'oldest row   lines[1] position 7, pending for 56 ms',
    );
    expect(text({ oldestPending: { ...row, ageMs: 5600 } })).toContain('5.6 s; nobody knows who holds it');
  });

  it('is one object with the same findings as JSON', () => {
    expect(whyJson(detail, diagnosis())).toMatchObject({
      type: 'why',
      name: 'words',
      summary: 'count is the bottleneck: its executors are busy 97 % of the time',
      verdict: { kind: 'busy', component: 'count' },
      components: [{ component: 'lines' }, { component: 'count', capacity: 0.97 }],
    });
  });
});
