/** Cycles of the graph in real executor threads: they never overflow by themselves, never deadlock, and stay bounded. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { bolt, spout, t, topology, type Anchor } from '../topology/index.js';
import { CyclePressure } from './cycle-pressure.js';
import { ThreadHarness, type HarnessOptions } from './testing/thread-harness.js';

let harness: ThreadHarness | undefined;
afterEach(async () => {
  await harness?.close();
  expect(harness?.crashes ?? []).toEqual([]);
  harness = undefined;
});
const start = (definition: unknown, options: HarnessOptions): ThreadHarness =>
  (harness = new ThreadHarness(definition, options));

/** A row goes round `left` more times; all rows of a key meet in one task of each bolt. */
const ROW = { key: t.int32, left: t.int32 };
type Row = { readonly key: number; readonly left: number };
interface Out {
  emit(row: Row): void;
}
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const rounds = (rows: number, keyOf: (n: number) => number, left: number) =>
  spout({
    emits: ROW,
    *read({ index, count }, from?: number) {
      for (let n = from ?? index; n < rows; n += count)
        yield { row: { key: keyOf(n), left }, position: n + count };
    },
  });

/** A bolt of a cycle: `go` says what a row becomes. */
const member = (go: (row: Row, out: Out) => unknown) => bolt({ takes: ROW, emits: ROW, process: go });

const sendBack = ({ key, left }: Row, out: Out): void => {
  if (left > 0) out.emit({ key, left: left - 1 });
};

