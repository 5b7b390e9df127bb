import { afterEach, describe, expect, it } from 'vitest';
import type { ExecutorRange } from '../scheduling/index.js';
import { bolt, spout, t, topology } from '../topology/index.js';
import { tasksOf } from './task-book.js';
import { ThreadHarness } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});

const ROWS = 4000;
const numbers = spout({
  emits: { n: t.int32 },
  *read({ index, count }, from?: number) {
    for (let n = from ?? index; n < ROWS; n += count) yield { row: { n }, position: n + count };
  },
});

/** Every way to cut the tasks first…last into executors of one size. */
function cut(first: number, last: number, size: number): ExecutorRange[] {
  const ranges: ExecutorRange[] = [];
  for (let at = first; at <= last; at += size) ranges.push([at, Math.min(last, at + size - 1)]);
  return ranges;
}

describe('executors that are cut anew', () => {
  it.each([{ isAsync: false }, { isAsync: true }])(
    'stop no task, lose no row and keep the order of each task ($isAsync)',
    async ({ isAsync }) => {
      const seen = new Map<number, number[]>();
      let prepared = 0;
      const sink = bolt({
        takes: { n: t.int32 },
        prepare({ task }) {
          prepared++;
          const rows: number[] = [];
          seen.set(task, rows);
          return {
            process({ n }) {
              rows.push(n);
              return isAsync ? new Promise<void>((resolve) => setImmediate(resolve)) : undefined;
            },
          };
        },
      });
      const run = (harness = new ThreadHarness(
        topology('cut', (b) => {
          b.bolt('sink', sink, { parallelism: 1, tasks: 6 }).fields(b.spout('numbers', numbers), ['n']);
        }),
        { threads: 2, settings: { 'messaging.credit': 64 } },
      ));
      const { first, last } = run.tasks.find(({ component }) => component === 'sink')!;
      const others = tasksOf(
        run.tasks.filter(({ component }) => component === 'numbers').map((one) => [one.first, one.last]),
      ).map((task): ExecutorRange => [task, task]);
      const end = run.runToEnd();
      for (let round = 0; run.totals('sink').executed < ROWS - 100; round++) {
        const executed = run.totals('sink').executed;
        await run.until('progress', () => run.totals('sink').executed > executed + 50);
        run.regroup([...others, ...cut(first, last, 1 + (round % 6))]);
      }
      await end;
      expect(run.crashes).toEqual([]);
      expect(prepared).toBe(6);
      expect(run.totals('numbers')).toMatchObject({ acked: ROWS, failed: 0, pending: 0 });
      for (const rows of seen.values()) expect(rows).toEqual([...rows].sort((a, b) => a - b));
      expect([...seen.values()].flat().length).toBe(ROWS);
    },
  );
});

describe('a task that cannot be prepared', () => {
  it('is named with what it has thrown, whoever was called after it', async () => {
    const good = bolt({ takes: { n: t.int32 }, prepare: () => ({ process: () => undefined }) });
    const bad = bolt({
      takes: { n: t.int32 },
      async prepare() {
        await new Promise((resolve) => setImmediate(resolve));
        throw new TypeError('no such table');
      },
    });
    const run = (harness = new ThreadHarness(
      topology('unprepared', (b) => {
        const rows = b.spout('numbers', numbers);
        b.bolt('bad', bad).shuffle(rows);
        b.bolt('good', good, { parallelism: 3 }).shuffle(rows);
      }),
      { threads: 1 },
    ));
    await run.until('the crash', () => run.faults.length > 0);
    const { first: task } = run.tasks.find(({ component }) => component === 'bad')!;
    expect(run.faults[0]).toMatchObject({
      code: 'USER_CODE_FAILED',
      message: 'no such table',
      details: { component: 'bad', task, where: `component "bad", task ${task}, prepare` },
      stack: expect.stringContaining('thread-tasks.test') as string,
    });
  });
});

