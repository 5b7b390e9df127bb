import { describe, expect, it } from 'vitest';
import { sketchBucket } from '../../base/index.js';
import { component, topology, worker } from '../../cli/testing/statuses.js';
import type { TaskReport } from '../../coordination/index.js';
import type { ComponentStatus, TopologyDetail, TopologyStatus, WorkerStatus } from '../../nimbus/index.js';
import { diagnose, type Diagnosis } from './diagnose.js';

type Thread = WorkerStatus['threads'][number];

function detail(uptimeMs: number, parts: Partial<TopologyStatus>, status = 'ACTIVE'): TopologyDetail {
  const summary = { name: 'words', status, uptimeMs, submittedMs: 0 };
  // What the diagnosis does not read is left out.
  return { summary, desired: null, status: topology(parts) } as unknown as TopologyDetail;
}

const task = (number: number, parts: object): ComponentStatus['perTask'][number] => ({
  ...{
    task: number,
    component: '',
    emitted: 0,
    transferred: 0,
    executed: 0,
    acked: 0,
    failed: 0,
    replayed: 0,
  },
  ...{ deadLetters: 0, unreplayable: 0, queued: 0, pending: 0, ended: false, stopped: false, generation: 1 },
  ...parts,
});

const thread = (index: number, activeMs: number, parts: Partial<Thread> = {}): Thread => ({
  ...{ index, generation: 1, state: 'busy', component: null, task: null, inCallMs: 0, longCalls: [] },
  ...{ lagMs: 0, executors: [], restarts: 0, activeMs, ...parts },
});

/** Two looks, 10 s apart, at components whose counts have risen by those of `now`. */
function over10s(
  now: readonly ComponentStatus[],
  workers: readonly WorkerStatus[] = [worker(6700)],
  earlierWorkers = workers,
): Diagnosis {
  const zero = { busyMs: 0, blockedMs: 0, executed: 0, emitted: 0, executeMicros: [], perTask: [] };
  const before = now.map((one) => ({
    ...one,
    ...zero,
    perTask: one.perTask.map((own) => ({ ...own, executed: 0 })),
  }));
  return diagnose(
    detail(0, { components: before, workers: earlierWorkers }),
    detail(10_000, { components: now, workers }),
  );
}

