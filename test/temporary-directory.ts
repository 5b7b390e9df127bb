/**
 * Gives the whole test run one temporary directory and removes it afterwards, with what tests and the processes that they
 * killed have left there.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export default function setup(): () => void {
  // A short name: sockets lie below it, and their paths have few characters.
  const directory = mkdtempSync(join(tmpdir(), 'it-'));
  process.env['TMPDIR'] = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}
