import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { bolt, spout, t, topology, type Anchor } from '../topology/index.js';
import { C_EMITTED } from './counters.js';
import { ThreadHarness, type HarnessOptions } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});
const start = (definition: unknown, options: HarnessOptions): ThreadHarness =>
  (harness = new ThreadHarness(definition, options));

const SENTENCES = ['the quick brown fox jumps over', 'the lazy dog sleeps all day', 'a fox and a dog meet'];

/** Words are counted per task; `counts` gathers what the tasks say at the end. */
function wordCount(options: {
  sentences: number;
  parallelism: number;
  counts: Map<string, number>;
}): unknown {
  const lines = spout({
    emits: { sentence: t.string },
    *read({ index, count }, from?: number) {
      for (let i = from ?? index; i < options.sentences; i += count) {
        yield { row: { sentence: SENTENCES[i % SENTENCES.length]! }, position: i + count };
      }
    },
  });
  const split = bolt({
    takes: { sentence: t.string },
    emits: { word: t.string },
    process({ sentence }, out) {
      for (const word of sentence.split(' ')) out.emit({ word });
    },
  });
  const count = bolt({
    takes: { word: t.string },
    emits: { word: t.string, count: t.int64 },
    prepare() {
      const counts = new Map<string, number>();
      return {
        process({ word }) {
          counts.set(word, (counts.get(word) ?? 0) + 1);
        },
        end(out) {
          for (const [word, total] of counts) out.emit({ word, count: total });
        },
      };
    },
  });
  const gather = bolt({
    takes: { word: t.string, count: t.int64 },
    process({ word, count: total }) {
      expect(options.counts.has(word)).toBe(false);
      options.counts.set(word, total);
    },
  });
  return topology('word-count', (b) => {
    const source = b.spout('lines', lines, { parallelism: options.parallelism });
    const words = b.bolt('split', split, { parallelism: options.parallelism }).shuffle(source);
    const counted = b
      .bolt('count', count, { parallelism: options.parallelism, tasks: options.parallelism * 2 })
      .fields(words, ['word']);
    b.bolt('gather', gather).global(counted);
  });
}

