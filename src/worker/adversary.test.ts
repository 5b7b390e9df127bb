/**
 * Attempts to break the executor threads: what user code can do wrong, routes that change at bad moments, executors that
 * stop and start, and random graphs under random settings, placements and crashes. Seeded; every wait has a limit.
 */
import fs, { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  bolt,
  spout,
  t,
  topology,
  type Anchor,
  type StreamHandle,
  type TaskContext,
} from '../topology/index.js';
import { C_TREES } from './counters.js';
import { TaskBook } from './task-book.js';
import { QuietWatch, type Rest } from './quiet-watch.js';
import { ThreadHarness, type HarnessOptions } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  expect(harness?.crashes ?? []).toEqual([]);
  harness = undefined;
});
const start = (definition: unknown, options: HarnessOptions): ThreadHarness =>
  (harness = new ThreadHarness(definition, options));
const letters = (): string => mkdtempSync(join(tmpdir(), 'dead-'));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const ROW = { n: t.int32 };

const numbers = (rows: number) =>
  spout({
    emits: ROW,
    *read({ index, count }, from?: number) {
      for (let n = from ?? index; n < rows; n += count) yield { row: { n }, position: n + count };
    },
  });

const pass = bolt({
  takes: ROW,
  emits: ROW,
  process(row, out) {
    out.emit(row);
  },
});

const collect = (into: Map<number, number>) =>
  bolt({
    takes: ROW,
    process({ n }) {
      into.set(n, (into.get(n) ?? 0) + 1);
    },
  });

const ids = (rows: number): number[] => Array.from({ length: rows }, (_, n) => n);
const sorted = (values: Iterable<number>): number[] => [...values].sort((a, b) => a - b);

describe('manual bolts', () => {
  it('are told when they emit after they acked the row, and no tree is left without an end', async () => {
    const run = start(
      topology('late-emit', (b) => {
        const early = bolt({
          takes: ROW,
          emits: ROW,
          manual: true,
          process(row, out, anchor) {
            anchor.ack();
            out.emit(row);
          },
        });
        b.bolt('sink', collect(new Map())).shuffle(
          b.bolt('early', early).shuffle(b.spout('numbers', numbers(5))),
        );
      }),
      { threads: 2 },
    );
    await run.until('the end', () => run.totals('numbers').acked === 5, 3000);
    expect(run.errors[0]!.error.code).toBe('ANCHOR_MISUSED');
  });

  it('can go on after a joined emit that was refused: no edge of it is left behind', async () => {
    const held: Anchor[] = [];
    let refused = 0;
    const pairs = bolt({
      takes: ROW,
      emits: { text: t.string },
      manual: true,
      process({ n }, out, anchor) {
        held.push(anchor);
        if (n % 2 === 0) return;
        try {
          out.emit({ text: 'x'.repeat(200_000) }, { anchors: held });
        } catch {
          refused++;
        }
        for (const one of held.splice(0)) one.ack();
      },
    });
    const sink = bolt({ takes: { text: t.string }, process() {} });
    const run = start(
      topology('refused', (b) => {
        b.bolt('sink', sink).shuffle(b.bolt('pairs', pairs).shuffle(b.spout('numbers', numbers(20))));
      }),
      {
        threads: 2,
        place: (component) => (component === 'sink' ? 1 : 0),
        settings: { 'messaging.max-frame-bytes': 131_072 },
      },
    );
    await run.until('the end', () => run.totals('numbers').acked === 20, 3000);
    expect(refused).toBe(10);
    expect(run.totals('numbers').failed).toBe(0);
  });

  it('may still ack, fail and emit for rows that were held for too long, without hurting other rows', async () => {
    const seen = new Map<number, number>();
    let held: Anchor[] = [];
    let isLate = (): boolean => false;
    const batch = bolt({
      takes: ROW,
      emits: ROW,
      manual: true,
      every: '5ms',
      prepare() {
        return {
          process(_row, _out, anchor) {
            held.push(anchor);
          },
          async tick(out) {
            if (held.length < 4 || !isLate()) return;
            await turn();
            const now = held;
            held = [];
            for (const [i, anchor] of now.entries()) out.emit({ n: i }, { anchors: [anchor, now[0]!] });
            for (const anchor of now) anchor.ack();
          },
        };
      },
    });
    const run = start(
      topology('batch', (b) => {
        b.bolt('sink', collect(seen)).global(b.bolt('batch', batch).global(b.spout('numbers', numbers(8))));
      }),
      {
        threads: 2,
        settings: { 'topology.message-timeout': 1, 'replay.max-failures': 1 },
        deadLetterDirectory: letters(),
      },
    );
    isLate = () => run.totals('numbers').failed > 0;
    await run.until('some rows', () => isLate() && seen.size > 0, 3000);
    await pause(600);
    expect(run.errors).toEqual([]);
    expect(run.totals('numbers').deadLetters).toBe(0);
  });
});

