/** What processes and the machine have of memory, as the operating system says. */
import { readFileSync } from 'node:fs';
import { freemem } from 'node:os';

const BYTES_PER_MB = 1_048_576;

/** Resident memory of a process, MB; undefined when it is gone, and where there is no /proc. */
export function residentMb(pid: number): number | undefined {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return undefined;
  }
  const found = /^VmRSS:\s+(\d+) kB/m.exec(status);
  return found === null ? undefined : Number(found[1]) / 1024;
}

/** What the machine could still give, caches included that it would give up, MB. */
export function freeMb(): number {
  return freemem() / BYTES_PER_MB;
}
