/** Features of the graph, run through real executor threads: groupings, streams, inputs, ticks, low-level spouts. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { bolt, spout, t, topology, type Fields } from '../topology/index.js';
import { ThreadHarness, type HarnessOptions } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});
const start = (definition: unknown, options: HarnessOptions): ThreadHarness =>
  (harness = new ThreadHarness(definition, options));

const numbers = (rows: number) =>
  spout({
    emits: { n: t.int32, key: t.string },
    *read({ index, count }, from?: number) {
      for (let n = from ?? index; n < rows; n += count)
        yield { row: { n, key: `k${n % 7}` }, position: n + count };
    },
  });

/** Records which task got which row. */
const recorder = (seen: { task: number; n: number }[]) =>
  bolt({
    takes: { n: t.int32, key: t.string },
    prepare({ index }) {
      return {
        process({ n }) {
          seen.push({ task: index, n });
        },
      };
    },
  });

describe('groupings', () => {
  it.each([1, 2])('send every row where they say, over %i threads', async (threads) => {
    const rows = 210;
    const seen = {
      shuffle: [] as { task: number; n: number }[],
      localOrShuffle: [] as { task: number; n: number }[],
      fields: [] as { task: number; n: number }[],
      partialKey: [] as { task: number; n: number }[],
      all: [] as { task: number; n: number }[],
      global: [] as { task: number; n: number }[],
      none: [] as { task: number; n: number }[],
      custom: [] as { task: number; n: number }[],
    };
    const run = start(
      topology('groupings', (b) => {
        const source = b.spout('numbers', numbers(rows), { parallelism: 2 });
        const add = (name: keyof typeof seen) =>
          b.bolt(name, recorder(seen[name]), { parallelism: 2, tasks: 3 });
        add('shuffle').shuffle(source);
        add('localOrShuffle').localOrShuffle(source);
        add('fields').fields(source, ['key']);
        add('partialKey').partialKey(source, ['key']);
        add('all').all(source);
        add('global').global(source);
        add('none').none(source);
        add('custom').custom(source, () => ({
          choose: ({ n }, taskCount) => (n % 2 === 0 ? [0, taskCount - 1] : 1),
        }));
      }),
      { threads },
    );
    await run.runToEnd();
    expect(run.errors).toEqual([]);
    expect(run.totals('numbers')).toMatchObject({ acked: rows, failed: 0 });
    const tasksOf = (name: keyof typeof seen): Set<number> => new Set(seen[name].map(({ task }) => task));
    for (const name of ['shuffle', 'localOrShuffle', 'fields', 'partialKey', 'global', 'none'] as const) {
      expect(seen[name].map(({ n }) => n).sort((a, b) => a - b)).toEqual(
        Array.from({ length: rows }, (_, n) => n),
      );
    }
    const spread = [0, 1, 2].map((task) => seen.shuffle.filter((row) => row.task === task).length);
    expect(Math.max(...spread) - Math.min(...spread)).toBeLessThanOrEqual(2);
    const taskOfKey = new Map<number, number>();
    for (const { task, n } of seen.fields) {
      expect(taskOfKey.get(n % 7) ?? task).toBe(task);
      taskOfKey.set(n % 7, task);
    }
    for (let key = 0; key < 7; key++) {
      expect(
        new Set(seen.partialKey.filter(({ n }) => n % 7 === key).map(({ task }) => task)).size,
      ).toBeLessThanOrEqual(2);
    }
    expect(seen.all).toHaveLength(rows * 3);
    expect(tasksOf('global')).toEqual(new Set([0]));
    expect(tasksOf('none').size).toBe(3);
    for (const { task, n } of seen.custom) expect(n % 2 === 0 ? [0, 2] : [1]).toContain(task);
    expect(seen.custom).toHaveLength(rows * 1.5);
  });

  it('deliver direct rows to the task that the sender names, and refuse a row without one', async () => {
    const seen: { task: number; n: number }[] = [];
    const directory = mkdtempSync(join(tmpdir(), 'dead-'));
    const director = bolt({
      takes: { n: t.int32, key: t.string },
      emits: { n: t.int32, key: t.string },
      process(row, out) {
        if (row.n === 5) out.emit(row);
        else out.direct(row.n % 2, row);
      },
    });
    const run = start(
      topology('direct', (b) => {
        const directed = b.bolt('director', director).shuffle(b.spout('numbers', numbers(10)));
        b.bolt('sink', recorder(seen), { parallelism: 2 }).direct(directed);
      }),
      { threads: 2, deadLetterDirectory: directory, settings: { 'replay.max-failures': 1 } },
    );
    await run.runToEnd();
    for (const { task, n } of seen) expect(task).toBe(n % 2);
    expect(seen).toHaveLength(9);
    expect(run.errors[0]!.error.code).toBe('DIRECT_EMIT_MISMATCH');
    expect(run.totals('numbers')).toMatchObject({ acked: 9, deadLetters: 1 });
  });
});