describe('ticks and ends', () => {
  it('do not pile up and do not hang the end when their promise never settles', async () => {
    let ticks = 0;
    const stuck = bolt({
      takes: ROW,
      every: '1ms',
      prepare() {
        return {
          process() {},
          tick() {
            ticks++;
            return new Promise<void>(() => undefined);
          },
        };
      },
    });
    const run = start(
      topology('stuck-tick', (b) => {
        b.bolt('stuck', stuck).shuffle(b.spout('numbers', numbers(10)));
      }),
      { threads: 1, settings: { 'topology.message-timeout': 200 } },
    );
    await run.until('a tick', () => ticks > 0);
    await pause(50);
    expect(ticks).toBe(1);
    await run.runToEnd();
    expect(run.totals('stuck').pending).toBe(0);
    expect(run.totals('stuck').failed).toBeGreaterThan(0);
  });

  it.each([{ settings: {} }, { settings: { 'topology.ackers': 0 } }])(
    'arrive although the receiver of the last rows crashes at the end: $settings',
    async ({ settings }) => {
      const last = new Map<number, number>();
      const adder = bolt({
        takes: ROW,
        emits: ROW,
        prepare() {
          let sum = 0;
          return {
            process({ n }) {
              sum += n;
            },
            end(out) {
              for (let i = 0; i < 50; i++) out.emit({ n: sum + i });
            },
          };
        },
      });
      let firstLife = Infinity;
      const sink = bolt({
        takes: ROW,
        prepare({ generation }) {
          firstLife = Math.min(firstLife, generation);
          return {
            process({ n }) {
              if (generation === firstLife) return new Promise<void>(() => undefined);
              last.set(n, 1);
              return;
            },
          };
        },
      });
      const run = start(
        topology('end-loss', (b) => {
          const added = b.bolt('adder', adder).global(b.spout('numbers', numbers(100)));
          b.bolt('sink', sink).global(added);
          b.bolt('other', collect(new Map())).global(added);
        }),
        {
          threads: 2,
          place: (component) => (component === 'sink' || component === 'other' ? 1 : 0),
          settings: { 'replay.quiet-time': 20, ...settings },
        },
      );
      const end = run.runToEnd();
      await run.until('the rows of the end', () => run.totals('other').executed >= 50);
      await run.crash(1);
      await end;
      // Without acking nothing is repeated, but the end must come all the same.
      if (!('topology.ackers' in settings)) expect(sorted(last.keys())).toEqual(ids(50).map((i) => 4950 + i));
    },
  );

  it('of restarted tasks come although end marks were sent before they could take them', async () => {
    const run = start(
      topology('marks', (b) => {
        const source = b.spout('numbers', numbers(20));
        const mid = b.bolt('mid', pass, { parallelism: 2 }).shuffle(source);
        b.bolt('sink', collect(new Map()), { parallelism: 2 }).shuffle(mid).shuffle(source);
      }),
      {
        threads: 2,
        place: (component) => (component === 'numbers' ? 0 : 1),
        settings: { 'topology.ackers': 0 },
      },
    );
    await run.runToEnd();
    await run.crash(1);
    expect(run.totals('sink').ended).toBe(false);
    await run.until('the second end', () => run.totals('sink').ended && run.totals('mid').ended, 3000);
  });
});

