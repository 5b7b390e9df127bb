import { expect, it } from 'vitest';
import type { WorkerHeartbeat } from '../coordination/index.js';
import { threadDeaths } from './thread-deaths.js';

type Said = Pick<WorkerHeartbeat, 'workerId' | 'threads' | 'errors'>;

function said(restarts: readonly number[], errors: readonly [message: string, lastMs: number][] = []): Said {
  const threads = restarts.map((count, index) => ({ index, restarts: count })) as never;
  const reported = errors.map(([message, lastMs]) => ({
    component: 'split',
    task: 3,
    error: { code: 'USER_CODE_FAILED' as const, message, details: {} },
    count: 1,
    firstMs: lastMs,
    lastMs,
  }));
  return { workerId: 'w1', threads, errors: reported };
}

it('tells each thread that was started again, with what ended it last', () => {
  const errors: [string, number][] = [
    ['executor thread 1 ended: first', 10],
    ['executor thread 1 ended: boom', 20],
    ['executor thread 0 ended: long ago', 30],
  ];
  expect(threadDeaths(said([1, 0, 0]), said([1, 2, 1], errors))).toEqual([
    { code: 'USER_CODE_FAILED', reason: 'executor thread 1 ended: boom' },
    { code: null, reason: 'executor thread 2 ended' },
  ]);
});

it('tells nothing of a worker that is heard for the first time, or is another one', () => {
  expect(threadDeaths(null, said([3]))).toEqual([]);
  expect(threadDeaths({ ...said([0]), workerId: 'w0' }, said([3]))).toEqual([]);
  expect(threadDeaths(said([3]), said([3]))).toEqual([]);
});