describe('streams and inputs', () => {
  it('carry named streams to named inputs', async () => {
    const joined: string[] = [];
    const split = bolt({
      takes: { n: t.int32, key: t.string },
      emits: { n: t.int32 },
      streams: { odd: { text: t.string } },
      process({ n }, out) {
        if (n % 2 === 0) out.emit({ n });
        else out.to.odd({ text: `odd ${n}` });
      },
    });
    const meet = bolt({
      inputs: { even: { n: t.int32 }, odd: { text: t.string } },
      process: {
        even({ n }) {
          joined.push(`even ${n}`);
        },
        odd({ text }) {
          joined.push(text);
        },
      },
    });
    const run = start(
      topology('streams', (b) => {
        const parted = b.bolt('split', split, { parallelism: 2 }).shuffle(b.spout('numbers', numbers(20)));
        b.bolt('meet', meet).on.even.global(parted).on.odd.global(parted.streams.odd);
      }),
      { threads: 2 },
    );
    await run.runToEnd();
    expect(new Set(joined)).toEqual(
      new Set(Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? `even ${n}` : `odd ${n}`))),
    );
  });

  it('pass values of every kind unchanged within a thread and across threads', async () => {
    const value = {
      text: 'ä\ud800 and more',
      flag: true,
      small: -7,
      big: Number.MAX_SAFE_INTEGER,
      real: -0,
      raw: new Uint8Array([0, 255, 7]),
      at: 1_700_000_000_123,
      huge: -(2n ** 90n),
      maybe: null,
      any: { list: [1, undefined, new Map([['a', new Set([Number.NaN])]])], when: new Date(5) },
    };
    const fields = {
      text: t.string,
      flag: t.bool,
      small: t.int32,
      big: t.int64,
      real: t.float64,
      raw: t.bytes,
      at: t.timestamp,
      huge: t.bigint,
      maybe: t.nullable(t.string),
      any: t.json<unknown>(),
    };
    const got: unknown[] = [];
    const one = spout({
      emits: fields,
      *read() {
        yield { row: value, position: 1 };
      },
    });
    const pass = bolt({
      takes: fields,
      emits: fields,
      process(row, out) {
        out.emit(row);
      },
    });
    const sink = bolt({
      takes: fields,
      process(row) {
        got.push(row);
      },
    });
    const run = start(
      topology('values', (b) => {
        const source = b.spout('one', one);
        const near = b.bolt('near', pass).shuffle(source);
        const far = b.bolt('far', pass).shuffle(near);
        b.bolt('sink', sink).shuffle(far).shuffle(source);
      }),
      {
        threads: 2,
        place: (component) => (component === 'far' ? 1 : 0),
        settings: { 'messaging.ring-bytes': 4096 },
      },
    );
    await run.runToEnd();
    expect(run.errors).toEqual([]);
    for (const row of got) {
      expect(row).toEqual(value);
      expect(Object.is((row as typeof value).real, -0)).toBe(true);
      expect(Object.keys(row as object)).toEqual(Object.keys(value));
    }
    expect(got).toHaveLength(2);
  });

  it.each([1, 2])(
    'give each bolt the fields that it takes and no others, over %i threads',
    async (threads) => {
      const wide = { id: t.int32, user: t.string, page: t.string, note: t.nullable(t.string) };
      const got: Record<string, Set<string>> = {};
      const see = (name: string, row: object): void => {
        (got[name] ??= new Set()).add(JSON.stringify(row));
      };
      const source = spout({
        emits: wide,
        *read() {
          for (let id = 0; id < 20; id++)
            yield { row: { page: 'p', note: null, user: `u${id % 2}`, id }, position: id + 1 };
        },
      });
      const order: number[] = [];
      const run = start(
        topology('views', (b) => {
          const rows = b.spout('source', source);
          const add = <F extends Fields>(name: string, takes: F) =>
            b.bolt(name, bolt({ takes, process: (row) => see(name, row) }), { parallelism: 2 });
          add('all', wide).shuffle(rows);
          add('two', { page: t.string, user: t.string }).all(rows);
          add('keyless', { page: t.string }).fields(rows, ['user']);
          add('nothing', {}).shuffle(rows);
          // The order is that of the key, which the bolt itself does not see.
          const later = bolt({
            takes: { id: t.int32 },
            emits: { id: t.int32 },
            async process(row, out) {
              see('later', row);
              await new Promise((resolve) => setTimeout(resolve, row.id % 2 === 0 ? 1 : 0));
              if (row.id % 2 === 0) order.push(row.id);
              // A row that was taken can be passed on as it is.
              out.emit(row);
            },
          });
          const passed = b.bolt('later', later, { parallelism: 2 }).fields(rows, ['user']);
          add('passed', { id: t.int32 }).shuffle(passed);
        }),
        { threads },
      );
      await run.runToEnd();
      expect(run.errors).toEqual([]);
      const ids = Array.from({ length: 20 }, (_, id) => id);
      const sorted = (name: string): string[] => [...got[name]!].sort();
      expect(sorted('all')).toEqual(
        ids.map((id) => JSON.stringify({ id, user: `u${id % 2}`, page: 'p', note: null })).sort(),
      );
      expect(sorted('two')).toEqual(['{"user":"u0","page":"p"}', '{"user":"u1","page":"p"}']);
      expect(sorted('keyless')).toEqual(['{"page":"p"}']);
      expect(sorted('nothing')).toEqual(['{}']);
      for (const name of ['later', 'passed'])
        expect(sorted(name)).toEqual(ids.map((id) => JSON.stringify({ id })).sort());
      expect(order).toEqual(ids.filter((id) => id % 2 === 0));
    },
  );

  it('refuse a row with a field that its stream does not declare, wherever it is emitted', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dead-'));
    const wrong = (row: object): never => ({ ...row, extra: 1 }) as never;
    const fields = { n: t.int32 };
    const source = spout({
      emits: fields,
      streams: { side: fields },
      *read() {
        yield { row: { n: 0 }, position: 1 };
        yield { row: wrong({ n: 1 }), position: 2 };
        yield { row: wrong({ n: 2 }), position: 3, stream: 'side' as const };
      },
    });
    const refused: string[] = [];
    const low = spout({
      emits: fields,
      open: () => ({
        next(out) {
          try {
            out.emit(wrong({ n: 1 }), { position: 1 });
          } catch (error) {
            refused.push((error as Error).message);
          }
          return 'ended';
        },
      }),
    });
    const attempt = (emit: () => void): void => {
      try {
        emit();
      } catch (error) {
        refused.push((error as Error).message);
      }
    };
    const emitter = bolt({
      takes: fields,
      emits: fields,
      streams: { side: fields },
      manual: true,
      every: '1h',
      prepare: () => ({
        process(row, out, anchor) {
          attempt(() => out.emit(wrong(row)));
          attempt(() => out.to.side(wrong(row), { anchors: [anchor] }));
          attempt(() => out.direct(0, wrong(row)));
          anchor.ack();
        },
        tick() {},
        end(out) {
          attempt(() => out.directTo.side(0, wrong({ n: 1 })));
        },
      }),
    });
    const run = start(
      topology('undeclared', (b) => {
        const rows = b.spout('source', source);
        b.bolt('emitter', emitter).shuffle(rows).shuffle(rows.streams.side).shuffle(b.spout('low', low));
      }),
      { threads: 2, deadLetterDirectory: directory, settings: { 'replay.max-failures': 1 } },
    );
    await run.runToEnd();
    expect(run.errors.map(({ component, error }) => [component, error.code, error.details.where])).toEqual([
      ['source', 'EMIT_FIELD_UNDECLARED', 'component "source", stream "default"'],
      ['source', 'EMIT_FIELD_UNDECLARED', 'component "source", stream "side"'],
    ]);
    expect(run.totals('source')).toMatchObject({ acked: 1, deadLetters: 2 });
    expect(refused.sort()).toEqual(
      [
        ['emitter', 'default'],
        ['emitter', 'default'],
        ['emitter', 'side'],
        ['emitter', 'side'],
        ['low', 'default'],
      ].map(
        ([component, stream]) =>
          `the row has "extra", which is not a field of the stream (emitted by "${component}" to stream "${stream}")`,
      ),
    );
  });

  it('replay a row as it was emitted, whatever its source does with the object later', async () => {
    const scratch = { n: 0 };
    const seen: number[] = [];
    const failed = new Set<number>();
    const source = spout({
      emits: { n: t.int32 },
      *read() {
        for (scratch.n = 0; scratch.n < 5; scratch.n++) yield { row: scratch, position: scratch.n + 1 };
      },
    });
    const once = bolt({
      takes: { n: t.int32 },
      async process({ n }) {
        await Promise.resolve();
        if (!failed.has(n)) {
          failed.add(n);
          throw new Error('again');
        }
        seen.push(n);
      },
    });
    const run = start(
      topology('scratch', (b) => {
        b.bolt('once', once).shuffle(b.spout('source', source));
      }),
      { threads: 1 },
    );
    await run.runToEnd();
    expect(seen.sort()).toEqual([0, 1, 2, 3, 4]);
  });

  it('carry a row that is larger than a ring', async () => {
    const lengths: number[] = [];
    const one = spout({
      emits: { text: t.string },
      *read() {
        for (const length of [10, 1_000_000, 3, 70_000])
          yield { row: { text: 'x'.repeat(length) }, position: length };
      },
    });
    const sink = bolt({
      takes: { text: t.string },
      process({ text }) {
        lengths.push(text.length);
      },
    });
    const run = start(
      topology('large', (b) => {
        b.bolt('sink', sink).shuffle(b.spout('one', one));
      }),
      {
        threads: 2,
        place: (component) => (component === 'sink' ? 1 : 0),
        settings: { 'messaging.ring-bytes': 4096 },
      },
    );
    await run.runToEnd();
    expect(lengths).toEqual([10, 1_000_000, 3, 70_000]);
  });
});

