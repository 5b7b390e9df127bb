import { describe, expect, it } from 'vitest';
import { sketchBucket, type ErrorRecord, type SketchPairs } from '../../base/index.js';
import type { ComponentStatus, WorkerStatus } from '../../api/index.js';
import { plainColors } from '../colors.js';
import { cluster, component, topology, worker } from '../testing/statuses.js';
import { addStatus, EMPTY_HISTORY, type History } from './history.js';
import { headline, plainLine, renderScreen } from './screen.js';
import { buildView, type RunView, subtractSketch } from './view.js';
import { warningsOf } from './warnings.js';

const sketch = (...values: readonly [micros: number, count: number][]): SketchPairs =>
  values.map(([micros, count]) => [sketchBucket(micros), count] as const);
const boom: ErrorRecord = {
  code: 'USER_CODE_FAILED',
  message: 'process of "split" threw: boom',
  details: {},
};

const THREADS: WorkerStatus['threads'] = [0, 1].map((index) => ({
  index,
  generation: 1,
  state: index === 0 ? 'busy' : 'stuck',
  component: 'split',
  task: 3,
  inCallMs: 0,
  longCalls:
    index === 0
      ? [{ component: 'count', task: 5, call: 'prepare', forMs: 8000, isBlocking: false }]
      : [{ component: 'split', task: 3, call: 'process', forMs: 12_000, isBlocking: true }],
  lagMs: 0,
  executors: [],
  restarts: 0,
}));

function statusAt(seconds: number, rows: number): ReturnType<typeof topology> {
  return topology({
    components: [
      component('lines', 'spout', {
        emitted: rows,
        acked: rows - 10,
        pending: 10,
        completeMicros: sketch([2000, rows]),
      }),
      component('split', 'bolt', {
        executed: rows,
        emitted: rows * 6,
        acked: rows,
        queued: 3,
        executeMicros: sketch([8, rows]),
      }),
      component('count', 'bolt', { executed: rows * 6, acked: rows * 6, executors: 4, failed: 1 }),
    ],
    workers: [worker(6700, { cpuMicros: seconds * 1_500_000, threads: [], heartbeatAgeMs: 100 })],
    totals: {
      emitted: rows,
      acked: rows - 10,
      failed: 0,
      replayed: 0,
      pending: 10,
      executed: rows * 7,
      deadLetters: 0,
    },
  });
}

function historyOf(...statuses: readonly [atMs: number, status: ReturnType<typeof topology>][]): History {
  return statuses.reduce<History>(
    (history, [atMs, status]) => addStatus(history, cluster(atMs, status), status.id),
    EMPTY_HISTORY,
  );
}

function viewOf(history: History): RunView {
  return buildView(history)!;
}

describe('buildView', () => {
  it('tells rates and cpu of the window between two reports', () => {
    const view = viewOf(historyOf([1000, statusAt(1, 1000)], [3000, statusAt(3, 5000)]));
    expect(view.ackedPerSecond).toBe(2000);
    expect(view.components.map(({ executedPerSecond }) => executedPerSecond)).toEqual([0, 2000, 12_000]);
    expect(view.workers[0]?.cpuPercent).toBe(150);
  });

  it('knows no rate before the second report, and does not take a repeated report for standstill', () => {
    const first = statusAt(1, 1000);
    const early = viewOf(historyOf([1000, first]));
    expect(early.ackedPerSecond).toBeNull();
    const second = statusAt(2, 3000);
    const repeated = topology({
      ...second,
      workers: second.workers.map((one) => ({ ...one, heartbeatAgeMs: 600 })),
    });
    const view = viewOf(historyOf([1000, first], [2000, second], [2500, repeated]));
    expect(view.ackedPerSecond).toBe(2000);
  });

  it('forgets reports that are older than the window', () => {
    const statuses = Array.from(
      { length: 20 },
      (_, i) => [i * 1000, statusAt(i, 1000 + i * i * 100)] as const,
    );
    const { samples } = historyOf(
      ...statuses.map(([atMs, status]) => [atMs, status] as [number, typeof status]),
    );
    expect(samples).toHaveLength(4);
  });

  it('tells latencies of the window, and of the whole life where the window has none', () => {
    const then = statusAt(1, 1000);
    const now = statusAt(2, 1000);
    const [lines, split, count] = now.components;
    const slower = component('split', 'bolt', { ...split, executeMicros: sketch([8, 1000], [900, 10]) });
    const view = viewOf(
      historyOf([1000, then], [2000, topology({ ...now, components: [lines!, slower, count!] })]),
    );
    expect(view.components[1]?.latency.p50Micros).toBeCloseTo(900, -2);
    expect(view.components[0]?.latency.p50Micros).toBeCloseTo(2000, -2);
    expect(view.components[2]?.latency).toEqual({ p50Micros: null, p99Micros: null });
  });

  it('counts nothing where a restarted component has counted less than before', () => {
    expect(subtractSketch([[1, 5]], [[1, 7]])).toEqual([]);
    const view = viewOf(historyOf([1000, statusAt(1, 1000)], [2000, statusAt(2, 50)]));
    expect(view.ackedPerSecond).toBe(0);
  });
});

