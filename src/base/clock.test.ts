import { describe, expect, it } from 'vitest';
import { msBetween, systemClock, VirtualClock } from './clock.js';

describe('a stored moment', () => {
  const start = { wallMs: 1000, boot: 'b', bootMs: 10 };

  it('is compared by the time since the boot, whatever the wall clock says', () => {
    expect(msBetween(start, { wallMs: 9_999_999, boot: 'b', bootMs: 25 })).toBe(15);
    expect(msBetween(start, { wallMs: 0, boot: 'b', bootMs: 25 })).toBe(15);
  });

  it('is compared by the wall clock after a reboot or where boots have no name, and never goes backwards', () => {
    expect(msBetween(start, { wallMs: 1700, boot: 'c', bootMs: 1 })).toBe(700);
    expect(msBetween({ ...start, boot: '' }, { wallMs: 1700, boot: '', bootMs: 90_000 })).toBe(700);
    expect(msBetween(start, { wallMs: 0, boot: 'c', bootMs: 1 })).toBe(0);
  });

  it('of this machine goes on from one process to the next', () => {
    const [earlier, later] = [systemClock.moment(), systemClock.moment()];
    expect(later.boot).toBe(earlier.boot);
    expect(later.bootMs).toBeGreaterThanOrEqual(earlier.bootMs);
    expect(Math.abs(earlier.wallMs - Date.now())).toBeLessThan(60_000);
  });

  it('of a virtual clock moves with it', () => {
    const clock = new VirtualClock();
    const before = clock.moment();
    clock.advance(70);
    expect(msBetween(before, clock.moment())).toBe(70);
  });
});