describe('ticks', () => {
  it('root what they emit at their task, and a failed one is reported and not replayed', async () => {
    const ticks: number[] = [];
    let failing = 0;
    const silent = spout({
      emits: { n: t.int32 },
      open: () => ({ next: () => 'idle' as const }),
    });
    const clockwork = bolt({
      takes: { n: t.int32 },
      emits: { tick: t.int32 },
      every: '5ms',
      prepare() {
        let tick = 0;
        return {
          process() {},
          tick(out) {
            out.emit({ tick: tick++ });
          },
        };
      },
    });
    const sink = bolt({
      takes: { tick: t.int32 },
      process({ tick }) {
        if (tick === 2) {
          failing++;
          throw new Error('two');
        }
        ticks.push(tick);
      },
    });
    const run = start(
      topology('ticks', (b) => {
        b.bolt('sink', sink).shuffle(b.bolt('clockwork', clockwork).shuffle(b.spout('silent', silent)));
      }),
      { threads: 2, place: (component) => (component === 'sink' ? 1 : 0) },
    );
    await run.until('some ticks', () => ticks.length >= 6);
    expect(failing).toBe(1);
    expect(run.totals('clockwork').failed).toBe(1);
    expect(ticks.slice(0, 5)).toEqual([0, 1, 3, 4, 5]);
  });
});

