/** One command at a time changes a cluster: the others wait for it, for a while. */
import { setTimeout as pause } from 'node:timers/promises';
import {
  hasCode,
  isSameProcessAlive,
  lockDirectory,
  processIdentity,
  systemClock,
} from '../../base/index.js';
import type { DevDirectory } from './dev-directory.js';

const WAIT_MS = 60_000;
const RETRY_MS = 50;

/** Runs `work` while no other command does. @throws STATE_DIRECTORY_OWNED after a minute, and what `work` throws */
export async function underCommandLock<T>(directory: DevDirectory, work: () => Promise<T>): Promise<T> {
  const own = processIdentity(process.pid) ?? { pid: process.pid, startTime: '' };
  const deadlineMs = systemClock.nowMs() + WAIT_MS;
  for (;;) {
    try {
      const lock = lockDirectory(`${directory.daemons}/command`, own, isSameProcessAlive);
      try {
        return await work();
      } finally {
        lock.release();
      }
    } catch (error) {
      // Only the lock throws it: the owners of other directories are told by their daemons.
      if (!hasCode(error, 'STATE_DIRECTORY_OWNED') || systemClock.nowMs() > deadlineMs) throw error;
      await pause(RETRY_MS);
    }
  }
}
