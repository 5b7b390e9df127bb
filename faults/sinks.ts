/** Reads what the sinks of the accountant's topology have written. Every record is nine bytes: eight digits and a newline. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const RECORD_BYTES = 9;

function sinkFiles(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith('sink-'))
    .map((name) => join(directory, name));
}

/** Records written so far. */
export function countRecords(directory: string): number {
  let bytes = 0;
  for (const file of sinkFiles(directory)) bytes += statSync(file).size;
  return Math.floor(bytes / RECORD_BYTES);
}

/** Compares the records with 0 … rows − 1. */
export function account(
  directory: string,
  rows: number,
): { lost: number; duplicates: number; firstLost: number | null } {
  const seen = new Uint8Array(rows);
  let duplicates = 0;
  for (const file of sinkFiles(directory)) {
    const text = readFileSync(file, 'latin1');
    // A sink that was killed in the middle of a write may leave a torn last record.
    for (let at = 0; at + RECORD_BYTES <= text.length; at += RECORD_BYTES) {
      const n = Number(text.slice(at, at + RECORD_BYTES - 1));
      if (!(n >= 0 && n < rows))
        throw new Error(
          `${file}: record ${JSON.stringify(text.slice(at, at + RECORD_BYTES))} was never sent`,
        );
      if (seen[n] === 1) duplicates++;
      seen[n] = 1;
    }
  }
  const firstLost = seen.indexOf(0);
  let lost = 0;
  for (const mark of seen) if (mark === 0) lost++;
  return { lost, duplicates, firstLost: firstLost < 0 ? null : firstLost };
}
