import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { RawSettings } from '../base/index.js';
import { bolt, spout, t, topology } from '../topology/index.js';
import { ThreadHarness, type HarnessOptions } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  harness = undefined;
});
const start = (definition: unknown, options: HarnessOptions): ThreadHarness =>
  (harness = new ThreadHarness(definition, options));

const ROWS = 6000;

/** Lives of tasks, to see that none is alive twice. */
class Lives {
  readonly alive = new Set<number>();
  readonly problems: string[] = [];
  starts = 0;

  begin(task: number): void {
    this.starts++;
    if (this.alive.has(task)) this.problems.push(`task ${task} is alive twice`);
    this.alive.add(task);
  }

  end(task: number): void {
    if (!this.alive.delete(task)) this.problems.push(`task ${task} ended twice`);
  }
}

/**
 * Numbers, counted by key with state that travels, gathered by key of their own. Each row says who sent it, so that its
 * order at the receiver can be checked.
 */
function counting(options: { isAsync?: boolean; rows?: number } = {}) {
  const rows = options.rows ?? ROWS;
  const lives = new Lives();
  /** Rows by receiving task of `gather` and sending task of `count`, in order of arrival. */
  const arrivals = new Map<string, number[]>();
  const counts = new Map<string, number>();
  const numbers = spout({
    emits: { n: t.int32, from: t.int32 },
    *read({ index, count }, from?: number) {
      for (let n = from ?? index; n < rows; n += count)
        yield { row: { n, from: index }, position: n + count };
    },
  });
  const count = bolt({
    takes: { n: t.int32, from: t.int32 },
    emits: { n: t.int32, by: t.int32, seen: t.int32 },
    prepare({ task }, saved?: Map<string, number>) {
      lives.begin(task);
      const own = saved ?? new Map<string, number>();
      let seen = own.get('seen') ?? 0;
      return {
        process({ n }, out) {
          own.set(`k${n % 13}`, (own.get(`k${n % 13}`) ?? 0) + 1);
          own.set('seen', ++seen);
          out.emit({ n, by: task, seen });
          return options.isAsync === true ? Promise.resolve() : undefined;
        },
        end() {
          for (const [key, total] of own) counts.set(`${task}/${key}`, total);
        },
        save: () => own,
        close: () => lives.end(task),
      };
    },
  });
  const gather = bolt({
    takes: { n: t.int32, by: t.int32, seen: t.int32 },
    prepare({ task }) {
      lives.begin(task);
      return {
        process({ by, seen }) {
          const key = `${by}→${task}`;
          const list = arrivals.get(key) ?? [];
          arrivals.set(key, list);
          list.push(seen);
        },
        save: () => undefined,
        close: () => lives.end(task),
      };
    },
  });
  const definition = topology('counting', (b) => {
    const source = b.spout('numbers', numbers, { parallelism: 2 });
    const counted = b.bolt('count', count, { parallelism: 2, tasks: 4 }).fields(source, ['n']);
    b.bolt('gather', gather, { parallelism: 2 }).fields(counted, ['n']);
  });
  const check = (run: ThreadHarness): void => {
    expect(run.errors).toEqual([]);
    expect(run.crashes).toEqual([]);
    expect(lives.problems).toEqual([]);
    let gathered = 0;
    for (const seen of arrivals.values()) {
      gathered += seen.length;
      expect(seen).toEqual([...seen].sort((a, b) => a - b));
    }
    expect(gathered).toBe(rows);
    let counted = 0;
    for (const [key, total] of counts) if (!key.endsWith('/seen')) counted += total;
    expect(counted).toBe(rows);
  };
  return { definition, lives, check };
}

async function moveUntilEnd(
  run: ThreadHarness,
  threads: number,
  tasks: readonly number[],
  isOver: () => boolean,
): Promise<number> {
  let moves = 0;
  for (let i = 0; !isOver(); i++) {
    const executed = run.totals('gather').executed;
    await run.until('progress', () => isOver() || run.totals('gather').executed > executed + 20);
    if (isOver()) break;
    const task = tasks[(i * 5) % tasks.length]!;
    const saved = await run.plannedMove(task, (run.book.get(task)!.thread + 1) % threads);
    // One that has ended stays.
    if ('kind' in saved && saved.kind !== 'failed') moves++;
  }
  return moves;
}