describe('executors that stop and start', () => {
  it('give back the credit of rows that they had not taken', async () => {
    const seen = new Map<number, number>();
    let blocked = true;
    const slow = bolt({
      takes: ROW,
      async process({ n }) {
        while (blocked) await pause(1);
        seen.set(n, 1);
      },
    });
    const run = start(
      topology('move', (b) => {
        b.bolt('slow', slow, { parallelism: 2 }).fields(b.spout('numbers', numbers(200)), ['n']);
      }),
      {
        threads: 2,
        place: (component) => (component === 'numbers' ? 0 : 1),
        settings: {
          'messaging.credit': 4,
          'messaging.batch-rows': 1,
          'bolt.max-in-flight': 1,
          'replay.quiet-time': 20,
        },
      },
    );
    const tasks = run.tasks.find(({ component }) => component === 'slow')!;
    await run.until('a queue', () => run.totals('slow').queued >= 3, 3000);
    for (let i = 0; i < 4; i++) {
      await run.move(tasks.first);
      await run.move(tasks.last);
      await pause(10);
    }
    blocked = false;
    await run.until('the end', () => run.totals('numbers').acked === 200, 5000);
    expect(sorted(seen.keys())).toEqual(ids(200));
  });

  it('are not confused by acks for their former life when they start again in the same thread', async () => {
    const seen = new Map<number, number>();
    const lazy = bolt({
      takes: ROW,
      async process({ n }) {
        await pause(n % 5);
        seen.set(n, 1);
      },
    });
    const run = start(
      topology('again', (b) => {
        b.bolt('lazy', lazy, { parallelism: 2 }).shuffle(b.spout('numbers', numbers(400)));
      }),
      {
        threads: 2,
        place: (component) => (component === 'numbers' ? 0 : 1),
        settings: {
          'spout.position-interval': 1,
          'topology.max-spout-pending': 16,
          'replay.quiet-time': 1000,
        },
      },
    );
    const source = run.tasks.find(({ component }) => component === 'numbers')!.first;
    for (let i = 0; i < 8; i++) {
      const before = seen.size;
      await run.until('progress', () => seen.size > before + 10 || seen.size === 400, 3000);
      await run.move(source);
    }
    await run.until(
      'the end',
      () => run.totals('numbers').ended && run.totals('numbers').pending === 0 && seen.size === 400,
      5000,
    );
    // A tree whose sums were spoilt by a late ack would have waited for the quiet time.
    expect(run.totals('numbers').replayed).toBe(0);
  });

  it('take nothing before routes have told them where their rows go', async () => {
    const seen = new Map<number, number>();
    let released = false;
    const sluggish = bolt({
      takes: ROW,
      async prepare() {
        while (!released) await pause(1);
        return {
          process({ n }) {
            seen.set(n, 1);
          },
        };
      },
    });
    const run = start(
      topology('sluggish', (b) => {
        const mid = b.bolt('mid', pass).shuffle(b.spout('numbers', numbers(50)));
        b.bolt('sink', sluggish).shuffle(mid);
      }),
      { threads: 2, place: (component) => (component === 'numbers' ? 0 : 1) },
    );
    await pause(30);
    expect(run.totals('mid').executed).toBe(0);
    released = true;
    await run.runToEnd();
    expect(seen.size).toBe(50);
    expect(run.totals('numbers').replayed).toBe(0);
  });
});

describe('very many rows in flight', () => {
  it.each([
    { what: 'wait for one of their key', unordered: false },
    { what: 'have promises that settle together', unordered: true },
  ])('come to their end when they $what', async ({ unordered }) => {
    const rows = 100_000;
    let held = 0;
    let done = 0;
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const patient = bolt({
      takes: ROW,
      unordered,
      process({ n }) {
        held++;
        if (!unordered && n > 0) {
          done++;
          return undefined;
        }
        return gate.then(() => {
          done++;
        });
      },
    });
    const run = start(
      topology('patient', (b) => {
        b.bolt('patient', patient).global(b.spout('numbers', numbers(rows)));
      }),
      { threads: 1, settings: { 'bolt.max-in-flight': rows } },
    );
    await run.until('all of them in flight', () =>
      unordered ? held === rows : run.totals('numbers').ended && run.totals('patient').queued === rows,
    );
    expect(done).toBe(0);
    release();
    await run.runToEnd();
    expect(done).toBe(rows);
    expect(run.totals('numbers')).toMatchObject({ acked: rows, failed: 0 });
  });
});

