import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { silentLogger, VirtualClock } from '../base/index.js';
import { HeartbeatPublisher } from './heartbeat-publisher.js';

function publisher() {
  const clock = new VirtualClock();
  const state = { hasNews: false, isFailing: false };
  const writes: number[] = [];
  const running = new HeartbeatPublisher({
    publish: async () => {
      writes.push(clock.nowMs());
      if (state.isFailing) throw new Error('away');
      state.hasNews = false;
    },
    hasNews: () => state.hasNews,
    intervalMs: 1000,
    quietIntervalMs: 3000,
    clock,
    logger: silentLogger,
  });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      clock.advance(5);
      await turn();
    }
  };
  return { running, state, writes, pass };
}

describe('the publisher of heartbeats', () => {
  it('writes in every interval while there is news, and in every third while there is none', async () => {
    const { state, writes, pass } = publisher();
    await pass(7000);
    expect(writes).toEqual([1000, 4000, 7000]);
    for (let second = 0; second < 3; second++) {
      state.hasNews = true;
      await pass(1000);
    }
    expect(writes.slice(3)).toEqual([8000, 9000, 10_000]);
  });

  it('writes within milliseconds what a decision waits for, together with what else changes until then', async () => {
    const { running, writes, pass } = publisher();
    await pass(1200);
    running.soon();
    running.soon();
    await pass(50);
    expect(writes).toEqual([1000, 1205]);
  });

  it('tries in every interval to write what could not be written', async () => {
    const { state, writes, pass } = publisher();
    state.isFailing = true;
    await pass(3000);
    state.isFailing = false;
    await pass(4000);
    expect(writes).toEqual([1000, 2000, 3000, 4000, 7000]);
  });
});