describe('a cycle whose bolts send back at most one row per row', () => {
  it('comes to its end without an overflow, whatever the skew, the threads, the credit and the speeds', async () => {
    const step = fc.record({
      parallelism: fc.integer({ min: 1, max: 4 }),
      style: fc.constantFrom('sync', 'sync', 'async', 'manual'),
      takesFresh: fc.boolean(),
    });
    const cases = fc.record({
      steps: fc.array(step, { minLength: 1, maxLength: 4 }),
      keys: fc.constantFrom(1, 1, 2, 50),
      rows: fc.integer({ min: 1, max: 400 }),
      left: fc.integer({ min: 0, max: 6 }),
      threads: fc.integer({ min: 1, max: 4 }),
      credit: fc.constantFrom(1, 5, 64, 8192),
      batchRows: fc.constantFrom(1, 64),
      sources: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(cases, async (one) => {
        const { steps, keys, rows, left, threads, credit, batchRows, sources } = one;
        const styles = {
          sync: member(sendBack),
          async: member(async (row, out) => {
            await tick();
            sendBack(row, out);
          }),
          manual: bolt({
            takes: ROW,
            emits: ROW,
            manual: true,
            // Acked late, by hand: the row sent back stands for the held one.
            async process({ key, left }, out, anchor) {
              await tick();
              if (left > 0) out.emit({ key, left: left - 1 }, { anchors: [anchor] });
              anchor.ack();
            },
          }),
        };
        const run = start(
          topology('cycle', (b) => {
            const source = b.spout(
              'source',
              rounds(rows, (n) => n % keys, left),
              { parallelism: sources },
            );
            const members = steps.map(({ parallelism, style }, i) =>
              b.bolt(`member${i}`, styles[style], { parallelism, tasks: parallelism }),
            );
            for (const [i, handle] of members.entries()) {
              handle.fields(members[(i + members.length - 1) % members.length]!, ['key']);
              if (i === 0 || steps[i]!.takesFresh) handle.fields(source, ['key']);
            }
          }),
          {
            threads,
            settings: {
              'cycle.reserve': 1,
              'messaging.credit': credit,
              'messaging.batch-rows': batchRows,
              'bolt.max-in-flight': 8,
            },
          },
        );
        await run.runToEnd();
        expect(run.errors).toEqual([]);
        expect(run.totals('source')).toMatchObject({ acked: rows, failed: 0, replayed: 0, pending: 0 });
        await run.close();
      }),
      { seed: 20_268, numRuns: Number(process.env['CYCLE_RUNS'] ?? 25) },
    );
  });

  it('holds a bounded number of rows although one bolt of it is slow and the source is fast', async () => {
    const rows = 4000;
    let inside = 0;
    let most = 0;
    const enter = member((row, out) => {
      if (row.left === 2) most = Math.max(most, ++inside);
      sendBack(row, out);
      if (row.left === 0) inside--;
    });
    const pass = member((row, out) => out.emit(row));
    const slow = member(async (row, out) => {
      if (row.key % 64 === 0) await tick();
      out.emit(row);
    });
    const run = start(
      topology('slow', (b) => {
        const source = b.spout(
          'source',
          rounds(rows, (n) => n, 2),
        );
        const first = b.bolt('enter', enter, { parallelism: 3 }).shuffle(source);
        const second = b.bolt('pass', pass, { parallelism: 3 }).shuffle(first);
        first.shuffle(b.bolt('slow', slow).global(second));
      }),
      {
        threads: 3,
        settings: {
          'cycle.reserve': 1,
          'messaging.credit': 64,
          'messaging.batch-rows': 16,
          'bolt.max-in-flight': 1,
        },
      },
    );
    await run.runToEnd();
    expect(run.errors).toEqual([]);
    expect(run.totals('source')).toMatchObject({ acked: rows, failed: 0 });
    expect(inside).toBe(0);
    // Some credits' worth for each pair of threads, and not all that the source would have sent.
    expect(most).toBeLessThan(rows / 4);
  });

  it('may keep several held rows for the one that they become', async () => {
    const pair = bolt({
      takes: ROW,
      emits: ROW,
      manual: true,
      prepare() {
        const held: { row: Row; anchor: Anchor }[] = [];
        return {
          process(row, out, anchor) {
            held.push({ row, anchor });
            if (held.length < 2) return;
            const pair = held.splice(0);
            const anchors = pair.map((one) => one.anchor);
            for (const one of pair)
              if (one.row.left > 0) out.emit({ key: one.row.key, left: one.row.left - 1 }, { anchors });
            for (const anchor of anchors) anchor.ack();
          },
        };
      },
    });
    for (const ackers of [1, 0]) {
      const run = start(
        topology('pairs', { 'topology.ackers': ackers }, (b) => {
          const paired = b.bolt('pair', pair).global(
            b.spout(
              'source',
              rounds(200, () => 0, 3),
            ),
          );
          paired.global(paired);
        }),
        { threads: 2, settings: { 'cycle.reserve': 1 } },
      );
      await run.until('all rows', () => run.totals('pair').executed === 200 * 4);
      expect(run.errors).toEqual([]);
      await run.close();
    }
  });
});

describe('a cycle that multiplies', () => {
  it('is refused beyond its reserve, also where another bolt of the cycle holds the rows, and stays bounded', async () => {
    const reserve = 100;
    const forward = member((row, out) => out.emit(row));
    const stuck = member(() => new Promise<void>(() => undefined));
    const run = start(
      topology('multiplies', (b) => {
        const source = b.spout(
          'source',
          rounds(1000, () => 0, 0),
        );
        // Each row of "split" goes on in the cycle and leaves another one behind in it.
        const first = b.bolt('split', forward).global(source);
        first.global(first).global(b.bolt('stuck', stuck).global(b.bolt('forward', forward).global(first)));
      }),
      {
        threads: 3,
        deadLetterDirectory: mkdtempSync(join(tmpdir(), 'dead-')),
        settings: { 'cycle.reserve': reserve, 'messaging.credit': 32, 'replay.max-failures': 1 },
      },
    );
    await run.until('an overflow', () => run.errors.some(({ error }) => error.code === 'CYCLE_OVERFLOW'));
    // Depths are told four times a second.
    await new Promise((resolve) => setTimeout(resolve, 800));
    expect(run.totals('stuck').queued).toBeGreaterThanOrEqual(reserve);
    expect(run.totals('stuck').queued).toBeLessThan(4 * reserve);
  });

  it.each([1, 2, 3])(
    'ends: its rows are given up and all others get through, on %i threads',
    async (threads) => {
      // Each fifth row becomes two without end; the others go round four times.
      const spread = member(({ key, left }, out) => {
        if (key % 5 === 0) for (const copy of [1, 2]) out.emit({ key: key + 5 * copy, left });
        else sendBack({ key, left }, out);
      });
      const run = start(
        topology('poisoned', (b) => {
          const first = b.bolt('first', spread, { parallelism: 3 });
          const second = b.bolt(
            'second',
            member((row, out) => out.emit(row)),
            { parallelism: 2 },
          );
          first
            .fields(
              b.spout(
                'source',
                rounds(100, (n) => n, 4),
              ),
              ['key'],
            )
            .fields(second.fields(first, ['key']), ['key']);
        }),
        {
          threads,
          deadLetterDirectory: mkdtempSync(join(tmpdir(), 'dead-')),
          settings: { 'cycle.reserve': 64, 'messaging.credit': 32, 'replay.max-failures': 2 },
        },
      );
      await run.runToEnd();
      expect(run.totals('source')).toMatchObject({ acked: 80, deadLetters: 20, pending: 0 });
    },
  );

  it('ends where a row has several anchors', async () => {
    const pair = bolt({
      takes: ROW,
      emits: ROW,
      manual: true,
      process(row, out, anchor: Anchor) {
        for (const copy of [1, 2]) out.emit({ key: row.key + copy, left: 0 }, { anchors: [anchor] });
        anchor.ack();
      },
    });
    const run = start(
      topology('woven', (b) => {
        const first = b.bolt('first', pair);
        first
          .global(
            b.spout(
              'source',
              rounds(10, (n) => n, 0),
            ),
          )
          .global(first);
      }),
      {
        threads: 1,
        deadLetterDirectory: mkdtempSync(join(tmpdir(), 'dead-')),
        settings: { 'cycle.reserve': 64, 'messaging.credit': 32, 'replay.max-failures': 1 },
      },
    );
    await run.runToEnd();
    expect(run.totals('source')).toMatchObject({ deadLetters: 10, pending: 0 });
  });

  it('may do so as long as others send nothing back', async () => {
    // Each row becomes two, five times over: 63 rows a tree, and never more than a few trees at once.
    const doubling = member(({ key, left }, out) => {
      if (left > 0) for (const side of [0, 1]) out.emit({ key: 2 * key + side, left: left - 1 });
    });
    const run = start(
      topology('doubling', (b) => {
        const first = b.bolt('doubling', doubling, { parallelism: 3 });
        first
          .fields(
            b.spout(
              'source',
              rounds(3000, (n) => n, 5),
            ),
            ['key'],
          )
          .fields(first, ['key']);
      }),
      { threads: 2, settings: { 'cycle.reserve': 4000, 'messaging.credit': 64 } },
    );
    await run.runToEnd();
    expect(run.errors).toEqual([]);
    expect(run.totals('doubling').executed).toBe(3000 * 63);
  });
});

describe('CyclePressure', () => {
  it('closes the gate while this thread holds many rows, or another does', () => {
    const pressure = new CyclePressure(100);
    expect([pressure.update(99), pressure.gate.blocked]).toEqual([false, false]);
    expect([pressure.update(100), pressure.gate.blocked]).toEqual([true, true]);
    expect([pressure.update(51), pressure.gate.blocked]).toEqual([false, true]);
    pressure.onOther(3, true);
    pressure.onOther(3, true);
    pressure.onOther(4, true);
    expect([pressure.update(50), pressure.isPressed, pressure.gate.blocked]).toEqual([true, false, true]);
    pressure.onOther(3, false);
    expect(pressure.gate.blocked).toBe(true);
    pressure.forget(4);
    expect(pressure.gate.blocked).toBe(false);
  });

  it('lets rows in again when there are none, however small its limit', () => {
    const pressure = new CyclePressure(1);
    pressure.update(1);
    expect(pressure.gate.blocked).toBe(true);
    pressure.update(0);
    expect(pressure.gate.blocked).toBe(false);
  });
});