describe('spouts', () => {
  it.each([1n, new Map([['p', 1]]), Number.NaN])(
    'are told of a position that no disk holds (%#), and read again',
    async (illegal) => {
      let reads = 0;
      const source = spout({
        emits: ROW,
        *read(_context: TaskContext, from?: unknown) {
          expect(from).toBeUndefined();
          yield { row: { n: 1 }, position: reads++ === 0 ? illegal : 1 };
        },
      });
      const run = start(
        topology('positions', (b) => {
          b.bolt('sink', bolt({ takes: ROW, process() {} })).shuffle(b.spout('source', source));
        }),
        { threads: 1 },
      );
      await run.runToEnd();
      expect(run.errors.map(({ error }) => error.code)).toEqual(['SPOUT_POSITION_ILLEGAL']);
      expect(run.totals('source')).toMatchObject({ acked: 1 });
    },
  );

  it('of the low level store positions behind a row that was refused, and may emit outside next', async () => {
    const source = spout({
      emits: ROW,
      open() {
        let n = 0;
        let over = false;
        return {
          next(out) {
            if (over) return 'ended' as const;
            if (n === 0) {
              expect(() => out.emit({ n: 0.5 }, { position: 0 })).toThrow(/int32/u);
              out.emit({ n: n++ }, { position: 1 });
              setTimeout(() => {
                for (; n < 10; n++) out.emit({ n }, { position: n + 1 });
                over = true;
              }, 10);
            }
            return 'idle' as const;
          },
        };
      },
    });
    const seen = new Map<number, number>();
    const run = start(
      topology('outside', (b) => {
        b.bolt('sink', collect(seen)).shuffle(b.spout('source', source));
      }),
      { threads: 2, settings: { 'spout.position-interval': 1 } },
    );
    await run.runToEnd();
    expect(sorted(seen.keys())).toEqual(ids(10));
    await run.until('the last position', () =>
      [...run.storedPositions.values()].some(({ position }) => position === 10),
    );
  });

  it('do not keep more rows than their limit while dead letters cannot be written', async () => {
    const directory = letters();
    const broken = bolt({
      takes: ROW,
      process() {
        throw new Error('all wrong');
      },
    });
    const run = start(
      topology('full-disk', (b) => {
        b.bolt('broken', broken).shuffle(b.spout('numbers', numbers(5000)));
      }),
      {
        threads: 1,
        // Not a directory: every write fails.
        deadLetterDirectory: join('/dev/null', directory),
        settings: { 'topology.max-spout-pending': 20, 'replay.max-failures': 1 },
      },
    );
    await run.until('failures', () => run.totals('numbers').failed >= 20, 3000);
    await pause(50);
    expect(run.totals('numbers').pending).toBeLessThanOrEqual(21);
  });
});

describe('dead letters in mass', () => {
  it.each([1, 2])('wait for the disk together, over %i threads', async (threads) => {
    const syncs = vi.spyOn(fs, 'fsyncSync');
    const sink = bolt({
      takes: ROW,
      process() {
        throw new Error('no row is good enough');
      },
    });
    const run = start(
      topology('mass', (b) => {
        b.bolt('sink', sink).shuffle(b.spout('numbers', numbers(1000)));
      }),
      { threads, deadLetterDirectory: letters(), settings: { 'replay.max-failures': 1 } },
    );
    await run.runToEnd();
    expect(run.totals('numbers')).toMatchObject({ deadLetters: 1000, pending: 0 });
    const [file] = run.deadLetterFiles;
    expect(readFileSync(file!, 'utf8').trim().split('\n')).toHaveLength(1000);
    expect(syncs.mock.calls.length).toBeLessThan(500);
    syncs.mockRestore();
  });
});