describe('low-level spouts', () => {
  it('are told when they are active and when they are not, and are not asked in between', async () => {
    const calls: string[] = [];
    const source = spout({
      emits: { n: t.int32 },
      open() {
        calls.push('open');
        return {
          next() {
            if (calls.at(-1) !== 'next') calls.push('next');
            return 'idle';
          },
          activate: () => void calls.push('activate'),
          deactivate: () => void calls.push('deactivate'),
          close: () => void calls.push('close'),
        };
      },
    });
    const sink = bolt({ takes: { n: t.int32 }, process: () => undefined });
    const run = start(
      topology('activity', (b) => {
        b.bolt('sink', sink).shuffle(b.spout('source', source));
      }),
      { threads: 1 },
    );
    await run.until('the first call', () => calls.at(-1) === 'next');
    run.phase({ kind: 'inactive' });
    await run.until('the deactivation', () => calls.at(-1) === 'deactivate');
    run.phase({ kind: 'active' });
    await run.until('the next call', () => calls.at(-1) === 'next');
    await run.close();
    expect(calls).toEqual(['open', 'activate', 'next', 'deactivate', 'activate', 'next', 'close']);
  });

  it('get ack and fail for the ids that they gave', async () => {
    const acked: unknown[] = [];
    const failed: unknown[] = [];
    const source = spout({
      emits: { n: t.int32 },
      open() {
        let n = 0;
        return {
          next(out) {
            if (n === 10) return 'ended';
            out.emit({ n }, { id: `row ${n}` });
            n++;
            return;
          },
          ack: (id) => void acked.push(id),
          fail: (id, reason) => void failed.push(`${String(id)}: ${reason}`),
        };
      },
    });
    const picky = bolt({
      takes: { n: t.int32 },
      async process({ n }) {
        await Promise.resolve();
        if (n === 4) throw new Error('four');
      },
    });
    const run = start(
      topology('low-level', (b) => {
        b.bolt('picky', picky).shuffle(b.spout('source', source));
      }),
      { threads: 2 },
    );
    await run.runToEnd();
    expect(failed).toEqual(['row 4: user']);
    expect(acked).toHaveLength(9);
  });

  it('count the rows that nobody would emit again: without a position, and without an id or somebody to tell', async () => {
    const low = (parts: object, id: unknown, position?: number) =>
      spout({
        emits: { n: t.int32 },
        open() {
          let n = 0;
          return {
            next(out) {
              if (n === 4) return 'ended';
              out.emit({ n: n++ }, { id, position });
              return;
            },
            ...parts,
          };
        },
      });
    const counts = async (ackers: number): Promise<Record<string, number>> => {
      const run = start(
        topology('unreplayable', { 'topology.ackers': ackers }, (b) => {
          b.bolt('sink', bolt({ takes: { n: t.int32 }, process() {} }))
            .shuffle(b.spout('deaf', low({ ack() {} }, 1)))
            .shuffle(b.spout('nameless', low({ fail() {} }, undefined)))
            .shuffle(b.spout('hearing', low({ fail() {} }, 1)))
            .shuffle(b.spout('placed', low({}, undefined, 1)))
            .shuffle(b.spout('read', numbers(4)));
        }),
        { threads: 1 },
      );
      await run.runToEnd();
      const reports = run.book.taskReports().filter(({ unreplayable }) => unreplayable > 0);
      await run.close();
      return Object.fromEntries(reports.map(({ component, unreplayable }) => [component, unreplayable]));
    };
    expect(await counts(1)).toEqual({ deaf: 4, nameless: 4 });
    expect(await counts(0)).toEqual({});
  });

  it('report a rejected promise of ack and go on', async () => {
    const source = spout({
      emits: { n: t.int32 },
      open() {
        let n = 0;
        return {
          next(out) {
            if (n === 3) return 'ended';
            out.emit({ n: n++ }, { id: n });
            return;
          },
          ack: async (id) => {
            await Promise.resolve();
            throw new Error(`broker away for ${String(id)}`);
          },
        };
      },
    });
    const run = start(
      topology('ack-rejects', (b) => {
        b.bolt('sink', bolt({ takes: { n: t.int32 }, process() {} })).shuffle(b.spout('source', source));
      }),
      { threads: 1 },
    );
    await run.runToEnd();
    await run.until('the reports', () => run.errors.length === 3);
    expect(run.errors[0]!.error).toMatchObject({ code: 'USER_CODE_FAILED', message: 'broker away for 1' });
  });

  it('go on behind the last row when reading throws, with back-off', async () => {
    const got: number[] = [];
    let opened = 0;
    const flaky = spout({
      emits: { n: t.int32 },
      async *read(_context, from?: number) {
        opened++;
        for (let n = from ?? 0; n < 30; n++) {
          await Promise.resolve();
          if (n % 10 === 9 && opened < 3) {
            yield [{ row: { n }, position: n + 1 }];
            throw new Error('connection reset');
          }
          yield [{ row: { n }, position: n + 1 }];
        }
      },
    });
    const sink = bolt({
      takes: { n: t.int32 },
      process({ n }) {
        got.push(n);
      },
    });
    const run = start(
      topology('flaky', (b) => {
        b.bolt('sink', sink).shuffle(b.spout('flaky', flaky));
      }),
      { threads: 1, settings: { 'worker.restart-backoff': 1, 'worker.restart-backoff-max': 2 } },
    );
    await run.runToEnd();
    expect(got).toEqual(Array.from({ length: 30 }, (_, n) => n));
    expect(opened).toBe(3);
    expect(run.errors.map(({ error }) => error.message)).toEqual(['connection reset', 'connection reset']);
  });
});

