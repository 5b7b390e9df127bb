import { describe, expect, it } from 'vitest';
import { Doorbell } from './doorbell.js';

const LONG_MS = 60_000;
const never = (): boolean => false;

function bell(): { owner: Doorbell; sender: Doorbell } {
  const buffer = Doorbell.allocate();
  return { owner: new Doorbell(buffer), sender: new Doorbell(buffer) };
}

describe('a doorbell', () => {
  it('wakes a sleeping owner', async () => {
    const { owner, sender } = bell();
    setImmediate(() => sender.ring());
    await owner.sleep(LONG_MS, never);
  });

  it('remembers a ring that came while the owner was awake, once', async () => {
    const { owner, sender } = bell();
    sender.ring();
    sender.ring();
    await owner.sleep(LONG_MS, never);
    const began = performance.now();
    await owner.sleep(20, never);
    expect(performance.now() - began).toBeGreaterThan(10);
  });

  it('does not sleep when there is work after the sleep was announced', async () => {
    const { owner } = bell();
    await owner.sleep(LONG_MS, () => true);
  });

  it('does not sleep when work is published and rung for between announcing and looking', async () => {
    const { owner, sender } = bell();
    await owner.sleep(LONG_MS, () => {
      sender.ring();
      return false;
    });
  });

  it.each([5, 120])('ends its sleep after its time, %i ms', async (timeoutMs) => {
    const began = performance.now();
    expect(await bell().owner.sleep(timeoutMs, never)).toBe(true);
    expect(performance.now() - began).toBeGreaterThan(timeoutMs - 2);
  });

  it('tells whether it slept, and so gave way', async () => {
    const { owner, sender } = bell();
    expect(await owner.sleep(LONG_MS, () => true)).toBe(false);
    sender.ring();
    expect(await owner.sleep(LONG_MS, never)).toBe(false);
    setImmediate(() => sender.ring());
    expect(await owner.sleep(LONG_MS, never)).toBe(true);
  });

  it('is woken by its own event loop, asleep or about to sleep', async () => {
    const { owner } = bell();
    setTimeout(() => owner.wakeSelf(), 1);
    await owner.sleep(LONG_MS, never);
    owner.wakeSelf();
    await owner.sleep(LONG_MS, never);
  });

  it('lets timers run while asleep', async () => {
    const { owner } = bell();
    let ticks = 0;
    const timer = setInterval(() => {
      if (++ticks === 5) owner.wakeSelf();
    }, 1);
    await owner.sleep(LONG_MS, never);
    clearInterval(timer);
    expect(ticks).toBe(5);
  });

  it('refuses a second sleep at the same time', async () => {
    const { owner } = bell();
    const first = owner.sleep(LONG_MS, never);
    await expect(owner.sleep(1, never)).rejects.toThrow(expect.objectContaining({ code: 'INTERNAL' }));
    owner.wakeSelf();
    await first;
  });

  it('leaves no waiter behind after many sleeps that ended in different ways', async () => {
    const buffer = Doorbell.allocate();
    const owner = new Doorbell(buffer);
    for (let i = 0; i < 300; i++) {
      if (i % 3 === 0) setImmediate(() => owner.wakeSelf());
      else if (i % 3 === 1) setImmediate(() => owner.ring());
      await owner.sleep(i % 3 === 2 ? 1 : LONG_MS, never);
    }
    expect(Atomics.notify(new Int32Array(buffer), 0)).toBe(0);
  });
});
