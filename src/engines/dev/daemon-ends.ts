/** Ending daemons of a cluster from outside: asked first, killed when they do not, and verified gone either way. */
import { setTimeout as pause } from 'node:timers/promises';
import { isSameProcessAlive, type ProcessIdentity, systemClock } from '../../base/index.js';
import { tellDaemonToClose, findDaemon } from './daemon-control.js';
import type { DevDirectory } from './dev-directory.js';

const POLL_MS = 20;
const ASK_AGAIN_MS = 500;

/** Resolves to whether the process is gone after at most `timeoutMs`. */
export async function untilGone(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadlineMs = systemClock.nowMs() + timeoutMs;
  while (isSameProcessAlive(identity)) {
    if (systemClock.nowMs() >= deadlineMs) return false;
    await pause(POLL_MS);
  }
  return true;
}

/** Kills this very process; resolves when it is gone. */
export async function killProcess(identity: ProcessIdentity): Promise<void> {
  while (isSameProcessAlive(identity)) {
    try {
      process.kill(identity.pid, 'SIGKILL');
    } catch {
      // Gone in between; one of somebody else's cannot be waited for.
      return;
    }
    await pause(POLL_MS);
  }
}

/** Closes a daemon, and kills it if it has not ended after `timeoutMs`. Resolves to whether it ran at all. */
export async function endDaemon(
  directory: DevDirectory,
  id: string,
  how: { readonly stopWorkers: boolean; readonly timeoutMs: number },
): Promise<boolean> {
  const identity = findDaemon(directory, id);
  if (identity === undefined) return false;
  const deadlineMs = systemClock.nowMs() + how.timeoutMs;
  // One that has just been started does not hear yet.
  while (!(await tellDaemonToClose(directory, id, how))) {
    if (systemClock.nowMs() >= deadlineMs || (await untilGone(identity, ASK_AGAIN_MS))) break;
  }
  if (!(await untilGone(identity, Math.max(0, deadlineMs - systemClock.nowMs()))))
    await killProcess(identity);
  return true;
}