function expectedCounts(sentences: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (let i = 0; i < sentences; i++) {
    for (const word of SENTENCES[i % SENTENCES.length]!.split(' '))
      counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

describe('ExecutorThread', () => {
  it.each([
    { threads: 1, settings: {} },
    { threads: 2, settings: {} },
    { threads: 3, settings: { 'messaging.batch-rows': 1 } },
    { threads: 2, settings: { 'messaging.credit': 1, 'messaging.ring-bytes': 4096 } },
    { threads: 2, settings: { 'topology.ackers': 0 } },
    { threads: 2, settings: { 'topology.ackers': 0, 'messaging.credit': 2 } },
    { threads: 2, settings: { 'topology.max-spout-pending': 1 } },
  ])(
    'counts every word exactly once to the end of the input: $threads threads, $settings',
    async ({ threads, settings }) => {
      const counts = new Map<string, number>();
      const sentences = 600;
      const run = start(wordCount({ sentences, parallelism: 2, counts }), { threads, settings });
      await run.runToEnd();
      expect(run.errors).toEqual([]);
      expect(counts).toEqual(expectedCounts(sentences));
      if (!('topology.ackers' in settings)) expect(run.totals('lines').acked).toBe(sentences);
      expect(run.totals('lines').replayed).toBe(0);
    },
  );

  it('stores the position behind the last row when all is acked', async () => {
    const run = start(wordCount({ sentences: 100, parallelism: 2, counts: new Map() }), {
      threads: 2,
      settings: { 'spout.position-interval': 1 },
    });
    await run.runToEnd();
    await run.until(
      'positions',
      () =>
        [...run.storedPositions.values()]
          .map(({ position }) => position)
          .sort()
          .join() === '100,101',
    );
  });

  it('goes on from a stored position', async () => {
    const counts = new Map<string, number>();
    const definition = wordCount({ sentences: 100, parallelism: 1, counts });
    const task = new ThreadHarness(definition, { threads: 1 });
    const lines = task.tasks.find(({ component }) => component === 'lines')!.first;
    await task.close();
    const run = start(definition, { threads: 1, positions: [{ task: lines, generation: 1, position: 97 }] });
    await run.runToEnd();
    expect(run.totals('lines').acked).toBe(3);
  });

  it('replays what was pending in a thread that crashed, and loses nothing', async () => {
    const seen = new Set<number>();
    const rows = 3000;
    const numbers = spout({
      emits: { n: t.int32 },
      *read({ index, count }, from?: number) {
        for (let n = from ?? index; n < rows; n += count) yield { row: { n }, position: n + count };
      },
    });
    const sink = bolt({
      takes: { n: t.int32 },
      process({ n }) {
        seen.add(n);
      },
    });
    const run = start(
      topology('crash', (b) => {
        const source = b.spout('numbers', numbers, { parallelism: 2 });
        b.bolt('sink', sink, { parallelism: 2 }).fields(source, ['n']);
      }),
      {
        threads: 2,
        settings: { 'replay.quiet-time': 20, 'spout.position-interval': 1, 'messaging.credit': 32 },
      },
    );
    await run.until('some rows', () => seen.size > 200);
    await run.crash(1);
    await run.until('more rows', () => seen.size > 1500);
    await run.crash(0);
    await run.runToEnd();
    expect(seen.size).toBe(rows);
    expect(run.totals('numbers').deadLetters).toBe(0);
  });

  it('fails a row that user code throws on, replays it, and puts it into the dead-letter file in the end', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dead-'));
    let calls = 0;
    const numbers = spout({
      emits: { n: t.int32 },
      *read() {
        for (let n = 0; n < 50; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const picky = bolt({
      takes: { n: t.int32 },
      process({ n }) {
        if (n === 13) {
          calls++;
          throw new Error('thirteen');
        }
      },
    });
    const run = start(
      topology('poison', (b) => {
        b.bolt('picky', picky).shuffle(b.spout('numbers', numbers));
      }),
      { threads: 1, deadLetterDirectory: directory, settings: { 'replay.max-failures': 3 } },
    );
    await run.runToEnd();
    expect(calls).toBe(3);
    expect(run.totals('numbers')).toMatchObject({
      acked: 49,
      failed: 3,
      replayed: 2,
      deadLetters: 1,
      pending: 0,
    });
    expect(run.errors[0]!.error).toMatchObject({ code: 'USER_CODE_FAILED', message: 'thirteen' });
    const [file] = run.deadLetterFiles;
    expect(JSON.parse(readFileSync(file!, 'utf8').trim())).toMatchObject({
      component: 'numbers',
      row: { n: 13 },
      position: 14,
      failures: 3,
    });
  });

  it('reports what a row has wrong against its declaration', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dead-'));
    const numbers = spout({
      emits: { n: t.int32 },
      *read() {
        for (const [at, n] of [1, 2.5, Number.NaN, 4].entries()) yield { row: { n }, position: at + 1 };
        yield { row: {} as unknown as { n: number }, position: 9 };
      },
    });
    const run = start(
      topology('types', (b) => {
        b.bolt('sink', bolt({ takes: { n: t.int32 }, process() {} })).shuffle(b.spout('numbers', numbers));
      }),
      { threads: 1, deadLetterDirectory: directory, settings: { 'replay.max-failures': 1 } },
    );
    await run.runToEnd();
    expect(run.errors.map(({ error }) => error.code)).toEqual([
      'EMIT_TYPE_MISMATCH',
      'EMIT_TYPE_MISMATCH',
      'EMIT_FIELD_MISSING',
    ]);
    expect(run.errors[0]!.error.details.where).toContain('numbers');
    expect(run.totals('numbers')).toMatchObject({ acked: 2, deadLetters: 3 });
  });

  it('does not let a fast spout outrun a slow bolt without max.spout.pending', async () => {
    let highest = 0;
    const rows = 2000;
    const numbers = spout({
      emits: { n: t.int32 },
      *read() {
        for (let n = 0; n < rows; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const slow = bolt({
      takes: { n: t.int32 },
      async process() {
        await new Promise<void>((resolve) => setImmediate(resolve));
      },
    });
    const run = start(
      topology('slow', (b) => {
        b.bolt('slow', slow).shuffle(b.spout('numbers', numbers));
      }),
      {
        threads: 2,
        place: (component) => (component === 'numbers' ? 0 : 1),
        settings: { 'messaging.credit': 16, 'bolt.max-in-flight': 4, 'messaging.batch-rows': 4 },
      },
    );
    await run.until('the end', () => {
      highest = Math.max(highest, run.totals('numbers').pending);
      return run.totals('numbers').acked === rows;
    });
    // Credit, one batch that was being filled, one step of the spout's budget.
    expect(highest).toBeLessThan(16 + 4 + 300);
  });

  it('keeps the order per key in an async bolt, with several keys in flight at once', async () => {
    const done: string[] = [];
    let inFlight = 0;
    let most = 0;
    const numbers = spout({
      emits: { key: t.string, n: t.int32 },
      *read() {
        for (let n = 0; n < 60; n++) yield { row: { key: `k${n % 3}`, n }, position: n + 1 };
      },
    });
    const wait = bolt({
      takes: { key: t.string, n: t.int32 },
      emits: { key: t.string, n: t.int32 },
      async process({ key, n }, out) {
        most = Math.max(most, ++inFlight);
        for (let i = 0; i < (n * 7) % 5; i++) await new Promise<void>((resolve) => setImmediate(resolve));
        inFlight--;
        out.emit({ key, n });
      },
    });
    const sink = bolt({
      takes: { key: t.string, n: t.int32 },
      process({ key, n }) {
        done.push(`${key}:${n}`);
      },
    });
    const run = start(
      topology('order', (b) => {
        const waited = b.bolt('wait', wait).fields(b.spout('numbers', numbers), ['key']);
        b.bolt('sink', sink).shuffle(waited);
      }),
      { threads: 1 },
    );
    await run.runToEnd();
    for (const key of ['k0', 'k1', 'k2']) {
      const order = done.filter((text) => text.startsWith(key)).map((text) => Number(text.split(':')[1]));
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }
    expect(done).toHaveLength(60);
    expect(most).toBeGreaterThan(1);
  });

  it('refuses an emit after the call has ended', async () => {
    let code: unknown;
    const numbers = spout({
      emits: { n: t.int32 },
      *read() {
        yield { row: { n: 1 }, position: 1 };
      },
    });
    const late = bolt({
      takes: { n: t.int32 },
      emits: { n: t.int32 },
      process({ n }, out) {
        setImmediate(() => {
          try {
            out.emit({ n });
          } catch (error) {
            code = (error as { code?: unknown }).code;
          }
        });
      },
    });
    const run = start(
      topology('late', (b) => {
        b.bolt('late', late).shuffle(b.spout('numbers', numbers));
      }),
      { threads: 1 },
    );
    await run.runToEnd();
    await run.until('the late emit', () => code !== undefined);
    expect(code).toBe('EMIT_OUTSIDE_PROCESS');
  });

  it('acks trees whose rows were anchored by hand to several rows', async () => {
    const pairs: number[] = [];
    const numbers = spout({
      emits: { n: t.int32 },
      *read() {
        for (let n = 0; n < 40; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const pair = bolt({
      takes: { n: t.int32 },
      emits: { sum: t.int32 },
      manual: true,
      prepare() {
        let held: { n: number; anchor: Anchor } | undefined;
        return {
          process({ n }, out, anchor) {
            if (held === undefined) {
              held = { n, anchor };
              return;
            }
            out.emit({ sum: held.n + n }, { anchors: [held.anchor, anchor] });
            held.anchor.ack();
            anchor.ack();
            held = undefined;
          },
        };
      },
    });
    const again = bolt({
      takes: { sum: t.int32 },
      emits: { sum: t.int32 },
      process({ sum }, out) {
        out.emit({ sum });
        out.emit({ sum });
      },
    });
    const sink = bolt({
      takes: { sum: t.int32 },
      process({ sum }) {
        pairs.push(sum);
      },
    });
    const run = start(
      topology('pairs', (b) => {
        const summed = b.bolt('pair', pair).global(b.spout('numbers', numbers, { parallelism: 1 }));
        const doubled = b.bolt('again', again).shuffle(summed);
        b.bolt('sink', sink).shuffle(doubled);
      }),
      { threads: 2, place: (component) => (component === 'pair' || component === 'sink' ? 0 : 1) },
    );
    await run.runToEnd();
    expect(pairs).toHaveLength(40);
    expect(run.totals('numbers')).toMatchObject({ acked: 40, failed: 0, pending: 0 });
  });

  describe('cycles', () => {
    const cycle = (copies: number) => {
      const numbers = spout({
        emits: { n: t.int32 },
        *read() {
          for (let n = 0; n < 300; n++) yield { row: { n: 20 }, position: n + 1 };
        },
      });
      const down = bolt({
        inputs: { fresh: { n: t.int32 }, back: { n: t.int32 } },
        emits: { n: t.int32 },
        prepare() {
          const next = ({ n }: { readonly n: number }, out: { emit(row: { n: number }): void }): void => {
            if (n > 0) for (let i = 0; i < copies; i++) out.emit({ n: copies === 1 ? n - 1 : n });
          };
          return { process: { fresh: next, back: next } };
        },
      });
      return topology('cycle', (b) => {
        const source = b.spout('numbers', numbers);
        const looping = b.bolt('down', down, { parallelism: 2 });
        looping.on.fresh.shuffle(source).on.back.shuffle(looping);
      });
    };

    it('does not deadlock with tiny credits while at most one row goes back per row', async () => {
      const run = start(cycle(1), {
        threads: 2,
        settings: { 'messaging.credit': 2, 'messaging.batch-rows': 1 },
      });
      await run.runToEnd();
      expect(run.totals('numbers')).toMatchObject({ acked: 300, failed: 0 });
      expect(run.totals('down').executed).toBe(300 * 21);
    });

    it('ends a cycle that multiplies with CYCLE_OVERFLOW, and the tree fails', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'dead-'));
      const run = start(cycle(2), {
        threads: 1,
        deadLetterDirectory: directory,
        settings: { 'cycle.reserve': 64, 'replay.max-failures': 1 },
      });
      await run.until('an overflow', () => run.errors.some(({ error }) => error.code === 'CYCLE_OVERFLOW'));
      await run.until('a dead letter', () => run.totals('numbers').deadLetters > 0);
    });
  });
});

describe('executors of one thread', () => {
  const numbers = spout({
    emits: { n: t.int32 },
    *read({ index }, from?: number) {
      for (let n = from ?? 0; ; n++) yield { row: { n: n * 8 + index }, position: n + 1 };
    },
  });
  const slow = bolt({
    takes: { n: t.int32 },
    process() {
      const endMs = performance.now() + 0.01;
      while (performance.now() < endMs);
    },
  });
  const pass = bolt({
    takes: { n: t.int32 },
    emits: { n: t.int32 },
    process: ({ n }, out) => out.emit({ n }),
  });
  const even = (counts: readonly number[]): boolean => Math.min(...counts) > Math.max(...counts) / 3;

  it('take turns as spouts, so that none starves where receivers take fewer rows than all of them have', async () => {
    const definition = topology('spouts', (b) => {
      b.bolt('slow', slow).shuffle(b.spout('numbers', numbers, { parallelism: 3 }));
    });
    const run = start(definition, { threads: 1 });
    await run.until('rows', () => run.totals('slow').executed > 20_000);
    const emitted = run.book
      .all()
      .filter(({ isSpout }) => isSpout)
      .map(({ block }) => block.counters[C_EMITTED]!);
    expect(emitted).toHaveLength(3);
    expect(emitted).toSatisfy(even);
  });

  it('take turns as tasks of spout executors, whichever turns find room', async () => {
    const definition = topology('tasks', (b) => {
      b.bolt('slow', slow, { parallelism: 2 }).shuffle(
        b.spout('numbers', numbers, { parallelism: 2, tasks: 4 }),
      );
    });
    const run = start(definition, { threads: 1 });
    await run.until('rows', () => run.totals('slow').executed > 40_000);
    const emitted = run.book
      .all()
      .filter(({ isSpout }) => isSpout)
      .map(({ block }) => block.counters[C_EMITTED]!);
    expect(emitted).toHaveLength(4);
    expect(emitted).toSatisfy(even);
  });

  it('take turns as bolts of branches that meet', async () => {
    const definition = topology('branches', (b) => {
      const one = b.bolt('one', pass).shuffle(b.spout('first', numbers));
      const two = b.bolt('two', pass).shuffle(b.spout('second', numbers));
      b.bolt('slow', slow).shuffle(one).shuffle(two);
    });
    const run = start(definition, { threads: 1 });
    await run.until('rows', () => run.totals('slow').executed > 20_000);
    expect([run.totals('one').executed, run.totals('two').executed]).toSatisfy(even);
  });
});
