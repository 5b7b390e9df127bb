import { describe, expect, it } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from '../index.js';
import { controlledSource, driveBolt, recordingSink, runTopology, startTopology } from './index.js';

const line = { line: t.string };
const word = { word: t.string };
const lines = spout({
  emits: line,
  *read(_context, from: number = 0) {
    const all = ['to be or', 'not to be'];
    for (let at = from; at < all.length; at++) yield { row: { line: all[at]! }, position: at + 1 };
  },
});
const split = bolt({
  takes: line,
  emits: word,
  process(row, out) {
    for (const one of row.line.split(' ')) out.emit({ word: one });
  },
});
const count = bolt({
  takes: word,
  emits: { word: t.string, count: t.int32 },
  prepare(context, saved?: Map<string, number>) {
    const counts = new Map(saved);
    return {
      process(row) {
        context.metrics.count('words');
        counts.set(row.word, (counts.get(row.word) ?? 0) + 1);
      },
      end(out) {
        for (const [one, total] of counts) out.emit({ word: one, count: total });
      },
      save: () => counts,
    };
  },
});
const print = bolt({
  takes: { word: t.string, count: t.int32 },
  process() {
    throw new Error('must not run in a test');
  },
});
const words = topology('words', (b) => {
  const splitted = b.bolt('split', split, { parallelism: 2 }).shuffle(b.spout('lines', lines));
  const counted = b.bolt('count', count, { parallelism: 2 }).fields(splitted, ['word']);
  b.bolt('print', print).global(counted);
});

describe('running a topology', () => {
  it('runs to the end, with what writes to the outside replaced', async () => {
    const sink = recordingSink({ word: t.string, count: t.int32 });
    const run = await runTopology(words, { replace: { print: sink.definition } });
    expect(Object.fromEntries(sink.rows.map((row) => [row.word, row.count]))).toEqual({
      to: 2,
      be: 2,
      or: 1,
      not: 1,
    });
    expect(run.totals('lines')).toMatchObject({ emitted: 2, acked: 2, failed: 0, pending: 0 });
    expect(run.rows('split')).toHaveLength(6);
    expect(run.counters('count')).toEqual({ words: 6 });
    expect(run.errors).toEqual([]);
  });

  it('gives the same rows in the same order each time', async () => {
    const order = async (): Promise<unknown> => {
      const sink = recordingSink({ word: t.string, count: t.int32 });
      await runTopology(words, { replace: { print: sink.definition }, seed: 7 });
      return sink.rows;
    };
    expect(await order()).toEqual(await order());
  });

  it('replays what fails, gives up what always fails, and says why', async () => {
    let failures = 0;
    const flaky = bolt({
      takes: line,
      process(row) {
        if (row.line === 'not to be' || failures++ === 0) throw new Error('no luck');
      },
    });
    const app = topology('flaky', (b) => {
      b.bolt('flaky', flaky).shuffle(b.spout('lines', lines));
    });
    const run = await runTopology(app, { settings: { 'replay.max-failures': 3 } });
    expect(run.totals('lines')).toMatchObject({ emitted: 5, replayed: 3, acked: 1, deadLetters: 1 });
    expect(run.deadLetters).toMatchObject([{ component: 'lines', row: { line: 'not to be' } }]);
    expect(run.errors[0]).toMatchObject({
      component: 'flaky',
      error: { code: 'USER_CODE_FAILED', message: 'no luck' },
    });
  });

  it('lets ten minutes pass at once, tick by tick', async () => {
    const source = controlledSource(line);
    const ticking = bolt({
      takes: line,
      emits: { at: t.float64 },
      every: '1m',
      prepare(context) {
        return { process: () => undefined, tick: (out) => out.emit({ at: context.clock.nowMs() }) };
      },
    });
    const app = topology('ticks', (b) => {
      b.bolt('ticking', ticking).shuffle(b.spout('lines', source.definition));
    });
    const run = startTopology(app);
    await run.advance('10m');
    expect(run.rows('ticking').map((row) => Math.round(Number(row['at']) / 60_000))).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
    source.end();
    await run.toEnd();
    await run.close();
  });

  it('waits for promises of user code, in order of each key', async () => {
    const slow = bolt({
      takes: word,
      emits: word,
      async process(row, out) {
        await pause(row.word === 'to' ? 10 : 1);
        out.emit(row);
      },
    });
    const app = topology('slow', (b) => {
      const splitted = b.bolt('split', split).shuffle(b.spout('lines', lines));
      b.bolt('slow', slow).fields(splitted, ['word']);
    });
    const run = await runTopology(app);
    expect(run.rows('slow')).toHaveLength(6);
    expect(run.totals('lines')).toMatchObject({ acked: 2 });
  });

  it('freezes rows', async () => {
    const changing = bolt({
      takes: line,
      process(row) {
        (row as { line: string }).line = 'changed';
      },
    });
    const app = topology('changing', (b) => {
      b.bolt('changing', changing).shuffle(b.spout('lines', lines));
    });
    const settings = { 'replay.max-failures': 1 };
    const run = await runTopology(app, { settings });
    expect(run.errors[0]?.error.message).toMatch(/read only|read-only/);
    expect((await runTopology(app, { settings, freeze: false })).errors).toEqual([]);
  });

  it('says what a run that does not end waits for', async () => {
    const source = controlledSource(line).push({ line: 'one' });
    const holding = bolt({ takes: line, manual: true, process: () => undefined });
    const app = topology('holding', (b) => {
      b.bolt('holding', holding).shuffle(b.spout('lines', source.definition));
    });
    await expect(runTopology(app, { limit: '1s' })).rejects.toMatchObject({
      code: 'TEST_NOT_ENDED',
      message: 'waited in vain for the end of the topology',
      details: { found: '1 rows of "lines" are pending' },
    });
  });

  it.each([
    [{ nobody: lines }, 'COMPONENT_NOT_FOUND', 'lines'],
    [{ lines: split }, 'DEFINITION_ILLEGAL', 'a spout'],
    [{ print: split }, 'DEFINITION_ILLEGAL', 'streams []'],
    [{ print: {} }, 'DEFINITION_ILLEGAL', 'what spout(…) or bolt(…) returned'],
  ])('refuses stand-ins that do not fit: %j', (replace, code, expected) => {
    expect(() => startTopology(words, { replace })).toThrow(
      expect.objectContaining({
        code,
        details: expect.objectContaining({ expected: expect.stringContaining(expected) as string }) as object,
      }) as Error,
    );
  });
});