describe('why a topology is not faster', () => {
  it('is the busiest component that can send on, not those held up before it', () => {
    const { verdict, components, windowMs } = over10s([
      component('lines', 'spout', { executors: 1, busyMs: 2000, blockedMs: 8000, emitted: 50 }),
      component('split', 'bolt', {
        executors: 1,
        busyMs: 3000,
        blockedMs: 6500,
        queued: 4000,
        executed: 100,
      }),
      component('count', 'bolt', { executors: 2, busyMs: 19_000, queued: 500, executed: 1000 }),
      component('print', 'bolt', { executors: 1, busyMs: 100, queued: 3 }),
    ]);
    expect(windowMs).toBe(10_000);
    expect(verdict).toEqual({ kind: 'busy', component: 'count', threadsFull: false });
    expect(components.find((one) => one.component === 'count')).toMatchObject({
      capacity: 0.95,
      heldUp: 0,
      rowsPerSecond: 100,
      waitMs: 5000,
    });
    expect(components[1]).toMatchObject({ heldUp: 0.65 });
  });

  it('is threads that several executors share and fill', () => {
    const full = (activeMs: number): WorkerStatus[] => [
      worker(6700, {
        threads: [
          thread(0, activeMs, {
            executors: [
              [3, 3],
              [5, 5],
            ],
          }),
        ],
      }),
    ];
    const { verdict, threads } = over10s(
      [
        component('lines', 'spout', { executors: 1, busyMs: 2000, blockedMs: 5000, perTask: [task(5, {})] }),
        component('count', 'bolt', { executors: 2, busyMs: 12_000, queued: 900, perTask: [task(3, {})] }),
      ],
      full(9900),
      full(0),
    );
    expect(verdict).toEqual({ kind: 'busy', component: 'count', threadsFull: true });
    expect(threads).toEqual([
      { worker: 'local:6700', thread: 0, active: 0.99, restarts: 0, tasks: ['count[3]', 'lines[5]'] },
    ]);
  });

  it('is a component that waits for its promises while threads rest', () => {
    const rests = (activeMs: number): WorkerStatus[] => [worker(6700, { threads: [thread(0, activeMs)] })];
    const { verdict } = over10s(
      [
        component('lines', 'spout', { executors: 1, blockedMs: 9000 }),
        component('split', 'bolt', { executors: 1, blockedMs: 6000, queued: 2000, busyMs: 100 }),
        component('fetch', 'bolt', { executors: 1, busyMs: 60, queued: 700, executed: 10 }),
      ],
      rests(300),
      rests(0),
    );
    expect(verdict).toEqual({ kind: 'waiting', component: 'fetch' });
  });

  it('is a component in which rows wait for longer than calls take, before its senders are held up', () => {
    const slow = { executors: 2, executed: 850, executeMicros: [[sketchBucket(1_500_000), 850]] as const };
    const looks = (queued: number): Diagnosis =>
      over10s([
        component('requests', 'spout', { busyMs: 10, emitted: 2000, perTask: [task(5, { lag: 10 })] }),
        component('call', 'bolt', { ...slow, queued }),
        component('store', 'bolt', { executed: 850 }),
      ]);
    expect(looks(3500).verdict).toEqual({ kind: 'waiting', component: 'call' });
    // 128 rows of 1.5 s each are only under way.
    expect(looks(128).verdict).toMatchObject({ kind: 'sources' });
  });

  it('is a source that throws each time, unless it gives rows again', () => {
    const error = { code: 'USER_CODE_FAILED' as const, message: 'broker 3 is away', details: {} };
    const errors = [{ component: 's', task: 2, error, count: 8, firstMs: 0, lastMs: 17_100 }];
    const looks = (emitted: number, uptimeMs: number): Diagnosis =>
      diagnose(
        detail(uptimeMs - 3000, {
          components: [component('s', 'spout', { perTask: [task(2, { emitted: 500 })] })],
        }),
        detail(uptimeMs, {
          components: [component('s', 'spout', { perTask: [task(2, { emitted })] })],
          errors,
        }),
      );
    const thrown = { component: 's', task: 2, message: 'broker 3 is away', count: 8, lastMs: 17_100 };
    expect(looks(500, 20_000).verdict).toEqual({ kind: 'throwing', ...thrown });
    expect(looks(501, 20_000).verdict).toMatchObject({ kind: 'sources' });
    expect(looks(500, 60_000).verdict).toMatchObject({ kind: 'sources' });
  });

  it('is not that something does not run where a planned move is under way', () => {
    const lastMove = { step: 'moving', tasks: 1, problems: [] } as const;
    const workers = [worker(6700), worker(6701, { isReady: false })];
    const quiet = { components: [component('count', 'bolt')], workers, isReady: false, lastMove };
    const { verdict, move } = diagnose(detail(0, quiet), detail(3000, quiet));
    expect(verdict).toMatchObject({ kind: 'sources' });
    expect(move).toEqual(lastMove);
    const broken = { ...quiet, problems: [{ code: 'WORKER_LOST' as const, message: 'gone', details: {} }] };
    expect(diagnose(detail(0, quiet), detail(3000, broken)).verdict).toMatchObject({ kind: 'not-running' });
    const over = { ...quiet, lastMove: { ...lastMove, step: 'done' as const } };
    expect(diagnose(detail(0, over), detail(3000, over))).toMatchObject({
      ...{ move: null, verdict: { kind: 'not-running' } },
    });
  });

  it('says how often threads of a worker that is not ready were started again', () => {
    const workers = [worker(6700, { isReady: false, threads: [thread(0, 0, { restarts: 8 })] })];
    const parts = { isReady: false, workers };
    expect(diagnose(detail(0, parts), detail(3000, parts)).verdict).toEqual({
      kind: 'not-running',
      reasons: [
        'worker local:6700 runs, and is not ready: its threads have ended and were started again 8 ×',
      ],
    });
  });

  it('is nothing where no rows are held up: it does what its sources give, or does not read', () => {
    const quiet = [
      component('lines', 'spout', { busyMs: 10, perTask: [task(1, { lag: 20 })] }),
      component('count', 'bolt', { busyMs: 100, queued: 2, executed: 10 }),
    ];
    expect(over10s(quiet).verdict).toEqual({ kind: 'sources', lagPerSecond: 0 });
    const inactive = diagnose(
      detail(0, { components: quiet }, 'INACTIVE'),
      detail(3000, { components: quiet }, 'INACTIVE'),
    );
    expect(inactive.verdict).toEqual({ kind: 'not-reading', status: 'INACTIVE' });
  });

  it('is the end of a topology that has ended, whatever it lacks', () => {
    const over = { phase: { kind: 'finished', drained: false }, isReady: false, workers: [] } as const;
    const ended = diagnose(detail(0, over, 'FINISHED'), detail(3000, over, 'FINISHED'));
    expect(ended.verdict).toEqual({ kind: 'ended', status: 'FINISHED', reasons: [] });
  });

  it('is a call that does not return, before anything else', () => {
    const call = { component: 'split', task: 7, call: 'process', forMs: 12_000, isBlocking: true };
    const workers = [worker(6700, { isReady: false, threads: [thread(1, 0, { longCalls: [call] })] })];
    const { verdict } = diagnose(detail(0, { workers }), detail(3000, { workers, isReady: false }));
    expect(verdict).toEqual({ kind: 'stuck', call: { ...call, worker: 'local:6700', thread: 1 } });
  });

  it('is what does not run, with all that is known of it', () => {
    const parts: Partial<TopologyStatus> = {
      isReady: false,
      problems: [{ code: 'TOPOLOGY_CODE_LOST', message: 'blob a is missing', details: {} }],
      unplacedExecutors: 3,
      unplacedReason: 'no slot is free',
      workers: [worker(6700, { isReady: false, state: 'backing-off' })],
    };
    expect(diagnose(detail(0, parts), detail(3000, parts)).verdict).toEqual({
      kind: 'not-running',
      reasons: [
        'TOPOLOGY_CODE_LOST: blob a is missing',
        '3 executors have no slot: no slot is free',
        'worker local:6700 is backing-off, and not ready',
      ],
    });
  });

  it('tells a hot key from a hot placement', () => {
    const busy = (activeMs: number): WorkerStatus[] => [
      worker(6700, { threads: [thread(0, activeMs, { executors: [[3, 4]] })] }),
      worker(6701, { threads: [thread(0, activeMs / 4, { executors: [[5, 6]] })] }),
    ];
    const uneven = [3, 4, 5, 6].map((number) => task(number, { executed: number === 4 ? 700 : 100 }));
    const even = [3, 4, 5, 6].map((number) => task(number, { executed: 250 }));
    const few = [3, 4, 5, 6].map((number) => task(number, { executed: number === 4 ? 20 : 1 }));
    const skews = (perTask: ComponentStatus['perTask'], activeMs: number): Diagnosis['skews'] =>
      over10s([component('count', 'bolt', { perTask })], busy(activeMs), busy(0)).skews;
    expect(skews(uneven, 1000)).toEqual([
      { kind: 'hot-key', component: 'count', task: 4, worker: 'local:6700', share: 0.7, tasks: 4 },
    ]);
    expect(skews(even, 9500)).toEqual([
      {
        kind: 'hot-placement',
        worker: 'local:6700',
        thread: 0,
        active: 0.95,
        othersActive: 0.2375,
        tasks: ['count[3]', 'count[4]'],
      },
    ]);
    expect(skews(few, 1000)).toEqual([]);
    const ofTwo = (first: number): number =>
      skews([task(3, { executed: first }), task(4, { executed: 1000 - first })], 1000).length;
    expect([ofTwo(740), ofTwo(760)]).toEqual([0, 1]);
  });

  it('is the one task that gets most rows on a busy thread, though the executors are idle on average', () => {
    const threads = (activeMs: number): WorkerStatus[] => [
      worker(6700, { threads: [thread(0, activeMs, { executors: [[3, 3]] })] }),
      worker(6701, { threads: [thread(0, activeMs / 10, { executors: [[4, 6]] })] }),
    ];
    const perTask = [3, 4, 5, 6].map((number) => task(number, { executed: number === 3 ? 940 : 20 }));
    const seen = (activeMs: number): Diagnosis['verdict'] =>
      over10s(
        [
          component('lines', 'spout', { executors: 1, blockedMs: 6600 }),
          component('count', 'bolt', { executors: 4, busyMs: 7200, queued: 2000, executed: 1000, perTask }),
        ],
        threads(activeMs),
        threads(0),
      ).verdict;
    const hot = {
      kind: 'hot-task',
      component: 'count',
      task: 3,
      worker: 'local:6700',
      share: 0.94,
      tasks: 4,
    };
    expect(seen(7900)).toEqual({ ...hot, active: 0.79 });
    expect(seen(9900)).toEqual({ ...hot, active: 0.99 });
    expect(seen(1000)).toEqual({ kind: 'waiting', component: 'count' });
  });

  it('says nothing of the keys of a component that is held up: some of its tasks may not send', () => {
    const perTask = [task(3, { executed: 1000 }), task(4, { executed: 0 })];
    const skews = (blockedMs: number): Diagnosis['skews'] =>
      over10s([component('split', 'bolt', { executors: 2, blockedMs, perTask })]).skews;
    expect(skews(0)).toMatchObject([{ kind: 'hot-key', component: 'split', task: 3 }]);
    expect(skews(12_000)).toEqual([]);
  });

  it('takes times by the reports that it saw, and latencies of what was measured in between', () => {
    const at = (uptimeMs: number, heartbeatAgeMs: number, busyMs: number, micros: number[]): TopologyDetail =>
      detail(uptimeMs, {
        workers: [worker(6700, { heartbeatAgeMs })],
        components: [
          component('count', 'bolt', {
            executors: 1,
            busyMs,
            executeMicros: micros.map((one, place) => [sketchBucket(one), place + 1]),
          }),
        ],
      });
    const { windowMs, components } = diagnose(at(10_000, 900, 0, [10]), at(13_000, 100, 1900, [10, 5000]));
    expect(windowMs).toBe(3800);
    expect(components[0]?.capacity).toBe(0.5);
    expect(components[0]?.p99Micros).toBeGreaterThan(4900);
  });

  it('counts failed rows that wait for their replay, and those that nobody would emit again', () => {
    const task = (failed: number, replayed: number, deadLetters: number, unreplayable: number): TaskReport =>
      ({ failed, replayed, deadLetters, unreplayable }) as unknown as TaskReport;
    const replay = (...perTask: TaskReport[]): unknown => {
      const parts = { components: [component('lines', 'spout', { perTask })] };
      return diagnose(detail(0, parts), detail(3000, parts)).replay;
    };
    expect(replay(task(10, 7, 1, 0), task(5, 5, 0, 0))).toEqual({ waiting: 2, lost: 0 });
    expect(replay(task(10, 2, 0, 3), task(0, 0, 0, 100))).toEqual({ waiting: 5, lost: 3 });
    expect(replay(task(0, 4, 0, 0))).toEqual({ waiting: 0, lost: 0 });
  });

  it('shows the last errors first, a bounded number of them', () => {
    const errors = Array.from({ length: 9 }, (_, place) => ({
      ...{ component: 'count', task: 3, count: 1, firstMs: place, lastMs: place },
      error: { code: 'USER_CODE_FAILED' as const, message: `no ${place}`, details: {} },
    }));
    const shown = diagnose(detail(0, { errors }), detail(3000, { errors })).errors;
    expect(shown.map(({ lastMs }) => lastMs)).toEqual([8, 7, 6, 5, 4]);
  });
});
