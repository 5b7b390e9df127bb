/** Finds the processes of one run: each has a path inside the run's state directory on its command line. */
import { readdirSync, readFileSync } from 'node:fs';

export interface RunProcess {
  readonly pid: number;
  readonly kind: 'keeper' | 'daemon' | 'worker' | 'other';
}

function commandLine(pid: number): string {
  try {
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '')[0];
    return state === 'Z' || state === 'X'
      ? ''
      : readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
  } catch {
    // It ended while we looked.
    return '';
  }
}

export function findProcesses(directory: string): RunProcess[] {
  const found: RunProcess[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const text = commandLine(pid);
    if (!text.includes(directory)) continue;
    const kind = text.includes('worker/main.js')
      ? 'worker'
      : text.includes('daemon-main.js')
        ? 'daemon'
        : text.includes('cli/main.js')
          ? 'keeper'
          : 'other';
    found.push({ pid, kind });
  }
  return found;
}

export function pidsOf(directory: string, kind: RunProcess['kind']): number[] {
  return findProcesses(directory)
    .filter((found) => found.kind === kind)
    .map(({ pid }) => pid);
}

/** Sockets left in a directory, by the kernel's list of listening Unix sockets. */
export function listeningSockets(directory: string): string[] {
  return readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/)[7] ?? '')
    .filter((path) => path.startsWith(directory));
}
