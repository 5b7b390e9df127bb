import { describe, expect, it } from 'vitest';
import { type ErrorRecord, IsobarError, VirtualClock } from '../base/index.js';
import type { Handover, HandoverStep, ReleasedState } from '../coordination/index.js';
import { Arrivals } from './arrivals.js';

const RETRY_MS = 100;
const MOVE = 7;
const ERROR: ErrorRecord = { code: 'USER_CODE_FAILED', message: 'no', details: {} };
const SAVED: ReleasedState = { kind: 'saved', hash: 'h', bytes: 3 };

const step = (one: HandoverStep, move = MOVE): Handover => ({ task: 4, move, step: one });
const released = (state: ReleasedState, move = MOVE): Handover => step({ kind: 'released', state }, move);
const taken = step({ kind: 'taken', generation: 2 });

class Setting {
  readonly clock = new VirtualClock();
  readonly log: string[] = [];
  canStart = true;
  fetch: () => Promise<string> = () => Promise.resolve('/file');
  handOver: () => Promise<void> = () => Promise.resolve();
  readonly arrivals: Arrivals;

  constructor(parts: { readonly isReturn?: boolean } = {}) {
    this.arrivals = new Arrivals({
      clock: this.clock,
      retryMs: RETRY_MS,
      slot: { supervisor: 's1', port: 1 },
      canStart: () => this.canStart,
      fetch: (_task, hash) => {
        this.log.push(`fetch ${hash}`);
        return this.fetch();
      },
      start: (_task, saved) => {
        this.log.push(`start with ${saved?.kind ?? 'nothing'}`);
        return Promise.resolve(9);
      },
      go: () => this.log.push('go'),
      handOver: (_task, move, { kind }) => {
        this.log.push(`${kind} in move ${move}`);
        return this.handOver();
      },
      onLostState: () => this.log.push('state lost'),
      onFailed: (_task, { code }) => this.log.push(`failed: ${code}`),
      onNotFetched: () => this.log.push('not fetched'),
    });
    this.expect(MOVE, parts.isReturn);
  }

  expect(move: number, isReturn = false): void {
    this.arrivals.expect({ task: 4, component: 'count', move, isReturn });
  }

  async learn(...handovers: readonly Handover[]): Promise<void> {
    this.arrivals.learn(handovers);
    this.arrivals.advance();
    await settle();
  }

  async after(ms: number): Promise<void> {
    this.clock.advance(ms);
    await settle();
  }