describe('user code that does not come to an end', () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  const settings = { 'worker.stuck-warning': 20, 'supervisor.worker-stop-timeout': 0 };
  const few = spout({
    emits: { n: t.int32 },
    *read() {
      for (let n = 0; n < 10; n++) yield { row: { n }, position: n + 1 };
    },
  });
  it.each(['prepare', 'open'] as const)(
    'holds up no other task when it is the promise of %s, and is told',
    async (call) => {
      let lives = 0;
      const sink = bolt({
        takes: { n: t.int32 },
        prepare() {
          lives++;
          return { process() {} };
        },
      });
      const source = call === 'open' ? spout({ emits: { n: t.int32 }, open: never }) : few;
      const run = (harness = new ThreadHarness(
        topology('hung', (b) => {
          const rows = b.spout('few', few);
          b.bolt('sink', sink).shuffle(rows);
          const other = b.spout('source', source);
          b.bolt(
            'hung',
            bolt({ takes: { n: t.int32 }, prepare: call === 'prepare' ? never : () => ({ process() {} }) }),
          ).shuffle(other);
        }),
        { threads: 1, settings },
      ));
      await run.until('the other rows', () => run.totals('few').acked === 10);
      await run.until('the report', () => (run.longCalls.get(0) ?? []).length > 0);
      expect(run.longCalls.get(0)).toEqual([
        {
          component: call === 'prepare' ? 'hung' : 'source',
          task: run.tasks.find(({ component }) => component === (call === 'prepare' ? 'hung' : 'source'))!
            .first,
          call,
          forMs: expect.any(Number) as number,
          isBlocking: false,
        },
      ]);
      // A later assignment and a stop come through all the same.
      const firstOf = (id: string): number => run.tasks.find(({ component }) => component === id)!.first;
      await run.move(firstOf('sink'));
      await run.move(firstOf('few'));
      if (call === 'prepare') await run.move(firstOf('hung'));
      await run.until('the next life', () => lives === 2);
    },
  );

  it('does not keep other tasks from being closed when it is the promise of close, and is an error', async () => {
    const closed: string[] = [];
    const closing = (name: string, wait: () => Promise<void>) =>
      bolt({
        takes: { n: t.int32 },
        process() {},
        close() {
          closed.push(name);
          return wait();
        },
      });
    const run = (harness = new ThreadHarness(
      topology('closing', (b) => {
        const rows = b.spout('few', few);
        b.bolt('hung', closing('hung', never)).shuffle(rows);
        b.bolt(
          'fine',
          closing('fine', async () => {}),
        ).shuffle(rows);
        b.bolt(
          'failing',
          closing('failing', async () => Promise.reject(new Error('no'))),
        ).shuffle(rows);
      }),
      { threads: 1, settings },
    ));
    await run.runToEnd();
    await run.close();
    expect(closed.sort()).toEqual(['failing', 'fine', 'hung']);
    expect(run.errors.map(({ component, error }) => [component, error.code]).sort()).toEqual([
      ['failing', 'USER_CODE_FAILED'],
      ['hung', 'CLOSE_TIMED_OUT'],
    ]);
  });

  it('is closed when it comes to an end after all, although its task has been stopped', async () => {
    const closed: number[] = [];
    let release = (): void => undefined;
    let lives = 0;
    const slow = bolt({
      takes: { n: t.int32 },
      async prepare() {
        const life = ++lives;
        if (life === 1) await new Promise<void>((resolve) => (release = resolve));
        return { process() {}, close: () => void closed.push(life) };
      },
    });
    const run = (harness = new ThreadHarness(
      topology('late', (b) => {
        b.bolt('slow', slow).shuffle(b.spout('few', few));
      }),
      { threads: 1, settings },
    ));
    await run.until('the first life', () => lives === 1);
    await run.move(run.tasks.find(({ component }) => component === 'slow')!.first);
    await run.runToEnd();
    expect(closed).toEqual([]);
    release();
    await run.until('the first one to be closed', () => closed.length === 1);
    await run.close();
    expect(closed).toEqual([1, 2]);
  });
});
