/** Reads Linux's /proc: time that the processors and single processes have used, and what processes hold in memory. */
import { readdirSync, readFileSync } from 'node:fs';

/** Length of a tick in /proc; the kernel's interface fixes it at 100 per second. */
export const TICK_MS = 10;

export interface ProcessorTimes {
  /** Time in use by anybody, other guests of the same machine included, ms over all cores. */
  readonly busyMs: number;
  readonly totalMs: number;
}

export interface ProcessUse {
  readonly cpuMs: number;
  /** Highest resident set of its life, MB. */
  readonly peakResidentMb: number;
}

/** Since the machine's start. */
export function processorTimes(): ProcessorTimes {
  const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, hard = 0, soft = 0, steal = 0] = readFileSync(
    '/proc/stat',
    'utf8',
  )
    .split('\n', 1)[0]!
    .trim()
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) * TICK_MS);
  const busyMs = user + nice + system + hard + soft + steal;
  return { busyMs, totalMs: busyMs + idle + wait };
}

/** CPU time and peak memory of a process; undefined when it is gone. */
export function processUse(pid: number): ProcessUse | undefined {
  const fields = statFields(pid);
  const peakKb = statusKb(pid, 'VmHWM');
  if (fields === undefined || peakKb === undefined) return undefined;
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS, peakResidentMb: peakKb / 1024 };
}

/** Memory of a process with shared pages counted in proportion, MB; 0 when it is gone. */
export function proportionalMb(pid: number): number {
  const found = /^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`) ?? '');
  return found === null ? 0 : Number(found[1]) / 1024;
}

/** Files, sockets and pipes that a process has open; 0 when it is gone. */
export function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** When a process was started, ms since the epoch, to about 20 ms; undefined when it is gone. */
export function processStartMs(pid: number): number | undefined {
  const fields = statFields(pid);
  const uptime = read('/proc/uptime');
  if (fields === undefined || uptime === undefined) return undefined;
  return Date.now() - (Number(uptime.split(' ')[0]) * 1000 - Number(fields[19]) * TICK_MS);
}

/** Processes whose environment has `name=value`, and their descendants, whatever their environment. */
export function processesMarked(name: string, value: string): number[] {
  const wanted = `${name}=${value}`;
  const parents = new Map<number, number>();
  const marked = new Set<number>();
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    const fields = statFields(pid);
    if (fields === undefined || fields[0] === 'Z') continue;
    parents.set(pid, Number(fields[1]));
    if ((read(`/proc/${pid}/environ`) ?? '').split('\0').includes(wanted)) marked.add(pid);
  }
  const isOurs = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parents.get(at))
      if (marked.has(at)) return true;
    return false;
  };
  return [...parents.keys()].filter(isOurs);
}

/** Fields of /proc/PID/stat behind the name: state, parent, … */
function statFields(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

function statusKb(pid: number, name: string): number | undefined {
  const found = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(read(`/proc/${pid}/status`) ?? '');
  return found === null ? undefined : Number(found[1]);
}

/** A process may end, or be another user's, at any moment: that is an answer here, not a failure. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