  done(): string[] {
    return this.log.splice(0);
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

describe('an arrival', () => {
  it('starts nothing before it is released, and takes rows only once it has been taken on record', async () => {
    const setting = new Setting();
    await setting.learn();
    await setting.learn(step({ kind: 'released', state: SAVED }, 6));
    await setting.learn(step({ kind: 'kept', error: ERROR }), released(SAVED));
    expect(setting.done()).toEqual([]);
    let answer: () => void = () => undefined;
    setting.handOver = () => new Promise((resolve) => (answer = resolve));
    await setting.learn(released(SAVED));
    expect(setting.done()).toEqual(['fetch h', 'start with file']);
    setting.arrivals.onPrepared(4);
    expect(setting.done()).toEqual(['taken in move 7']);
    answer();
    await settle();
    expect(setting.done()).toEqual(['go']);
    expect(setting.arrivals.count).toBe(0);
  });

  it('needs no record where there is no state', async () => {
    const setting = new Setting();
    await setting.learn(released({ kind: 'none' }));
    setting.arrivals.onPrepared(4);
    expect(setting.done()).toEqual(['start with nothing', 'go']);
  });

  it('waits for its thread', async () => {
    const setting = new Setting();
    setting.canStart = false;
    await setting.learn(released({ kind: 'none' }));
    expect(setting.done()).toEqual([]);
    setting.canStart = true;
    setting.arrivals.advance();
    await settle();
    expect(setting.done()).toEqual(['start with nothing']);
  });

  it('names state that went with the old place, and starts without it', async () => {
    const setting = new Setting();
    await setting.learn(released({ kind: 'lost' }));
    expect(setting.done()).toEqual(['state lost', 'start with nothing']);
  });

  it('takes state for lost that a former life of this worker had taken, but not what this one has', async () => {
    const former = new Setting();
    await former.learn(released(SAVED), taken);
    expect(former.done()).toEqual(['state lost', 'start with nothing']);
    const own = new Setting();
    let answer: () => void = () => undefined;
    own.handOver = () => new Promise((resolve) => (answer = resolve));
    await own.learn(released(SAVED));
    own.arrivals.onPrepared(4);
    // Its thread ends before it has processed anything: the stored state is still all there is.
    own.arrivals.onThreadGone(4);
    answer();
    own.done();
    await own.learn(released(SAVED), taken);
    expect(own.done()).toEqual(['fetch h', 'start with file']);
  });

  it('starts anew when its thread ends, whatever it was about to do', async () => {
    const setting = new Setting();
    await setting.learn(released(SAVED));
    setting.arrivals.onThreadGone(4);
    setting.done();
    setting.arrivals.onPrepared(4);
    expect(setting.done()).toEqual([]);
    setting.arrivals.advance();
    await settle();
    expect(setting.done()).toEqual(['fetch h', 'start with file']);
  });

  it('asks again for a state that cannot be had now, and starts without one that is missing for good', async () => {
    const setting = new Setting();
    setting.fetch = () => Promise.reject(new IsobarError('STATE_DIRECTORY_UNUSABLE', 'full'));
    await setting.learn(released(SAVED));
    expect(setting.done()).toEqual(['fetch h', 'not fetched']);
    setting.fetch = () => Promise.reject(new IsobarError('TASK_STATE_MISSING', 'gone'));
    await setting.after(RETRY_MS);
    expect(setting.done()).toEqual(['fetch h', 'not fetched', 'state lost', 'start with nothing']);
  });

  it('does nothing for a task that goes elsewhere meanwhile', async () => {
    const setting = new Setting();
    let answer: (path: string) => void = () => undefined;
    setting.fetch = () => new Promise((resolve) => (answer = resolve));
    await setting.learn(released(SAVED));
    setting.arrivals.abandon(4);
    answer('/file');
    await settle();
    setting.arrivals.onPrepared(4);
    setting.arrivals.onStartFailed(4, ERROR);
    expect(setting.done()).toEqual(['fetch h']);
  });

  it('begins anew with another move, and goes on with the same', async () => {
    const setting = new Setting();
    await setting.learn(released(SAVED));
    setting.done();
    setting.expect(MOVE);
    setting.arrivals.onPrepared(4);
    expect(setting.done()).toEqual(['taken in move 7']);
    setting.expect(8);
    await setting.learn(released(SAVED));
    expect(setting.done()).toEqual([]);
    await setting.learn(released({ kind: 'none' }, 8));
    expect(setting.done()).toEqual(['start with nothing']);
  });
});

describe('an arrival that fails to start', () => {
  it('says so on record, and is tried here again only when a newer assignment wants it here', async () => {
    const setting = new Setting();
    await setting.learn(released(SAVED));
    setting.done();
    setting.arrivals.onStartFailed(4, ERROR);
    setting.arrivals.onThreadGone(4);
    setting.arrivals.advance();
    await setting.after(10 * RETRY_MS);
    expect(setting.done()).toEqual(['failed: USER_CODE_FAILED', 'failed in move 7']);
    setting.arrivals.retryFailed();
    setting.arrivals.advance();
    await settle();
    expect(setting.done()).toEqual(['fetch h', 'start with file']);
  });

  it('is tried again and again where it came from, and is taken on record there, state or not', async () => {
    const setting = new Setting({ isReturn: true });
    await setting.learn(step({ kind: 'kept', error: ERROR }), released({ kind: 'none' }));
    setting.arrivals.onStartFailed(4, ERROR);
    expect(setting.done()).toEqual(['start with nothing', 'failed: USER_CODE_FAILED']);
    await setting.after(RETRY_MS);
    expect(setting.done()).toEqual(['start with nothing']);
    setting.arrivals.onPrepared(4);
    await settle();
    expect(setting.done()).toEqual(['taken in move 7', 'go']);
  });
});
