import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../base/index.js';
import type { SessionRecord } from './node-tree.js';
import { SessionMonitor } from './session-monitor.js';

const TIMEOUT_MS = 1000;
const SWEEP_MS = 100;

/** A clock whose timers a stopped process does not see: it can be moved without firing them. */
class StoppableClock extends VirtualClock {
  #stoppedMs = 0;
  override nowMs(): number {
    return super.nowMs() + this.#stoppedMs;
  }
  stopFor(ms: number): void {
    this.#stoppedMs += ms;
  }
}

describe('the session monitor', () => {
  let clock: StoppableClock;
  let alive: boolean;
  let ended: string[];
  let monitor: SessionMonitor<string>;

  beforeEach(() => {
    clock = new StoppableClock();
    alive = true;
    ended = [];
    monitor = new SessionMonitor<string>({
      clock,
      isProcessAlive: () => alive,
      onEnd: (id, reason) => {
        ended.push(`${id}: ${reason}`);
        monitor.forget(id);
      },
      sweepMs: SWEEP_MS,
    });
  });

  function session(id: string): SessionRecord {
    return { id, timeoutMs: TIMEOUT_MS, process: { pid: 1, startTime: '' }, ephemeralPaths: new Set() };
  }

  async function pass(ms: number): Promise<void> {
    clock.advance(ms);
    for (let count = 0; count < 8; count++) await turn();
  }

  it('ends a session that is silent for its time-out, attached or not, and no sooner', async () => {
    monitor.attach(session('a'), 'client');
    monitor.restore(session('b'));
    await pass(TIMEOUT_MS - 1);
    expect(ended).toEqual([]);
    await pass(SWEEP_MS + 1);
    expect(ended).toEqual(['a: silent for its time-out', 'b: silent for its time-out']);
  });

  it('keeps a session that is heard', async () => {
    monitor.attach(session('a'), 'client');
    for (let round = 0; round < 20; round++) {
      await pass(TIMEOUT_MS / 2);
      monitor.touch('a');
    }
    expect(ended).toEqual([]);
  });

  it('ends a detached session at once when its process is gone', async () => {
    monitor.attach(session('a'), 'client');
    alive = false;
    await pass(TIMEOUT_MS / 2);
    expect(ended).toEqual([]);
    monitor.touch('a');
    monitor.detach('a', 'client');
    expect(ended).toEqual(['a: its process is gone']);
  });

  it('ends it soon when the process goes a little after its connection', async () => {
    monitor.attach(session('a'), 'client');
    monitor.detach('a', 'client');
    await pass(5);
    alive = false;
    await pass(10);
    expect(ended).toEqual(['a: its process is gone']);
  });

  it('gives a detached session of a living process its full time-out, and forgets all when it comes back', async () => {
    monitor.attach(session('a'), 'first');
    await pass(TIMEOUT_MS - 50);
    monitor.detach('a', 'first');
    await pass(TIMEOUT_MS - 50);
    expect(ended).toEqual([]);
    monitor.attach(session('a'), 'second');
    await pass(TIMEOUT_MS - 50);
    expect(ended).toEqual([]);
    expect(monitor.forget('a')).toBe('second');
  });

  it('hands out the client that a new one replaces, whose end then means nothing', async () => {
    monitor.attach(session('a'), 'first');
    expect(monitor.attach(session('a'), 'second')).toBe('first');
    alive = false;
    monitor.detach('a', 'first');
    await pass(SWEEP_MS);
    expect(ended).toEqual([]);
  });

  it('does not count time in which this process was stopped', async () => {
    monitor.attach(session('a'), 'client');
    monitor.restore(session('b'));
    await pass(500);
    clock.stopFor(60_000);
    await pass(SWEEP_MS);
    expect(ended).toEqual([]);
    await pass(TIMEOUT_MS);
    expect(ended).toHaveLength(2);
  });

  it('reads what has arrived before it finds a session silent', async () => {
    monitor.attach(session('a'), 'client');
    // Its ping is read one turn after the timer that finds it silent.
    setImmediate(() => monitor.touch('a'));
    await pass(TIMEOUT_MS + SWEEP_MS);
    expect(ended).toEqual([]);
  });
});