describe('the message time-out', () => {
  it('fails a row whose promise does not settle, and not the rows that wait behind it', async () => {
    let calls = 0;
    const done: number[] = [];
    const hanging = bolt({
      takes: { n: t.int32, key: t.string },
      async process({ n }) {
        if (n === 0 && ++calls === 1) await new Promise(() => undefined);
        done.push(n);
      },
    });
    const run = start(
      topology('timeout', (b) => {
        b.bolt('hanging', hanging).global(b.spout('numbers', numbers(20)));
      }),
      { threads: 1, settings: { 'topology.message-timeout': 100 } },
    );
    await run.runToEnd();
    expect(done.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    expect(run.totals('numbers')).toMatchObject({ acked: 20, failed: 1, replayed: 1, deadLetters: 0 });
  });
});

describe('time in which a thread stood still', () => {
  it('is no time that a row took', async () => {
    let release: (() => void) | undefined;
    let hasStood = false;
    const waits = bolt({
      takes: { n: t.int32, key: t.string },
      process: () => new Promise<void>((resolve) => (release = resolve)),
    });
    const later = spout({
      emits: { n: t.int32 },
      open: () => ({
        next(out) {
          if (hasStood) return 'ended';
          if (release === undefined) return 'idle';
          hasStood = true;
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2100);
          // After the thread has looked for what has been open for too long.
          setTimeout(release, 300);
          out.emit({ n: 0 }, { position: 1 });
          return undefined;
        },
      }),
    });
    const run = start(
      topology('stood', (b) => {
        b.bolt('waits', waits).global(b.spout('numbers', numbers(1)));
        b.bolt('sink', bolt({ takes: { n: t.int32 }, process: () => undefined })).global(
          b.spout('later', later),
        );
      }),
      { threads: 1, settings: { 'topology.message-timeout': 2000 } },
    );
    await run.runToEnd();
    expect(hasStood).toBe(true);
    expect(run.totals('numbers')).toMatchObject({ acked: 1, failed: 0, replayed: 0 });
  });
});

describe('what a call returns', () => {
  it('may be a promise of another make: one that throws fails its row, one that settles twice acks it once', async () => {
    const lastingly = new Set<number>();
    const odd = bolt({
      takes: { n: t.int32, key: t.string },
      process({ n }): PromiseLike<void> {
        const isFirst = !lastingly.has(n);
        lastingly.add(n);
        return {
          // A promise that does not keep to the rules is the point.
          then(resolve: () => void) {
            if (n % 3 === 0 && isFirst) throw new Error('not a promise');
            resolve();
            resolve();
            throw new Error('too late');
          },
        } as unknown as PromiseLike<void>;
      },
    });
    const run = start(
      topology('thenables', (b) => {
        b.bolt('odd', odd).shuffle(b.spout('numbers', numbers(30)));
      }),
      { threads: 1 },
    );
    await run.runToEnd();
    expect(run.totals('numbers')).toMatchObject({ acked: 30, failed: 10, replayed: 10 });
  });
});
