/** Warnings and errors that a cluster's logs have said since a moment, and what has no level: output of native code. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const WARNING = 40;
const ERROR = 50;

export interface LogAlarms {
  readonly warnings: readonly string[];
  readonly errors: readonly string[];
  /** Lines that are no records, of files that have changed since. */
  readonly raw: readonly string[];
}

/** @param sinceMs since the epoch; records before it are left out. */
export function logAlarms(directory: string, sinceMs: number): LogAlarms {
  const found = { warnings: [] as string[], errors: [] as string[], raw: [] as string[] };
  for (const path of filesBelow(directory)) {
    if (!/\.log(\.\d+)?$/.test(path) || statSync(path).mtimeMs < sinceMs) continue;
    for (const line of readFileSync(path, 'utf8').split('\n')) {
      if (line === '') continue;
      const record = recordOf(line);
      if (record === undefined) found.raw.push(line);
      else if (record.time < sinceMs || record.level < WARNING) continue;
      else (record.level < ERROR ? found.warnings : found.errors).push(line);
    }
  }
  return found;
}

/** Size of all files below a directory, bytes. */
export function bytesBelow(directory: string): number {
  return filesBelow(directory).reduce((sum, path) => sum + sizeOf(path), 0);
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** A file may be replaced between the listing and the look. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function recordOf(line: string): { readonly level: number; readonly time: number } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || !('level' in value) || !('time' in value))
    return undefined;
  return { level: Number(value.level), time: Number(value.time) };
}