describe('a planned move', () => {
  const cases: { threads: number; settings?: RawSettings; isAsync?: boolean }[] = [
    { threads: 2 },
    { threads: 3, settings: { 'messaging.batch-rows': 1 } },
    { threads: 2, settings: { 'messaging.credit': 2, 'messaging.ring-bytes': 4096 } },
    { threads: 2, settings: { 'topology.max-spout-pending': 20 } },
    { threads: 3, isAsync: true },
    { threads: 2, settings: { 'topology.ackers': 0 } },
  ];
  it.each(cases)(
    'of bolts loses no row, repeats none, keeps state and order ($threads threads, $settings, async $isAsync)',
    async ({ threads, settings = {}, isAsync = false }) => {
      const rows = 'messaging.credit' in settings ? 3000 : 30_000;
      const { definition, lives, check } = counting({ isAsync, rows });
      const run = start(definition, { threads, settings });
      const bolts = run.book.all().filter(({ isSpout }) => !isSpout);
      const end = run.runToEnd();
      const moves = await moveUntilEnd(
        run,
        threads,
        bolts.map(({ task }) => task),
        () => run.totals('gather').executed >= rows - 500,
      );
      await end;
      check(run);
      expect(moves).toBeGreaterThan(3);
      expect(lives.starts).toBe(bolts.length + moves);
      expect(run.totals('numbers')).toMatchObject({ failed: 0, replayed: 0 });
      if (settings['topology.ackers'] !== 0) expect(run.totals('numbers').acked).toBe(rows);
    },
  );

  it('of spouts goes on behind what is done, and repeats nothing when its trees complete in time', async () => {
    const { definition, check } = counting();
    const run = start(definition, { threads: 2, settings: { 'messaging.credit': 32 } });
    const end = run.runToEnd();
    const spouts = run.book.all().filter(({ isSpout }) => isSpout);
    const moves = await moveUntilEnd(
      run,
      2,
      spouts.map(({ task }) => task),
      () => run.totals('gather').executed >= ROWS - 500,
    );
    await end;
    check(run);
    expect(moves).toBeGreaterThan(3);
    expect(run.totals('numbers')).toMatchObject({ acked: ROWS, failed: 0, replayed: 0 });
  });

  it('whose save fails leaves the task where it is, with its state and all rows', async () => {
    let fails = 0;
    let total = 0;
    const numbers = spout({
      emits: { n: t.int32 },
      *read(_context, from?: number) {
        for (let n = from ?? 0; n < 3000; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const sum = bolt({
      takes: { n: t.int32 },
      prepare() {
        let own = 0;
        return {
          process({ n }) {
            own += n;
          },
          end() {
            total += own;
          },
          save() {
            if (++fails % 2 === 1) throw new Error('no state today');
            return Promise.reject(new Error('nor tomorrow'));
          },
        };
      },
    });
    const run = start(
      topology('sum', (b) => {
        b.bolt('sum', sum).shuffle(b.spout('numbers', numbers));
      }),
      {
        threads: 2,
        settings: { 'messaging.credit': 16 },
        place: (component) => (component === 'sum' ? 1 : 0),
      },
    );
    const task = run.tasks.find(({ component }) => component === 'sum')!.first;
    const end = run.runToEnd();
    for (const message of ['no state today', 'nor tomorrow']) {
      const { executed } = run.totals('sum');
      await run.until('rows', () => run.totals('sum').executed > executed + 20);
      expect(await run.plannedMove(task, 0)).toMatchObject({ kind: 'failed', error: { message } });
    }
    await end;
    expect(total).toBe((3000 * 2999) / 2);
    expect(run.totals('numbers')).toMatchObject({ acked: 3000, failed: 0 });
  });

  it('whose new start fails goes back, with its state, and stops nobody else', async () => {
    let failures = 0;
    const starts: number[] = [];
    const picky = bolt({
      takes: { n: t.int32 },
      prepare({ task }, saved?: number) {
        starts.push(task);
        if (saved !== undefined && failures-- > 0) throw new Error('not here');
        let own = saved ?? 0;
        return {
          process() {
            own++;
          },
          save: () => own,
          end() {
            expect(own).toBe(2000);
          },
        };
      },
    });
    const numbers = spout({
      emits: { n: t.int32 },
      *read(_context, from?: number) {
        for (let n = from ?? 0; n < 2000; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const run = start(
      topology('picky', (b) => {
        b.bolt('picky', picky).shuffle(b.spout('numbers', numbers));
      }),
      {
        threads: 2,
        settings: { 'messaging.credit': 16 },
        place: (component) => (component === 'picky' ? 1 : 0),
      },
    );
    const task = run.tasks.find(({ component }) => component === 'picky')!.first;
    const end = run.runToEnd();
    await run.until('rows', () => run.totals('picky').executed > 20);
    failures = 1;
    expect(await run.plannedMove(task, 0)).toMatchObject({ code: 'USER_CODE_FAILED', message: 'not here' });
    await end;
    expect(run.errors).toEqual([]);
    expect(run.totals('numbers')).toMatchObject({ acked: 2000, failed: 0 });
    expect(starts.length).toBe(3);
  });

  it('fails as moved what is still in user code when its time is up, and the rows come again', async () => {
    const seen = new Map<number, number>();
    let hangs = true;
    const numbers = spout({
      emits: { n: t.int32 },
      *read(_context, from?: number) {
        for (let n = from ?? 0; n < 500; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const slow = bolt({
      takes: { n: t.int32 },
      prepare() {
        return {
          async process({ n }) {
            if (n === 100 && hangs) await new Promise(() => undefined);
            seen.set(n, (seen.get(n) ?? 0) + 1);
          },
          save: () => null,
        };
      },
    });
    const run = start(
      topology('slow', (b) => {
        b.bolt('slow', slow).shuffle(b.spout('numbers', numbers));
      }),
      { threads: 2, place: (component) => (component === 'slow' ? 1 : 0) },
    );
    const task = run.tasks.find(({ component }) => component === 'slow')!.first;
    const end = run.runToEnd();
    await run.until('the row that hangs', () => run.totals('slow').executed > 100);
    hangs = false;
    expect(await run.plannedMove(task, 0, 50)).toMatchObject({ kind: 'saved' });
    await end;
    expect(seen.size).toBe(500);
    expect(run.totals('numbers')).toMatchObject({ acked: 500, deadLetters: 0 });
    expect(run.totals('numbers').failed).toBeGreaterThan(0);
  });

  it('lets a manual bolt tick until it has let go of its rows, and waits for trees of ticks', async () => {
    let rows = 0;
    let ticks = 0;
    const numbers = spout({
      emits: { n: t.int32 },
      *read(_context, from?: number) {
        for (let n = from ?? 0; n < 8000; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const batch = bolt({
      takes: { n: t.int32 },
      emits: { size: t.int32 },
      every: '5ms',
      manual: true,
      prepare() {
        const held: { ack(): void }[] = [];
        return {
          process(_row, _out, anchor) {
            held.push(anchor);
          },
          tick(out) {
            if (held.length > 0) out.emit({ size: held.length });
            for (const anchor of held.splice(0)) anchor.ack();
          },
          save: () => held.length,
        };
      },
    });
    const sizes = bolt({
      takes: { size: t.int32 },
      process({ size }) {
        ticks++;
        rows += size;
      },
    });
    const run = start(
      topology('batches', (b) => {
        const batches = b.bolt('batch', batch).shuffle(b.spout('numbers', numbers));
        b.bolt('sizes', sizes).shuffle(batches);
      }),
      {
        threads: 2,
        settings: { 'messaging.credit': 64 },
        place: (component) => (component === 'batch' ? 1 : 0),
      },
    );
    const task = run.tasks.find(({ component }) => component === 'batch')!.first;
    const end = run.runToEnd();
    for (let to = 0; run.totals('batch').acked < 3000; to = 1 - to) {
      const { acked } = run.totals('batch');
      await run.until('rows', () => run.totals('batch').acked > acked);
      expect(await run.plannedMove(task, to)).toMatchObject({ kind: 'saved' });
    }
    await end;
    expect(run.totals('numbers')).toMatchObject({ acked: 8000, failed: 0 });
    expect(run.totals('batch')).toMatchObject({ failed: 0, pending: 0 });
    await pause(0);
    expect(rows).toBe(8000);
    expect(ticks).toBeGreaterThan(1);
  });

  it.each([
    { kind: 'position', wanted: 'keep' },
    { kind: 'id', wanted: 'keep' },
    { kind: 'position', wanted: 'go' },
    { kind: 'id', wanted: 'go' },
  ] as const)(
    'of a source loses no row that it pushes meanwhile ($kind, $wanted)',
    async ({ kind, wanted }) => {
      const seen = new Set<number>();
      const acked = new Set<unknown>();
      let fails = 0;
      /** What the outer world has said so far; a source that is opened later reads it from where it is told to. */
      let said = 0;
      let push = (): void => undefined;
      const pushing = spout({
        emits: { n: t.int32 },
        movable: true,
        open(_context, from?: number) {
          let at = from ?? 0;
          let emit = (_n: number): void => undefined;
          push = () => {
            while (at < said) emit(at++);
          };
          return {
            next(out) {
              emit = (n) => out.emit({ n }, kind === 'id' ? { id: n } : { id: n, position: n + 1 });
              push();
              return 'idle' as const;
            },
            ack: (id) => void acked.add(id),
            fail(id) {
              if (kind !== 'id') return;
              fails++;
              again.add(Number(id));
              emit(Number(id));
            },
          };
        },
      });
      const again = new Set<number>();
      const sink = bolt({ takes: { n: t.int32 }, process: ({ n }) => void seen.add(n) });
      const run = start(
        topology('pushed', (b) => {
          b.bolt('sink', sink).shuffle(b.spout('source', pushing));
        }),
        { threads: 2, place: (component) => (component === 'sink' ? 1 : 0) },
      );
      const say = (rows: number): void => {
        said += rows;
        push();
      };
      await run.until('the first row', () => {
        if (said === 0) say(1);
        return acked.size === 1;
      });
      const { task } = run.book.all().find(({ isSpout }) => isSpout)!;
      await run.plannedMove(task, 1, 1000, () => {
        say(20);
        return wanted;
      });
      if (kind === 'id' && wanted === 'go') {
        // Told once of each: whoever emits such a row at once, through a source that is being closed, is not asked again.
        await run.until('word of the rows', () => again.size === 20);
        expect(fails).toBe(20);
        return;
      }
      await run.until('all rows', () => seen.size === 21 && acked.size === 21);
      expect(run.errors).toEqual([]);
    },
  );

  it('of a source tells it of rows that it pushed in a move before, and that have found no receiver since', async () => {
    let lives = 0;
    let open = (): void => undefined;
    let push = (_n: number): void => undefined;
    const failed = new Set<unknown>();
    const acked = new Set<unknown>();
    const pushing = spout({
      emits: { n: t.int32 },
      movable: true,
      open: () => ({
        next(out) {
          push = (n) => out.emit({ n }, { id: n });
          return 'idle' as const;
        },
        ack: (id) => void acked.add(id),
        fail: (id) => void failed.add(id),
      }),
    });
    const sink = bolt({
      takes: { n: t.int32 },
      async prepare() {
        // It comes back only when the source is gone.
        if (++lives > 1) await new Promise<void>((resolve) => (open = resolve));
        return { process: () => undefined };
      },
    });
    const run = start(
      topology('pushed-twice', (b) => {
        b.bolt('sink', sink).shuffle(b.spout('source', pushing));
      }),
      { threads: 3, place: (component) => (component === 'sink' ? 1 : 0) },
    );
    await run.until('the first row', () => {
      if (acked.size === 0) push(0);
      return acked.has(0);
    });
    const { task } = run.book.all().find(({ isSpout }) => isSpout)!;
    let crashed: Promise<void> | undefined;
    await run.plannedMove(task, 2, 1000, () => {
      crashed = run.crash(1);
      for (let n = 100; n < 105; n++) push(n);
      return 'keep';
    });
    await crashed;
    await run.until('the replacement', () => lives === 2);
    await run.plannedMove(task, 2, 50);
    open();
    await run.until('word of the rows', () => failed.size === 5);
    expect([...failed].sort()).toEqual([100, 101, 102, 103, 104]);
  });

  it('of all tasks of a cycle loses no row', async () => {
    const rows = 800;
    const seen = new Map<number, number>();
    const numbers = spout({
      emits: { n: t.int32 },
      *read(_context, from?: number) {
        for (let n = from ?? 0; n < rows; n++) yield { row: { n }, position: n + 1 };
      },
    });
    const hop = bolt({
      inputs: { in: { n: t.int32 }, back: { n: t.int32, hops: t.int32 } },
      emits: { n: t.int32, hops: t.int32 },
      process: {
        in: ({ n }, out) => out.emit({ n, hops: 0 }),
        back: ({ n, hops }, out) => out.emit({ n, hops }),
      },
    });
    const turn = bolt({
      takes: { n: t.int32, hops: t.int32 },
      emits: { n: t.int32, hops: t.int32 },
      process({ n, hops }, out) {
        if (hops < 3) out.emit({ n, hops: hops + 1 });
        else seen.set(n, (seen.get(n) ?? 0) + 1);
      },
    });
    const run = start(
      topology('cycle', (b) => {
        const source = b.spout('numbers', numbers);
        const hops = b.bolt('hop', hop, { parallelism: 2 });
        hops.on.in.fields(source, ['n']);
        const turns = b.bolt('turn', turn, { parallelism: 2 }).fields(hops, ['n']);
        hops.on.back.fields(turns, ['n']);
      }),
      { threads: 2, settings: { 'messaging.credit': 8 } },
    );
    const bolts = run.book.all().filter(({ isSpout }) => !isSpout);
    const end = run.runToEnd();
    while (run.totals('turn').executed < 4 * rows - 400) {
      const { executed } = run.totals('turn');
      await run.until('rows', () => run.totals('turn').executed > executed + 20);
      await Promise.all(bolts.map(({ task }) => run.plannedMove(task, 1 - run.book.get(task)!.thread, 2000)));
    }
    await end;
    expect(run.errors).toEqual([]);
    expect(seen.size).toBe(rows);
    expect(run.totals('numbers')).toMatchObject({ acked: rows, deadLetters: 0 });
  });
});
