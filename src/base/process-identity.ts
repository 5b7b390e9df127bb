/**
 * Tells one process from another that got the same pid later: by the start time that the kernel keeps.
 * Linux reads /proc; elsewhere only the pid can be asked for, and the start time stays empty.
 */
import { existsSync, readFileSync } from 'node:fs';

/** A process that can be verified: a pid alone may have been given to another one since. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time from /proc/PID/stat (field 22, clock ticks since boot); empty where the system has none. */
  readonly startTime: string;
}

const BOOT_ID_PATH = '/proc/sys/kernel/random/boot_id';
const HAS_PROC = existsSync('/proc/self/stat');

/**
 * The machine's present boot; empty where the system has none. An identity that was written down before another boot
 * names nobody: pids and start times begin anew.
 */
export function bootId(): string {
  try {
    return readFileSync(BOOT_ID_PATH, 'utf8').trim();
  } catch {
    return '';
  }
}

/** The identity of a running process; undefined when it is gone (a zombie counts as gone). */
export function processIdentity(pid: number): ProcessIdentity | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (!HAS_PROC) return canBeSignalled(pid) ? { pid, startTime: '' } : undefined;
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // ENOENT before the read, ESRCH in the middle of it: the process is gone.
    return undefined;
  }
  const startTime = startTimeFromStat(stat);
  return startTime === undefined ? undefined : { pid, startTime };
}

/** Whether this very process still runs; false for a zombie and for a later process with the same pid. */
export function isSameProcessAlive(identity: ProcessIdentity): boolean {
  const current = processIdentity(identity.pid);
  if (current === undefined) return false;
  return identity.startTime === '' || current.startTime === '' || current.startTime === identity.startTime;
}

/**
 * Field 22 of a /proc/PID/stat line, or undefined for a process that has ended (state Z or X). The name in
 * parentheses may itself hold spaces and parentheses, so fields are counted from the last one.
 */
export function startTimeFromStat(stat: string): string | undefined {
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === undefined || state === 'Z' || state === 'X' || state === 'x') return undefined;
  return rest[18];
}

function canBeSignalled(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs, but belongs to somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
