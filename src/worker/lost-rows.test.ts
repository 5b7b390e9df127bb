/** Rows that are nowhere: after a loss, and where a bug has lost them. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { bolt, spout, t, topology } from '../topology/index.js';
import { QuietWatch, type QuietAction } from './quiet-watch.js';
import { ThreadHarness } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  expect(harness?.crashes ?? []).toEqual([]);
  harness = undefined;
});

const ROW = { n: t.int32 };
const ten = spout({
  emits: ROW,
  *read(_context, from?: number) {
    for (let n = from ?? 0; n < 10; n++) yield { row: { n }, position: n + 1 };
  },
});

describe('rows that went with a thread', () => {
  it('are replayed soon also where the thread has its successor by the time that others hear of it', async () => {
    let lives = 0;
    const sink = bolt({
      takes: ROW,
      prepare() {
        const isFirst = ++lives === 1;
        return { process: () => (isFirst ? new Promise<void>(() => undefined) : undefined) };
      },
    });
    const run = (harness = new ThreadHarness(
      topology('at-once', (b) => {
        b.bolt('sink', sink).global(b.spout('ten', ten));
      }),
      {
        threads: 2,
        place: (component) => (component === 'ten' ? 0 : 1),
        // So long that a test that waits for it fails.
        settings: { 'replay.quiet-time': '10m', 'supervisor.worker-stop-timeout': 0 },
      },
    ));
    await run.until('a row in user code', () => run.totals('sink').executed === 1);
    expect(run.totals('ten')).toMatchObject({ acked: 0, pending: 10 });
    await run.crash(1, { atOnce: true });
    await run.until('all rows', () => run.totals('ten').acked === 10);
    expect(run.totals('ten')).toMatchObject({ replayed: 10, deadLetters: 0 });
  });
});

describe('rows that are emitted while their receiver is nowhere', () => {
  it.each(['position', 'id'] as const)(
    'come again when it is back: pushed by a source between its calls, with a %s',
    async (kind) => {
      let open = (): void => undefined;
      const isOpen = new Promise<void>((resolve) => {
        open = resolve;
      });
      let lives = 0;
      const seen = new Set<number>();
      const sink = bolt({
        takes: ROW,
        async prepare() {
          if (++lives > 1) await isOpen;
          return { process: ({ n }) => void seen.add(n) };
        },
      });
      let push = (_n: number): void => undefined;
      const acked = new Set<unknown>();
      const pushing = spout({
        emits: ROW,
        open: () => ({
          next(out) {
            push = (n) => out.emit({ n }, kind === 'id' ? { id: n } : { position: n + 1, id: n });
            return acked.size === 20 ? ('ended' as const) : ('idle' as const);
          },
          ack: (id) => void acked.add(id),
          fail: (id) => {
            // Whoever gives no position emits it again himself.
            if (kind === 'id') setTimeout(() => push(Number(id)), 5);
          },
        }),
      });
      const run = (harness = new ThreadHarness(
        topology('pushed', (b) => {
          b.bolt('sink', sink).global(b.spout('source', pushing));
        }),
        {
          threads: 2,
          place: (component) => (component === 'source' ? 0 : 1),
          settings: { 'replay.quiet-time': '10m' },
        },
      ));
      await run.until('a source', () => {
        push(0);
        return seen.size > 0;
      });
      await run.until('the first row', () => acked.size === 1);
      await run.crash(1);
      for (let n = 1; n < 20; n++) push(n);
      await pause(20);
      open();
      await run.runToEnd();
      expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n));
      expect(run.totals('source')).toMatchObject({ pending: 0, deadLetters: 0 });
    },
  );
});

describe('a tree whose rows are nowhere', () => {
  it('is replayed although ticks emit all the time, and healthy ones are not', async () => {
    let ticks = 0;
    const ticking = bolt({
      takes: ROW,
      emits: ROW,
      process() {},
      every: '5ms',
      tick: (out) => out.emit({ n: ++ticks }),
    });
    const run = (harness = new ThreadHarness(
      topology('ticking', (b) => {
        const beat = b.bolt('beat', ticking).global(b.spout('ten', ten));
        b.bolt('sink', bolt({ takes: ROW, process() {} })).global(beat);
      }),
      { threads: 1, settings: { 'topology.message-timeout': '50ms', 'replay.quiet-time': '100ms' } },
    ));
    const context = run.context(0);
    const ack = context.ack.bind(context);
    const root = run.tasks.find(({ component }) => component === 'ten')!.first;
    let isLost = false;
    context.ack = (...words) => {
      if (isLost || words[0] !== root) ack(...words);
      else isLost = true;
    };
    await run.until('the others', () => run.totals('ten').acked === 9);
    await pause(60);
    expect(run.totals('ten')).toMatchObject({ acked: 9, pending: 1 });
    run.suspect();
    await run.until('all rows', () => run.totals('ten').acked === 10);
    expect(run.totals('ten')).toMatchObject({ replayed: 1, deadLetters: 0 });
    expect(ticks).toBeGreaterThan(10);
  });
});

/** Workers that watch each other, as their main threads do: a step is a second, and an answer takes one. */
interface Seen {
  readonly busy: (second: number) => boolean;
  readonly progress: (second: number) => number;
}