describe('headline', () => {
  it('says of very many tasks how many run while they start', () => {
    const task = (number: number, isRunning: boolean): ComponentStatus['perTask'][number] =>
      // What the view reads of it.
      ({ task: number, component: 'wide', isRunning }) as ComponentStatus['perTask'][number];
    const perTask = Array.from({ length: 1500 }, (_, i) => task(i, i < 1200));
    const starting = (tasks: number): string => {
      const wide = component('wide', 'bolt', { tasks, perTask: perTask.slice(0, tasks) });
      const parts = { isReady: false, workers: [worker(6700, { isReady: false })], components: [wide] };
      return headline(buildView(addStatus(EMPTY_HISTORY, cluster(1000, topology(parts)), 'words-1-99'))!);
    };
    expect(starting(1500)).toContain('starting, 1,200 of 1,500 tasks run');
    expect(starting(10)).not.toContain('tasks run');
  });
});

describe('renderScreen', () => {
  const busy = topology({
    ...statusAt(3, 57_000),
    name: 'word-count',
    workers: [
      worker(6700, { cpuMicros: 4_500_000, threads: THREADS, heartbeatAgeMs: 100 }),
      worker(6701, {
        state: 'backing-off',
        pid: null,
        workerId: null,
        restarts: 3,
        isReady: false,
        heartbeatAgeMs: null,
        rssBytes: 0,
      }),
    ],
    errors: [{ component: 'split', task: 3, error: boom, count: 12, firstMs: 0, lastMs: 1 }],
    problems: [{ code: 'WORKER_LOST', message: 'worker 6701 ended: SIGKILL', details: {} }],
    lostStates: [{ component: 'count', task: 5, atMs: 0 }],
    oldestPending: { component: 'lines', task: 1, ageMs: 12_000, row: '{"line":7}', heldBy: 'count task 7' },
    unplacedExecutors: 2,
    unplacedReason: 'no free slot',
  });
  const view = viewOf(historyOf([1000, statusAt(1, 1000)], [3000, busy]));

  it.each([80, 200])('fits into %d columns', (width) => {
    const lines = renderScreen(view, width, plainColors);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
    expect(lines.join('\n')).toMatchSnapshot();
  });

  it.each([120, 130, 150])(
    'shows whole titles and numbers in %d columns, and leaves columns out instead',
    (width) => {
      const [, , , titles, ...rows] = renderScreen(view, width, plainColors);
      expect(titles).toMatch(/^component .* in\/s .* acked  failed  replayed/);
      for (const row of rows.slice(0, 3)) expect(row).not.toContain('…');
    },
  );

  it.each([20, 40, 79, 119, 121])('never exceeds %d columns', (width) => {
    for (const line of renderScreen(view, width, plainColors)) expect(line.length).toBeLessThanOrEqual(width);
  });

  it('says when acking is off', () => {
    const off = viewOf(historyOf([1000, topology({ ...statusAt(1, 100), ackers: 0 })]));
    expect(renderScreen(off, 80, plainColors)[1]).toBe('100 rows emitted · acking is off');
  });

  it('has a one-line form', () => {
    expect(plainLine(view)).toBe(
      'word-count · running · 3.0 s · 56,990 rows acked, 28.0k/s · 10 pending · 0 failed · 0 replayed · 3 queued · ' +
        '2 workers at 150 % cpu · 12 errors · the promise of prepare of count task 5 has been open for 8.0 s · ' +
        'split task 3 has been stuck in process for 12.0 s',
    );
  });
});

describe('warningsOf', () => {
  const unreplayable = (ackers: number): RunView =>
    viewOf(
      historyOf([
        1000,
        topology({
          ackers,
          components: [component('lines', 'spout', { unreplayable: 3 }), component('other', 'spout')],
        }),
      ]),
    );

  it('names spouts with rows that nothing would replay, unless nothing is replayed anyway', () => {
    expect(warningsOf(unreplayable(1))).toEqual([
      {
        key: 'unreplayable lines',
        component: 'lines',
        task: 0,
        text: 'lines emits rows without a position, and nothing else replays them: one that fails or is lost is gone',
      },
    ]);
    expect(warningsOf(unreplayable(0))).toEqual([]);
  });

  it('names calls that do not end, each by the same key however long it lasts', () => {
    const at = (forMs: number): RunView =>
      viewOf(
        historyOf([
          1000,
          topology({
            workers: [
              worker(6700, {
                threads: THREADS.map((thread) => ({
                  ...thread,
                  longCalls: thread.longCalls.map((call) => ({ ...call, forMs })),
                })),
              }),
            ],
          }),
        ]),
      );
    const [waiting, stuck] = warningsOf(at(65_000));
    expect(waiting).toMatchObject({
      component: 'count',
      task: 5,
      text: 'the promise of prepare of count task 5 has been open for 1 m 05 s',
    });
    expect(stuck).toMatchObject({
      component: 'split',
      task: 3,
      text: 'split task 3 has been stuck in process for 1 m 05 s; thread 1 of worker 6700 does nothing else meanwhile',
    });
    expect(warningsOf(at(70_000)).map(({ key }) => key)).toEqual([waiting!.key, stuck!.key]);
  });
});