describe('a dead letter', () => {
  it('says in which component it failed, and what was thrown there if that is in the thread of its spout', async () => {
    const fails = bolt({
      takes: ROW,
      process({ n }) {
        if (n === 3) throw new RangeError('three is too many');
      },
    });
    const errors: unknown[] = [];
    for (const thread of [0, 1]) {
      const directory = letters();
      const run = start(
        topology('letters', (b) => {
          b.bolt('fails', fails).shuffle(b.spout('numbers', numbers(5)));
        }),
        {
          threads: 2,
          deadLetterDirectory: directory,
          settings: { 'replay.max-failures': 1 },
          place: (component) => (component === 'fails' ? thread : 0),
        },
      );
      await run.runToEnd();
      const [file] = readdirSync(directory);
      const letter = JSON.parse(readFileSync(join(directory, file!), 'utf8')) as Record<string, unknown>;
      expect(letter).toMatchObject({ component: 'numbers', failingComponent: 'fails', reason: 'user' });
      errors.push(letter['error']);
      await run.close();
    }
    expect(errors).toEqual([expect.objectContaining({ message: 'three is too many' }), undefined]);
  });
});

describe('crashes and suspicion', () => {
  it('blame only the row behind the crash, not that of another task in the same thread', async () => {
    const seen = new Map<number, number>();
    let poisoned = 0;
    const sink = bolt({
      takes: ROW,
      process({ n }) {
        if (n === 10) poisoned++;
        seen.set(n, (seen.get(n) ?? 0) + 1);
        return n === 10 ? new Promise<void>(() => undefined) : undefined;
      },
    });
    const run = start(
      topology('poison', (b) => {
        b.bolt('sink', sink, { parallelism: 2 }).shuffle(b.spout('numbers', numbers(60), { parallelism: 2 }));
      }),
      {
        threads: 1,
        deadLetterDirectory: letters(),
        settings: { 'spout.position-interval': 1, 'replay.max-failures': 2 },
      },
    );
    for (let life = 0; life < 12 && run.totals('numbers').deadLetters === 0; life++) {
      const before = poisoned;
      await run.until('the poison', () => poisoned > before || run.totals('numbers').deadLetters > 0, 3000);
      if (run.totals('numbers').deadLetters === 0) await run.crash(0);
    }
    await run.runToEnd();
    expect(run.totals('numbers').deadLetters).toBe(1);
    expect(sorted(seen.keys())).toEqual(ids(60));
  });
});

