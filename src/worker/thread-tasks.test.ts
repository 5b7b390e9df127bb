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
