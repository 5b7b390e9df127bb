/** Reads what `startup/app.ts` notes: when something happened first, and in which process. */
import { readFileSync } from 'node:fs';

export interface Mark {
  readonly pid: number;
  /** Since the epoch. */
  readonly atMs: number;
}

/** The first moment of each kind so far; none while the file is not there. */
export function readMarks(path: string): ReadonlyMap<string, Mark> {
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const marks = new Map<string, Mark>();
  for (const line of text.split('\n').slice(0, -1)) {
    const [what = '', pid, atMs] = line.split(' ');
    if (!marks.has(what)) marks.set(what, { pid: Number(pid), atMs: Number(atMs) });
  }
  return marks;
}
