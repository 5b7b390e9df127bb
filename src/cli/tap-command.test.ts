import { describe, expect, it } from 'vitest';
import type { ClusterClient, TapAnswer, TapRow } from '../api/index.js';
import { printRows } from './tap-command.js';
import { plainColors } from './colors.js';
import { rowJson, rowLine } from './view/row-lines.js';

const row = (task: number, parts: Partial<TapRow> = {}): TapRow => ({
  ...{ atMs: 1000, task, stream: 'default', row: '{"n":1}', isCut: false, worker: 's1:6700', ...parts },
});

/** Answers one look after the other, and nothing more. */
function cluster(...answers: Partial<TapAnswer>[]): { client: ClusterClient; asked: unknown[] } {
  const asked: unknown[] = [];
  const client = {
    ask: async (method: string, body: unknown) => {
      asked.push([method, body]);
      return { rows: [], seen: 0, unheard: [], ...answers[asked.length - 1] };
    },
    close: () => undefined,
  };
  // One answer for every method would do here.
  return { client: client as ClusterClient, asked };
}

describe('tap', () => {
  it('asks for what is still wanted until there was enough, and prints no more', async () => {
    const { client, asked } = cluster({ rows: [row(1), row(2)] }, {}, { rows: [row(3), row(4), row(5)] });
    const printed: number[] = [];
    const wanted = { name: 'words', component: 'split', flags: { rows: '3', where: 'word=a=b' } };
    const count = await printRows(
      client,
      wanted,
      ({ task }) => printed.push(task),
      () => undefined,
      new AbortController().signal,
    );
    expect([count, printed]).toEqual([3, [1, 2, 3]]);
    const common = {
      name: 'words',
      component: 'split',
      taken: false,
      where: { field: 'word', value: 'a=b' },
    };
    expect(asked).toEqual([
      ['tap', { ...common, limit: 3, windowMs: 200 }],
      ['tap', { ...common, limit: 1, windowMs: 1000 }],
      ['tap', { ...common, limit: 1, windowMs: 1000 }],
    ]);
  });

  it('says once what it cannot hear, and ends when it is told to', async () => {
    const interrupted = new AbortController();
    const told: string[] = [];
    const { client } = cluster(
      { unheard: ['s1:6700: gone'], rows: [row(1)] },
      { unheard: ['s1:6700: gone'], rows: [row(2)] },
      { rows: [row(3)] },
    );
    const count = await printRows(
      client,
      { name: 'words', component: 'split', flags: {} },
      ({ task }) => {
        if (task === 3) interrupted.abort();
      },
      (unheard) => told.push(...unheard),
      interrupted.signal,
    );
    expect([count, told]).toEqual([3, ['s1:6700: gone']]);
  });

  it.each([
    [{ rows: '0' }, '--rows'],
    [{ rows: 'many' }, '--rows'],
    [{ where: 'word' }, '--where'],
    [{ for: 'long' }, '--for'],
  ])('refuses %o', async (flags, where) => {
    const { client } = cluster();
    const signal = new AbortController().signal;
    const wanted = { name: 'words', component: 'split', flags };
    await expect(
      printRows(
        client,
        wanted,
        () => undefined,
        () => undefined,
        signal,
      ),
    ).rejects.toMatchObject({ code: 'USAGE', details: { where } });
  });

  it('prints a row as a line and as JSON; one that was cut is text', () => {
    expect(rowLine(row(7), 'split', plainColors)).toBe('00:00:01.000 s1:6700 split[7] default {"n":1}');
    expect(rowJson(row(7), 'split')).toEqual({
      ...{ type: 'row', time: '1970-01-01T00:00:01.000Z', worker: 's1:6700', component: 'split' },
      ...{ task: 7, stream: 'default', row: { n: 1 }, isCut: false },
    });
    expect(rowJson(row(7, { row: '{"n":"xx', isCut: true }), 'split')).toMatchObject({ row: '{"n":"xx' });
  });
});