/** Mulberry32: small, seeded, good enough to choose test cases. */
function chance(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Style = 'sync' | 'async' | 'manual' | 'join' | 'cycle';

/** Sends each row four times around its own cycle. */
const loop = (see: (n: number) => void) =>
  bolt({
    inputs: { fresh: ROW, back: { n: t.int32, left: t.int32 } },
    emits: ROW,
    streams: { back: { n: t.int32, left: t.int32 } },
    process: {
      fresh({ n }, out) {
        see(n);
        out.emit({ n });
        out.to.back({ n, left: 3 });
      },
      back({ n, left }, out) {
        if (left > 0) out.to.back({ n, left: left - 1 });
      },
    },
  });

/**
 * A graph of layers with diamonds, cycles, joins of several anchors and copies to all tasks. `trip` is called before a bolt
 * takes note of a row, and may throw.
 */
function randomCase(
  seed: number,
  trip: (bolt: string, n: number) => void = () => undefined,
  styles: readonly Style[] = ['sync', 'sync', 'async', 'manual', 'join', 'cycle'],
) {
  const random = chance(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Value>(...values: readonly Value[]): Value => values[below(values.length)]!;
  const rows = 60 + below(200);
  const threads = 1 + below(3);
  const spoutTasks = 1 + below(2);
  const bolts = Array.from({ length: 1 + below(5) }, (_, i) => ({
    name: `b${i}`,
    style: pick(...styles),
    tasks: 1 + below(3),
    inputs: [...new Set([below(i + 1), below(i + 1)])].map((from) => ({
      from: from - 1,
      grouping: pick('shuffle', 'fields', 'all', 'global', 'local'),
    })),
  }));
  const settings = {
    'messaging.credit': pick(1, 1, 2, 7, 2048),
    'messaging.batch-rows': pick(1, 3, 256),
    'messaging.ring-bytes': pick(4096, 65_536),
    'bolt.max-in-flight': pick(1, 2, 64),
    'topology.max-spout-pending': pick(1, 5, 1000, 1_000_000),
    'replay.quiet-time': 20,
    'spout.position-interval': 1,
    'replay.max-failures': 3,
  };
  const seen = new Map<string, Map<number, number>>();
  const definition = topology(`random-${seed}`, (b) => {
    const source = b.spout('source', numbers(rows), { parallelism: spoutTasks });
    const handles: StreamHandle<typeof ROW>[] = [];
    for (const { name, style, tasks, inputs } of bolts) {
      // The graph is built once per thread; what its bolts see is gathered over all of them.
      const mine = seen.get(name) ?? new Map<number, number>();
      seen.set(name, mine);
      const see = (n: number): void => {
        trip(name, n);
        mine.set(n, (mine.get(n) ?? 0) + 1);
      };
      const made = {
        sync: bolt({
          takes: ROW,
          emits: ROW,
          process({ n }, out) {
            see(n);
            out.emit({ n });
          },
        }),
        async: bolt({
          takes: ROW,
          emits: ROW,
          async process({ n }, out) {
            see(n);
            if (n % 3 > 0) await turn();
            out.emit({ n });
            if (n % 3 > 1) await turn();
          },
        }),
        manual: bolt({
          takes: ROW,
          emits: ROW,
          manual: true,
          async process({ n }, out, anchor) {
            see(n);
            out.emit({ n });
            if (n % 2 > 0) await turn();
            anchor.ack();
          },
        }),
        join: bolt({
          takes: ROW,
          emits: ROW,
          manual: true,
          every: '3ms',
          prepare() {
            let held: { n: number; anchor: Anchor }[] = [];
            const flush = (out: {
              emit(row: { n: number }, options: { anchors: readonly Anchor[] }): void;
            }): void => {
              const anchors = held.map(({ anchor }) => anchor);
              for (const { n } of held) out.emit({ n }, { anchors });
              for (const anchor of anchors) anchor.ack();
              held = [];
            };
            return {
              process({ n }, out, anchor) {
                see(n);
                held.push({ n, anchor });
                if (held.length === 3) flush(out);
              },
              tick: flush,
            };
          },
        }),
      }[style === 'cycle' ? 'sync' : style];
      if (style === 'cycle') {
        const handle = b.bolt(name, loop(see), { parallelism: tasks });
        handle.on.back.fields(handle.streams.back, ['n']);
        for (const { from, grouping } of inputs) {
          const upstream = from < 0 ? source : handles[from]!;
          const input = handle.on.fresh;
          if (grouping === 'shuffle') input.shuffle(upstream);
          else if (grouping === 'fields') input.fields(upstream, ['n']);
          else if (grouping === 'all') input.all(upstream);
          else if (grouping === 'global') input.global(upstream);
          else input.localOrShuffle(upstream);
        }
        handles.push(handle);
        continue;
      }
      const handle = b.bolt(name, made, { parallelism: tasks });
      for (const { from, grouping } of inputs) {
        const upstream = from < 0 ? source : handles[from]!;
        if (grouping === 'shuffle') handle.shuffle(upstream);
        else if (grouping === 'fields') handle.fields(upstream, ['n']);
        else if (grouping === 'all') handle.all(upstream);
        else if (grouping === 'global') handle.global(upstream);
        else handle.localOrShuffle(upstream);
      }
      handles.push(handle);
    }
  });
  const copies: number[] = [];
  for (const { tasks, inputs } of bolts) {
    copies.push(
      inputs.reduce(
        (sum, { from, grouping }) => sum + (from < 0 ? 1 : copies[from]!) * (grouping === 'all' ? tasks : 1),
        0,
      ),
    );
  }
  const place = (): number => below(threads);
  return { rows, threads, bolts, settings, seen, definition, copies, place, below };
}

describe('trees whose rows are nowhere', () => {
  it('fail as timed out and are replayed once the whole topology has been quiet', async () => {
    const run = start(
      topology('lost', (b) => {
        b.bolt('sink', collect(new Map())).shuffle(b.spout('numbers', numbers(10)));
      }),
      { threads: 2, settings: { 'topology.message-timeout': 20 }, place: (id) => (id === 'sink' ? 1 : 0) },
    );
    const context = run.context(1);
    const ack = context.ack.bind(context);
    let lost = 0;
    context.ack = (...words) => {
      if (lost++ > 0) ack(...words);
    };
    await run.until('all but one', () => run.totals('numbers').acked === 9);
    await pause(50);
    expect(run.totals('numbers').pending).toBe(1);
    run.expire();
    await run.runToEnd();
    expect(run.totals('numbers')).toMatchObject({ acked: 10, failed: 1, replayed: 1, deadLetters: 0 });
  });

  it('are given up only when every peer has been quiet as well', () => {
    const watch = new QuietWatch(1000);
    const rest = (ms: number): Rest => ({ quietMs: ms, calmMs: ms });
    const still = { progress: 5, busy: false, pendingTrees: 1 };
    expect(watch.observe(0, still, [])).toBe('none');
    expect(watch.observe(900, still, ['a'])).toBe('none');
    expect(watch.observe(1000, still, ['a', 'b'])).toBe('ask-peers');
    watch.onAnswer('a', rest(5000), 1100);
    watch.onAnswer('b', rest(400), 1100);
    expect(watch.observe(2000, still, ['a', 'b'])).toBe('ask-peers');
    watch.onAnswer('b', rest(1400), 2100);
    expect(watch.observe(3000, { ...still, pendingTrees: 0 }, ['a', 'b'])).toBe('none');
    expect(watch.observe(3000, still, ['a', 'b'])).toBe('expire');
    expect(watch.observe(3500, still, ['a', 'b'])).toBe('none');
    expect(watch.observe(4000, { ...still, busy: true }, [])).toBe('none');
    expect(watch.observe(4500, still, [])).toBe('none');
    expect(watch.rest(4600)).toEqual(rest(600));
    // Something was done, and yet nothing was ever seen waiting.
    expect(watch.observe(5000, { ...still, progress: 6 }, [])).toBe('suspect');
  });
});

describe('a crash of a thread', () => {
  it('is held against tasks that had rows out, and not against those that were being prepared', () => {
    const book = new TaskBook();
    const tasks = [3, 4].map((task) => book.add(task, 'source', true, 0));
    book.noteCrash(0);
    tasks[1]!.block.counters[C_TREES] = 1;
    book.noteCrash(0);
    book.resetDepths(0);
    book.noteCrash(0);
    expect(tasks.map(({ crashes }) => crashes)).toEqual([0, 1]);
  });
});

describe('random graphs', () => {
  const SEED = Number(process.env['ADVERSARY_SEED'] ?? 1);
  const COUNT = Number(process.env['ADVERSARY_COUNT'] ?? 24);

  it.each(ids(COUNT).map((i) => SEED + i))(
    'come to their end with every row counted right (seed %i)',
    async (seed) => {
      const { rows, threads, bolts, settings, seen, definition, copies, place } = randomCase(seed);
      const run = start(definition, { threads, settings, place });
      await run.runToEnd();
      expect(run.errors).toEqual([]);
      expect(run.totals('source')).toMatchObject({
        acked: rows,
        failed: 0,
        replayed: 0,
        deadLetters: 0,
        pending: 0,
      });
      for (const [i, { name }] of bolts.entries()) {
        expect(sorted(seen.get(name)!.keys())).toEqual(ids(rows));
        expect(new Set(seen.get(name)!.values())).toEqual(new Set([copies[i]]));
      }
    },
  );

  it.each(ids(COUNT).map((i) => SEED + 1000 + i))('lose no row to crashes (seed %i)', async (seed) => {
    const { rows, threads, bolts, settings, seen, definition, place, below } = randomCase(seed);
    const run = start(definition, { threads, settings, place, deadLetterDirectory: letters() });
    let isOver = false;
    const end = run.runToEnd().finally(() => {
      isOver = true;
    });
    const executed = (): number => bolts.reduce((sum, { name }) => sum + run.totals(name).executed, 0);
    for (let crashes = 1 + below(4); crashes > 0; crashes--) {
      const limit = executed() + below(rows);
      await run.until('progress', () => executed() >= limit || isOver, 10_000);
      if (below(3) > 0) await run.crash(below(threads));
      else {
        const tasks = run.book.all();
        await run.move(tasks[below(tasks.length)]!.task, below(threads));
      }
    }
    await end;
    expect(run.errors).toEqual([]);
    expect(run.totals('source')).toMatchObject({ deadLetters: 0, pending: 0 });
    for (const { name } of bolts) expect(sorted(seen.get(name)!.keys())).toEqual(ids(rows));
  });

  it.each(ids(COUNT).map((i) => SEED + 2000 + i))(
    'ack or dead-letter every row whatever fails, moves and crashes together (seed %i)',
    async (seed) => {
      const random = chance(seed + 1);
      const tripped = new Set<string>();
      const poison = new Set<number>();
      // Most flaws are gone when the row comes again; those of poison are not.
      const trip = (name: string, n: number): void => {
        const draw = chance(seed ^ Math.imul(n + 1, 7919) ^ name.charCodeAt(1))();
        if (draw < 0.02) poison.add(n);
        else if (draw > 0.1 || tripped.has(`${name}/${n}`)) return;
        tripped.add(`${name}/${n}`);
        throw new Error(`${name} does not like ${n}`);
      };
      const { rows, threads, bolts, settings, seen, definition, place, below } = randomCase(seed, trip);
      const directory = letters();
      const run = start(definition, {
        threads,
        settings: { ...settings, 'replay.max-failures': 8 },
        place,
        deadLetterDirectory: directory,
      });
      let isOver = false;
      const end = run.runToEnd().finally(() => {
        isOver = true;
      });
      const executed = (): number => bolts.reduce((sum, { name }) => sum + run.totals(name).executed, 0);
      for (let faults = 1 + below(6); faults > 0; faults--) {
        const limit = executed() + below(rows);
        await run.until('progress', () => executed() >= limit || isOver, 10_000);
        const tasks = run.book.all();
        const { task } = tasks[below(tasks.length)]!;
        const draw = random();
        if (draw < 0.3) await run.crash(below(threads), { atOnce: random() < 0.5 });
        else if (draw < 0.5) await run.move(task, below(threads));
        else await run.plannedMove(task, below(threads), random() < 0.5 ? 5 : 1000);
      }
      await end;
      expect(run.totals('source').pending).toBe(0);
      const put = new Set<number>();
      for (const file of run.deadLetterFiles)
        for (const line of readFileSync(file, 'utf8').trim().split('\n'))
          put.add((JSON.parse(line) as { row: { n: number } }).row.n);
      // Rows that are joined share their fate; no other healthy row is given up.
      const isJoined = bolts.some(({ style }) => style === 'join');
      expect(sorted(put).filter((n) => !isJoined || poison.has(n))).toEqual(sorted(poison));
      const healthy = ids(rows).filter((n) => !put.has(n));
      for (const { name } of bolts)
        expect(sorted(seen.get(name)!.keys()).filter((n) => !put.has(n))).toEqual(healthy);
    },
  );

  it.each(ids(COUNT).map((i) => SEED + 3000 + i))(
    'come to their end without acking, and no planned move loses or repeats a row (seed %i)',
    async (seed) => {
      const random = chance(seed + 1);
      const styles: Style[] = ['sync', 'async', 'manual'];
      const made = randomCase(seed, undefined, styles);
      const { rows, threads, bolts, settings, seen, definition, copies, place, below } = made;
      const run = start(definition, { threads, settings: { ...settings, 'topology.ackers': 0 }, place });
      let isOver = false;
      const end = run.runToEnd().finally(() => {
        isOver = true;
      });
      const executed = (): number => bolts.reduce((sum, { name }) => sum + run.totals(name).executed, 0);
      const mayLose = random() < 0.4;
      for (let faults = 1 + below(6); faults > 0; faults--) {
        const limit = executed() + below(rows);
        await run.until('progress', () => executed() >= limit || isOver, 10_000);
        const tasks = run.book.all();
        const { task } = tasks[below(tasks.length)]!;
        if (mayLose && random() < 0.4) await run.crash(below(threads), { atOnce: random() < 0.5 });
        else if (mayLose && random() < 0.3) await run.move(task, below(threads));
        else await run.plannedMove(task, below(threads), 5000);
      }
      await end;
      expect(run.errors).toEqual([]);
      if (mayLose) return;
      for (const [i, { name }] of bolts.entries()) {
        expect(sorted(seen.get(name)!.keys())).toEqual(ids(rows));
        expect(new Set(seen.get(name)!.values())).toEqual(new Set([copies[i]]));
      }
    },
  );
});
