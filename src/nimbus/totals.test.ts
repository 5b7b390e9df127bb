import { describe, expect, it } from 'vitest';
import type { ReportedError, WorkerHeartbeat } from '../coordination/index.js';
import { TotalsBook } from './totals.js';

function heartbeat(
  workerId: string,
  generation: number,
  sequence: number,
  acked: number,
  port = 1,
): WorkerHeartbeat {
  return {
    workerId,
    topologyId: 't',
    supervisorId: 's',
    port,
    generation,
    pid: 1,
    startedMs: 0,
    assignmentVersion: 1,
    ready: true,
    sequence,
    cpuMicros: 0,
    rssBytes: 0,
    threads: [],
    tasks: [
      {
        task: 1,
        component: 'lines',
        emitted: acked,
        transferred: acked,
        executed: 0,
        acked,
        failed: 0,
        replayed: 0,
        deadLetters: 0,
        unreplayable: 0,
        queued: 0,
        pending: 5,
        ended: false,
        stopped: false,
        generation,
      },
    ],
    components: [
      {
        component: 'lines',
        executeMicros: [],
        completeMicros: [[3, acked]],
        failures: { user: 1 },
        replays: {},
        counters: { seen: acked },
      },
    ],
    errors: [],
    lostStates: [],
    oldestPending: null,
    deadLetterFiles: [`${workerId}.jsonl`],
  };
}

const acked = (book: TotalsBook): number => book.components()[0]?.acked ?? 0;

describe('TotalsBook', () => {
  it('adds up the lives of a worker', () => {
    const book = new TotalsBook();
    expect(book.note(heartbeat('a', 1, 1, 10))).toBe('new-worker');
    expect(book.note(heartbeat('a', 1, 2, 20))).toBe('updated');
    expect(book.note(heartbeat('b', 2, 1, 3))).toBe('new-worker');
    expect(book.components()[0]).toMatchObject({
      acked: 23,
      completeMicros: [[3, 23]],
      failures: { user: 2 },
      counters: { seen: 23 },
    });
    expect(book.deadLetterFiles()).toEqual(['a.jsonl', 'b.jsonl']);
  });

  it('counts a report that comes twice, or late, once', () => {
    const book = new TotalsBook();
    book.note(heartbeat('a', 1, 2, 20));
    expect(book.note(heartbeat('a', 1, 2, 20))).toBe('stale');
    expect(book.note(heartbeat('a', 1, 1, 10))).toBe('stale');
    expect(acked(book)).toBe(20);
  });

  it('never goes backwards over a hundred restarts, nor when a folded worker speaks late', () => {
    const book = new TotalsBook();
    let before = 0;
    for (let generation = 1; generation <= 100; generation++) {
      book.note(heartbeat(`w${generation}`, generation, 1, 7));
      expect(acked(book)).toBe(before + 7);
      before = acked(book);
    }
    expect(book.note(heartbeat('w1', 1, 9, 7000))).toBe('stale');
    expect(acked(book)).toBe(700);
    expect(book.stored().workers.length).toBeLessThan(50);
  });

  it('never folds a worker that is the last of its slot', () => {
    const book = new TotalsBook();
    for (let port = 1; port <= 200; port++) book.note(heartbeat(`p${port}`, port, 1, 1, port));
    for (let port = 1; port <= 200; port++) {
      expect(book.note(heartbeat(`p${port}`, port, 2, 2, port))).toBe('updated');
    }
    expect(acked(book)).toBe(400);
  });

  it('counts errors of one place in the code together, whatever row their messages name and whichever worker had them', () => {
    const book = new TotalsBook();
    const failure = (row: number, line: number, lastMs: number): ReportedError => ({
      component: 'count',
      task: row,
      error: {
        code: 'USER_CODE_FAILED',
        message: `row ${row}`,
        details: {},
        stack: `Error: row ${row}\n    at process (app.ts:${line}:1)\n    at later (app.ts:${row}:1)`,
      },
      count: row,
      firstMs: lastMs - 1,
      lastMs,
    });
    book.note({ ...heartbeat('a', 1, 1, 0), errors: [failure(1, 5, 30), failure(2, 6, 20)] });
    book.note({ ...heartbeat('b', 2, 1, 0), errors: [failure(3, 5, 10)] });
    expect(
      book
        .errors()
        .map(({ error, task, count, firstMs, lastMs }) => [error.message, task, count, firstMs, lastMs]),
    ).toEqual([
      ['row 2', 2, 2, 19, 20],
      ['row 1', 1, 4, 9, 30],
    ]);
  });

  it('goes on from what was stored, and from nothing if that is damaged', () => {
    const book = new TotalsBook();
    for (let generation = 1; generation <= 60; generation++) {
      book.note(heartbeat(`w${generation}`, generation, 1, 1));
    }
    const again = new TotalsBook(JSON.parse(JSON.stringify(book.stored())));
    expect(again.components()).toEqual(book.components());
    expect(again.note(heartbeat('w1', 1, 2, 50))).toBe('stale');
    expect(new TotalsBook({ format: 9 }).components()).toEqual([]);
    expect(new TotalsBook('rubbish').components()).toEqual([]);
  });
});
