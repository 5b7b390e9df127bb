import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../base/index.js';
import { workerEventId } from '../coordination/index.js';
import { WorkerEvents, type WorkerNews } from './worker-events.js';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'isobar-worker-events-'));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

const news = (parts: Partial<WorkerNews> = {}): WorkerNews => ({
  ...{ kind: 'worker-died', topologyId: 't', port: 1, code: 'WORKER_LOST', reason: 'ended', detail: '' },
  ...parts,
});

function open(): WorkerEvents {
  const events = new WorkerEvents(join(root, 'worker-events.json'), silentLogger);
  events.open();
  return events;
}

describe('events of workers', () => {
  it('stay until they are acknowledged, over a restart, with numbers that go on rising', () => {
    const events = open();
    events.note(news(), 100);
    events.note(news(), 50);
    const next = open();
    expect(next.all.map(({ number }) => number)).toEqual([100, 101]);
    expect(next.forget([workerEventId({ number: 100 }), 'some worker'])).toBe(true);
    expect(next.forget([workerEventId({ number: 100 })])).toBe(false);
    next.note(news(), 60);
    expect(open().all.map(({ number }) => number)).toEqual([101, 102]);
  });

  it('of a crash loop that nobody asks about are counted, and of others the oldest go', () => {
    const events = open();
    events.note(news({ kind: 'worker-started', code: null, reason: 'started' }), 1);
    for (let i = 2; i <= 150; i++) events.note(news(), i);
    expect(events.all).toHaveLength(64);
    expect(events.all.reduce((sum, { count }) => sum + count, 0)).toBe(150);
    expect(events.all[0]).toMatchObject({ kind: 'worker-started' });
    expect(events.all.at(-1)).toMatchObject({ count: 1, number: 150 });
    for (let i = 0; i < 64; i++) events.note(news({ reason: `reason ${i}` }), 1000 + i);
    expect(events.all.map(({ reason }) => reason)).toContain('reason 0');
    expect(events.all).toHaveLength(64);
  });
});
