import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ChannelServer, IsobarError, serveChannels, silentLogger } from '../base/index.js';
import { component, topology, worker } from '../cli/testing/statuses.js';
import type { ComponentStatus, TopologyDetail, WorkerStatus } from '../nimbus/index.js';
import { findHolder } from './find-holder.js';
import { tapRows } from './tap-rows.js';

let directory: string;
const servers: ChannelServer[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'isobar-tap-'));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  rmSync(directory, { recursive: true });
});

const socket = (id: string): string => join(directory, `${id}.sock`);
const question = { name: 'words', component: 'split', taken: false, where: null, limit: 5, windowMs: 100 };

/** A supervisor that answers taps so. */
async function supervisor(id: string, answer: (body: unknown) => unknown): Promise<void> {
  const handlers = { onRequest: (_method: string, body: unknown) => answer(body) };
  servers.push(await serveChannels(socket(id), () => handlers, silentLogger));
}

function detail(): TopologyDetail {
  const thread = (first: number, last: number): WorkerStatus['threads'][number] => ({
    ...{ index: 0, generation: 1, state: 'idle', component: null, task: null, inCallMs: 0, longCalls: [] },
    ...{ lagMs: 0, restarts: 0, executors: [[first, last]] },
  });
  // Of a task only its number is read.
  const perTask = [5, 6].map((task) => ({ task }) as ComponentStatus['perTask'][number]);
  const parts = {
    components: [component('split', 'bolt', { perTask }), component('count', 'bolt')],
    workers: [
      worker(6700, { supervisorId: 's1', threads: [thread(4, 5)] }),
      worker(6701, { supervisorId: 's2', threads: [thread(6, 6)] }),
      worker(6702, { supervisorId: 's3', threads: [thread(1, 3)] }),
    ],
  };
  // What is not read is left out.
  return { summary: { id: 'words-1-99' }, status: topology(parts) } as unknown as TopologyDetail;
}

const row = (atMs: number, task: number): object => ({
  atMs,
  task,
  stream: 'default',
  row: '{}',
  isCut: false,
});

describe('rows of a component', () => {
  it('are refused of a topology that has ended', async () => {
    const ended = detail();
    const status = { ...ended.status, phase: { kind: 'finished' as const, drained: false }, workers: [] };
    const summary = { ...ended.summary, name: 'words', status: 'FINISHED' as const };
    await expect(tapRows({ ...ended, status, summary }, question, socket)).rejects.toMatchObject({
      code: 'TRANSITION_ILLEGAL',
      message: 'topology "words" is FINISHED: no rows pass in it any more',
    });
  });

  it('have a word on it where no worker runs the component', async () => {
    const { status, ...rest } = detail();
    const nowhere = { ...rest, status: { ...status, workers: status.workers.slice(2) } };
    expect(await tapRows(nowhere, question, socket)).toEqual({
      ...{ rows: [], seen: 0, unheard: ['no worker runs split now'] },
    });
  });

  it('come from all workers that run it, in order of time, and from no other', async () => {
    const asked: unknown[] = [];
    const report =
      (...rows: object[]) =>
      (body: unknown) => {
        asked.push(body);
        return { rows, seen: 10, silentThreads: 0 };
      };
    await supervisor('s1', report(row(1, 5), row(3, 5)));
    await supervisor('s2', report(row(2, 6)));
    await supervisor('s3', report(row(0, 1)));
    const { rows, seen, unheard } = await tapRows(detail(), question, socket);
    expect(rows.map(({ atMs, worker: place }) => [atMs, place])).toEqual([
      [1, 's1:6700'],
      [2, 's2:6701'],
      [3, 's1:6700'],
    ]);
    expect([seen, unheard]).toEqual([20, []]);
    const request = { component: 'split', taken: false, where: null, limit: 5, windowMs: 100 };
    expect(asked).toContainEqual({ topologyId: 'words-1-99', port: 6700, request });
  });

  it('come from those that answer, with a word on those that do not', async () => {
    await supervisor('s1', () => ({ rows: [row(1, 5)], seen: 1, silentThreads: 1 }));
    const { rows, unheard } = await tapRows(detail(), question, socket);
    expect(rows).toHaveLength(1);
    expect(unheard).toEqual([
      'threads of s1:6700 that a call holds up: 1',
      expect.stringContaining('s2:6701: nobody listens'),
    ]);
  });

  it('are refused where the component is not there, or the question is wrong', async () => {
    await expect(tapRows(detail(), { ...question, component: 'splt' }, socket)).rejects.toMatchObject({
      code: 'COMPONENT_NOT_FOUND',
      message: 'there is no component "splt"; did you mean "split"?',
    });
    for (const id of ['s1', 's2'])
      await supervisor(id, () => {
        throw new IsobarError('USAGE', 'no such field');
      });
    await expect(tapRows(detail(), question, socket)).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('the holder of the oldest row', () => {
  const pending = { component: 'lines', task: 3, ageMs: 1, row: 'position 1', heldBy: null };

  function withPending(oldestPending: TopologyDetail['status']['oldestPending']): TopologyDetail {
    const { status, ...rest } = detail();
    return { ...rest, status: { ...status, oldestPending } };
  }

  it('is looked for in all workers, whichever can be heard', async () => {
    const asked: unknown[] = [];
    await supervisor('s1', () => null);
    await supervisor('s3', (body) => {
      asked.push(body);
      return 'count[7] (in process for 2.0 s)';
    });
    expect(await findHolder(withPending({ ...pending, sequence: 99 }), socket)).toBe(
      'count[7] (in process for 2.0 s) on s3:6702',
    );
    expect(asked).toEqual([{ topologyId: 'words-1-99', port: 6702, rootTask: 3, sequence: 99 }]);
  });

  it('is nobody where no row is pending, or an older worker does not say which row it is', async () => {
    expect(await findHolder(withPending(null), socket)).toBeNull();
    expect(await findHolder(withPending(pending), socket)).toBeNull();
  });
});