function cluster(workers: readonly Seen[]) {
  const watches = workers.map(() => new QuietWatch(10_000));
  return (second: number, pendingTrees = 1): readonly QuietAction[] =>
    watches.map((watch, self) => {
      const nowMs = second * 1000;
      const { busy, progress } = workers[self]!;
      const seen = { busy: busy(second), progress: progress(second), pendingTrees };
      const peers = watches.map((_, i) => `w${i}`).filter((_, i) => i !== self);
      const action = watch.observe(nowMs, seen, peers);
      if (action === 'ask-peers')
        for (const [i, other] of watches.entries())
          if (i !== self) watch.onAnswer(`w${i}`, other.rest(nowMs), nowMs);
      return action;
    });
}

describe('workers that watch each other', () => {
  const still = { busy: () => false, progress: () => 5 };
  const ticking = { busy: () => false, progress: (second: number) => second };
  const sometimesBusy = { busy: (second: number) => second % 8 === 0, progress: () => 5 };
  const actions = (workers: Parameters<typeof cluster>[0], seconds: number): readonly QuietAction[][] => {
    const step = cluster(workers);
    const seen: QuietAction[][] = workers.map(() => []);
    for (let second = 0; second < seconds; second++)
      step(second).forEach((action, i) => seen[i]!.push(action));
    return seen;
  };

  it('give trees up when all have done nothing at all', () => {
    for (const seen of actions([still, still, still], 14)) {
      expect(seen).toContain('expire');
      expect(seen).not.toContain('suspect');
    }
  });

  it('suspect old trees when something is done in one of them, but none has ever been seen busy', () => {
    for (const seen of actions([still, ticking], 14)) {
      expect(seen).toContain('suspect');
      expect(seen).not.toContain('expire');
    }
  });

  it('neither suspect nor give up anything while one of them is busy now and then', () => {
    for (const seen of actions([still, ticking, sometimesBusy], 60)) {
      expect(seen).not.toContain('suspect');
      expect(seen).not.toContain('expire');
    }
  });

  it('do not go by what a peer said long ago', () => {
    const watch = new QuietWatch(10_000);
    const seen = { busy: false, progress: 5, pendingTrees: 1 };
    watch.observe(0, seen, ['silent']);
    watch.onAnswer('silent', { quietMs: 60_000, calmMs: 60_000 }, 1000);
    expect(watch.observe(11_000, seen, ['silent'])).toBe('ask-peers');
    watch.onAnswer('silent', { quietMs: 70_000, calmMs: 70_000 }, 11_500);
    expect(watch.observe(12_000, seen, ['silent'])).toBe('expire');
  });
});
