/** Type-checks a user's file in a child process while it is being bundled. */
import { fileURLToPath } from 'node:url';
import { relative } from 'node:path';
import { IsobarError, packageEntry, packageRoot } from '../../base/index.js';
import { resolveEntry } from './bundle.js';
import type { CheckReport, TypeFault } from './check-types.js';
import { runChild } from './child.js';

const CHECK_ENTRY = packageEntry('engines/submission/type-check-main');
const ISOBAR_DECLARATIONS = fileURLToPath(new URL('dist/index.d.ts', packageRoot()));
const MAX_FAULTS = 20;
/** A check takes seconds; one that takes longer than this hangs. */
const CHECK_TIMEOUT_MS = 300_000;

/**
 * Checks the file and everything of the user's that it imports.
 *
 * @param signal ends the check early; the promise then rejects
 * @throws TYPE_CHECK_FAILED with `file:line:column: message` for each error, two lines at most where it is the compiler's
 */
export async function typeCheck(file: string, options: { signal?: AbortSignal } = {}): Promise<void> {
  const entry = resolveEntry(file);
  const ended = await runChild<CheckReport>({
    entry: CHECK_ENTRY,
    arguments: [entry, ISOBAR_DECLARATIONS],
    timeoutMs: CHECK_TIMEOUT_MS,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  if (ended.kind !== 'answered') {
    throw new IsobarError('INTERNAL', `the type check of ${file} ended without a result\n${ended.output}`, {
      expected: 'a list of errors',
      found: ended.kind === 'timeout' ? `nothing in ${CHECK_TIMEOUT_MS} ms` : ended.how,
      where: entry,
    });
  }
  const { faults } = ended.answer;
  if (faults.length === 0) return;
  throw new IsobarError('TYPE_CHECK_FAILED', describeFaults(faults));
}

/** Each error as compilers print them; the first twenty. */
export function describeFaults(faults: readonly TypeFault[], directory: string = process.cwd()): string {
  const lines = faults.slice(0, MAX_FAULTS).map(({ file, line, column, code, message }) => {
    const text = `${code}: ${message.replaceAll('\n', '\n    ')}`;
    return file === null ? text : `${relative(directory, file)}:${line}:${column}: ${text}`;
  });
  const more = faults.length - MAX_FAULTS;
  return [...lines, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n');
}
