import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/index.js';
import type { WorkerEvent } from '../../coordination/index.js';
import type { ClusterEvent } from './cluster-event.js';
import { EventJournal, type EventDraft } from './event-journal.js';

let root: string;
let path: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'isobar-events-'));
  path = join(root, 'events.jsonl');
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const open = (): EventJournal => new EventJournal(path, silentLogger);

const draft = (parts: Partial<EventDraft>): EventDraft => ({
  ...{ kind: 'moved', topologyId: 't-1', topology: 't', place: null, code: null, message: 'm', atMs: 0 },
  ...parts,
});

const died = (number: number, parts: Partial<WorkerEvent> = {}): WorkerEvent => ({
  ...{ number, kind: 'worker-died', topologyId: 't-1', port: 7, code: 'WORKER_LOST', count: 1 },
  ...{ reason: 'was ended by SIGKILL', detail: '', firstMs: number, lastMs: number, ...parts },
});

const all = (journal: EventJournal): readonly ClusterEvent[] => journal.list(() => true);
const counts = (journal: EventJournal): readonly (readonly [string, number])[] =>
  all(journal).map(({ kind, count }) => [kind, count]);

describe('the history', () => {
  it('is there again after a restart, with what a torn last line was not', async () => {
    const journal = open();
    journal.note(draft({ message: 'one', atMs: 1 }));
    journal.note(draft({ message: 'two', atMs: 2 }));
    await journal.save();
    const before = all(journal);
    appendFileSync(path, '{"id":3,"sequence":3,"ki');
    const next = open();
    expect(all(next)).toEqual(before);
    next.note(draft({ message: 'three', atMs: 3 }));
    await next.save();
    expect(all(open()).map(({ message }) => message)).toEqual(['one', 'two', 'three']);
  });

  it('counts what happens again within ten minutes, with its first and its last time', () => {
    const journal = open();
    for (const atMs of [0, 60_000, 120_000]) journal.note(draft({ atMs }));
    expect(all(journal)).toMatchObject([{ count: 3, firstMs: 0, lastMs: 120_000 }]);
    journal.note(draft({ atMs: 120_000 + 600_001 }));
    expect(counts(journal)).toEqual([
      ['moved', 3],
      ['moved', 1],
    ]);
  });

  it('gives a thing that happened again a new number, so that who follows hears of it', () => {
    const journal = open();
    journal.note(draft({}));
    const { sequence } = journal;
    journal.note(draft({ message: 'other' }));
    journal.note(draft({ atMs: 5 }));
    expect(
      journal.list((event) => event.sequence > sequence).map(({ message, count }) => [message, count]),
    ).toEqual([
      ['other', 1],
      ['m', 2],
    ]);
  });

  it('notes a fact once, however often it is seen, over restarts', async () => {
    const journal = open();
    journal.noteOnce(draft({ kind: 'submitted', atMs: 5 }));
    journal.noteOnce(draft({ kind: 'submitted', atMs: 5 }));
    await journal.save();
    const next = open();
    next.noteOnce(draft({ kind: 'submitted', atMs: 5 }));
    expect(counts(next)).toEqual([['submitted', 1]]);
  });

  it('keeps 200 events of a topology, the one of its submission among them, and none of them costs another topology one', () => {
    const journal = open();
    journal.noteOnce(draft({ topologyId: 'o-1', topology: 'o', kind: 'submitted' }));
    journal.noteOnce(draft({ kind: 'submitted' }));
    for (let i = 0; i < 300; i++) journal.note(draft({ message: `m${i}`, atMs: i }));
    const own = journal.list(({ topology }) => topology === 't');
    expect(own).toHaveLength(200);
    expect([own[0]?.kind, own.at(-1)?.message]).toEqual(['submitted', 'm299']);
    expect(journal.list(({ topology }) => topology === 'o')).toHaveLength(1);
  });

  it('keeps 10,000 events in all, and a file that is not much longer', { timeout: 30_000 }, async () => {
    const journal = open();
    for (let i = 0; i < 25_000; i++) {
      journal.note(draft({ topologyId: `t-${i}`, topology: `t${i}`, atMs: i }));
      if (i % 1000 === 0) await journal.save();
    }
    await journal.save();
    expect(all(journal)).toHaveLength(10_000);
    // Seen again at a restart, though it has gone with others of its age.
    journal.noteOnce(draft({ topologyId: 't-1', kind: 'submitted', atMs: 1 }));
    expect(all(journal)[0]?.topology).toBe('t15000');
    expect(readFileSync(path, 'utf8').split('\n').length).toBeLessThan(23_002);
  });

  it('bounds a crash loop: an event that is counted, and a file that is written anew', async () => {
    const journal = open();
    for (let number = 1; number <= 2500; number++) {
      journal.noteTold('s1', [died(number)], () => 't');
      await journal.save();
    }
    expect(all(journal)).toMatchObject([{ count: 2500, firstMs: 1, lastMs: 2500, place: 's1:7' }]);
    expect(statSync(path).size).toBeLessThan(200_000);
  });

  it('takes what a supervisor tells again for told, also after a restart, and keeps it once it is on disk', async () => {
    const journal = open();
    journal.noteTold(
      's1',
      [died(4), died(5, { reason: 'ended with exit code 1', detail: 'Error: no' })],
      () => 't',
    );
    expect(journal.keeps('s1', 4)).toBe(false);
    await journal.save();
    expect([journal.keeps('s1', 5), journal.keeps('s1', 6), journal.keeps('s2', 1)]).toEqual([
      true,
      false,
      false,
    ]);
    const next = open();
    next.noteTold('s1', [died(4), died(5), died(6)], () => 't');
    expect(all(next).map(({ count, message }) => [count, message])).toEqual([
      [1, 'ended with exit code 1: Error: no'],
      [2, 'was ended by SIGKILL'],
    ]);
  });

  it('says of a worker that ended behind its topology whose it was', () => {
    const journal = open();
    journal.noteOnce(draft({ kind: 'submitted' }));
    journal.noteTold('s1', [died(1)], () => null);
    expect(all(journal).map(({ topology }) => topology)).toEqual(['t', 't']);
  });

  it('goes on where it cannot be written, says so, and writes it later', async () => {
    const events: string[] = [];
    const lost = new EventJournal(join(root, 'none', 'events.jsonl'), {
      ...silentLogger,
      warn: (event: string) => events.push(event),
    });
    rmSync(root, { recursive: true });
    writeFileSync(root, 'a file');
    lost.noteTold('s1', [died(1)], () => 't');
    await lost.save();
    expect([events, lost.keeps('s1', 1), lost.isUnsaved]).toEqual([['events.not-written'], false, true]);
    rmSync(root);
    await lost.save();
    expect([lost.keeps('s1', 1), lost.isUnsaved]).toEqual([true, false]);
  });
});