describe('a controlled source', () => {
  const app = (source: ReturnType<typeof controlledSource<typeof line>>): ReturnType<typeof topology> =>
    topology('controlled', (b) => {
      b.bolt('split', split).shuffle(b.spout('lines', source.definition));
    });

  it('pauses and goes on', async () => {
    const source = controlledSource(line).push({ line: 'a b' }).pause();
    const run = startTopology(app(source));
    await run.advance('1s');
    expect(run.rows('split')).toEqual([]);
    source.resume().push({ line: 'c' }).end();
    await run.toEnd();
    expect(run.rows('split').map((row) => row['word'])).toEqual(['a', 'b', 'c']);
    expect(source.acked).toEqual([{ line: 'a b' }, { line: 'c' }]);
    await run.close();
  });

  it('fails at an exact row, which comes all the same', async () => {
    const source = controlledSource(line).push({ line: 'a' }, { line: 'b' }, { line: 'c' }).failAt(1).end();
    const run = await runTopology(app(source));
    expect(run.rows('split').map((row) => row['word'])).toEqual(['a', 'b', 'c']);
    expect(run.errors[0]).toMatchObject({ component: 'lines', error: { message: 'row 1 cannot be read' } });
  });

  it('is told of failures if its rows cannot be replayed', async () => {
    const source = controlledSource(line, { replays: false }).push({ line: 'a' }).end();
    const failing = bolt({
      takes: line,
      process() {
        throw new Error('no');
      },
    });
    const run = await runTopology(
      topology('failing', (b) => {
        b.bolt('failing', failing).shuffle(b.spout('lines', source.definition));
      }),
    );
    expect(source.failed).toEqual([{ row: { line: 'a' }, reason: 'user' }]);
    expect(run.totals('lines')).toMatchObject({ failed: 1, replayed: 0 });
  });
});

describe('driving a bolt', () => {
  it('shows what each row makes it emit', async () => {
    const driver = driveBolt(split);
    expect(await driver.process({ line: 'to be' })).toEqual({
      outcome: 'acked',
      emitted: [
        { stream: 'default', row: { word: 'to' } },
        { stream: 'default', row: { word: 'be' } },
      ],
      error: undefined,
    });
    await driver.close();
  });

  it('goes on from saved state, and saves it', async () => {
    const driver = driveBolt(count, { saved: new Map([['to', 5]]) });
    await driver.process({ word: 'to' });
    expect(await driver.save()).toEqual(new Map([['to', 6]]));
    await driver.end();
    expect(driver.rows()).toEqual([{ word: 'to', count: 6 }]);
    await driver.close();
  });

  it('says what a row failed with', async () => {
    const failing = bolt({
      takes: line,
      process() {
        throw new RangeError('too much');
      },
    });
    const driver = driveBolt(failing);
    expect(await driver.process({ line: 'x' })).toMatchObject({
      outcome: 'failed',
      error: { error: { code: 'USER_CODE_FAILED', message: 'too much' } },
    });
    await driver.close();
  });

  it('feeds the inputs of a join by name', async () => {
    const join = bolt({
      inputs: { left: { id: t.int32, name: t.string }, right: { id: t.int32, size: t.int32 } },
      emits: { name: t.string, size: t.int32 },
      prepare() {
        const names = new Map<number, string>();
        return {
          process: {
            left(row) {
              names.set(row.id, row.name);
            },
            right(row, out) {
              out.emit({ name: names.get(row.id) ?? '?', size: row.size });
            },
          },
        };
      },
    });
    const driver = driveBolt(join);
    await driver.process({ id: 1, name: 'one' }, 'left');
    expect((await driver.process({ id: 1, size: 3 }, 'right')).emitted).toEqual([
      { stream: 'default', row: { name: 'one', size: 3 } },
    ]);
    await expect(driver.process({ id: 1, size: 3 }, 'middle')).rejects.toMatchObject({
      code: 'STREAM_UNKNOWN',
    });
    await driver.close();
  });

  it('leaves a row pending that a manual bolt holds until its tick', async () => {
    const holding = bolt({
      takes: line,
      manual: true,
      every: '1s',
      prepare() {
        const anchors: { ack(): void }[] = [];
        return {
          process: (_row, _out, anchor) => void anchors.push(anchor),
          tick: () => {
            for (const anchor of anchors.splice(0)) anchor.ack();
          },
        };
      },
    });
    const driver = driveBolt(holding);
    const sent = driver.send({ line: 'x' });
    expect((await driver.process({ line: 'y' })).outcome).toBe('pending');
    await driver.advance('1s');
    expect(sent.state).toBe('acked');
    await driver.close();
  });
});
