import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { isSameProcessAlive, processIdentity, startTimeFromStat } from './process-identity.js';

const STAT_TAIL = '1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1000 10';

describe('process identity', () => {
  it('knows this process and tells it from another with the same pid', () => {
    const own = processIdentity(process.pid)!;
    expect(own.pid).toBe(process.pid);
    expect(isSameProcessAlive(own)).toBe(true);
    if (own.startTime !== '') expect(isSameProcessAlive({ ...own, startTime: '1' })).toBe(false);
    expect(isSameProcessAlive({ ...own, startTime: '' })).toBe(true);
  });

  it('knows nothing of pids that cannot be', () => {
    for (const pid of [0, -1, 1.5, Number.NaN, 2 ** 31, Number.MAX_VALUE]) {
      expect(processIdentity(pid)).toBeUndefined();
      expect(isSameProcessAlive({ pid, startTime: '' })).toBe(false);
    }
  });

  it('counts fields from behind a name with spaces and parentheses', () => {
    expect(startTimeFromStat(`42 (node) S ${STAT_TAIL}`)).toBe('987654');
    expect(startTimeFromStat(`42 (a) Z (b c) R ${STAT_TAIL}`)).toBe('987654');
    expect(startTimeFromStat(`42 (node) Z ${STAT_TAIL}`)).toBeUndefined();
    expect(startTimeFromStat(`42 (node) X ${STAT_TAIL}`)).toBeUndefined();
    expect(startTimeFromStat('')).toBeUndefined();
  });

  it('counts a killed process as gone, as a zombie already', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    await once(child, 'spawn');
    const identity = processIdentity(child.pid!)!;
    expect(isSameProcessAlive(identity)).toBe(true);
    child.kill('SIGKILL');
    // Nothing reaps the child while this loop does not return to the event loop, so it stays a zombie.
    if (existsSync('/proc/self/stat')) {
      const until = performance.now() + 10_000;
      while (isSameProcessAlive(identity) && performance.now() < until);
    }
    await once(child, 'exit');
    await vi.waitFor(() => expect(isSameProcessAlive(identity)).toBe(false));
  });
});
