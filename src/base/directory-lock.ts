/**
 * One owner of a directory, also after `kill -9` of the last one, with nothing to clean up by hand.
 *
 * Ownership is a chain of numbered files in `owners/`, each naming a process (pid and start time) or `released`; the
 * highest number counts. Whoever finds it gone links the next number, which one contender alone can do.
 *
 * O1 A number's file appears complete (written under another name, then linked) and is never changed.
 * O2 The newest files are kept: a slow contender that still sees an old end of the chain finds the next number taken.
 */
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IsobarError } from './errors.js';
import { bootId, processIdentity, type ProcessIdentity } from './process-identity.js';

const KEPT_FILES = 8;
const NAME_DIGITS = 12;

export interface DirectoryLock {
  /** Lets the next owner in; calling it twice is harmless. */
  release(): void;
}

interface Owner {
  readonly pid: number;
  readonly startTime: string;
  /** Of the machine's boot; empty where the system has none. After another boot no owner lives. */
  readonly boot: string;
}

/** @throws STATE_DIRECTORY_OWNED, STATE_DIRECTORY_UNUSABLE */
export function lockDirectory(
  directory: string,
  own: ProcessIdentity,
  isProcessAlive: (identity: ProcessIdentity) => boolean,
): DirectoryLock {
  const owners = join(directory, 'owners');
  const boot = bootId();
  const attempt = <T>(action: string, run: () => T): T => {
    try {
      return run();
    } catch (error) {
      throw error instanceof IsobarError ? error : unusable(directory, action, error);
    }
  };
  attempt('create', () => mkdirSync(owners, { recursive: true, mode: 0o700 }));
  const number = attempt('own', () => {
    for (;;) {
      const last = lastNumber(owners);
      const owner = readOwner(owners, last);
      if (owner !== undefined && owner.boot === boot && isProcessAlive(owner)) throw owned(directory, owner);
      if (!linkNumber(owners, last + 1, JSON.stringify({ ...own, boot }))) continue;
      if (lastNumber(owners) === last + 1) return last + 1;
      rmSync(numberPath(owners, last + 1), { force: true });
    }
  });
  removeOld(owners, number);
  let isReleased = false;
  return {
    release() {
      if (isReleased) return;
      isReleased = true;
      attempt('release', () => linkNumber(owners, number + 1, JSON.stringify('released')));
    },
  };
}

/** The process that owns the directory now. Nothing is written. */
export function directoryOwner(
  directory: string,
  isProcessAlive: (identity: ProcessIdentity) => boolean,
): ProcessIdentity | undefined {
  const owners = join(directory, 'owners');
  try {
    const owner = readOwner(owners, lastNumber(owners));
    if (owner === undefined || owner.boot !== bootId() || !isProcessAlive(owner)) return undefined;
    return { pid: owner.pid, startTime: owner.startTime };
  } catch {
    // There is no such directory, or none that may be read.
    return undefined;
  }
}

/** Gives `number` to the caller unless somebody has it. */
function linkNumber(owners: string, number: number, contents: string): boolean {
  const draft = join(owners, `draft-${process.pid}-${number}-${process.hrtime.bigint()}`);
  writeFileSync(draft, contents, { mode: 0o600 });
  try {
    linkSync(draft, numberPath(owners, number));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function lastNumber(owners: string): number {
  return Math.max(0, ...numbersIn(owners));
}

function numbersIn(owners: string): readonly number[] {
  return readdirSync(owners)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function numberPath(owners: string, number: number): string {
  return join(owners, String(number).padStart(NAME_DIGITS, '0'));
}

/** Undefined when nobody owns the directory; a file that a crash of the machine left incomplete names nobody alive. */
function readOwner(owners: string, number: number): Owner | undefined {
  if (number === 0) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(numberPath(owners, number), 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    // Removed since it was listed: the chain has grown, and linking the next number will fail.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { pid, startTime, boot }: Readonly<Record<string, unknown>> = { ...parsed };
  if (typeof pid !== 'number' || typeof startTime !== 'string' || typeof boot !== 'string') return undefined;
  return { pid, startTime, boot };
}

/** What cannot be removed now is removed by a later owner. */
function removeOld(owners: string, number: number): void {
  for (const old of numbersIn(owners)) {
    if (old <= number - KEPT_FILES) rmSync(numberPath(owners, old), { force: true });
  }
  for (const name of readdirSync(owners)) {
    // Drafts of processes that were killed while contending; a living contender's draft is gone in microseconds, and
    // it tries again when its link fails.
    if (name.startsWith('draft-') && !name.startsWith(`draft-${process.pid}-`)) removeDeadDraft(owners, name);
  }
}

function removeDeadDraft(owners: string, name: string): void {
  const pid = Number(name.split('-')[1]);
  if (processIdentity(pid) === undefined) rmSync(join(owners, name), { force: true });
}

function owned(directory: string, owner: Owner): IsobarError {
  return new IsobarError('STATE_DIRECTORY_OWNED', `${directory} is owned by process ${owner.pid}`, {
    expected: 'a directory that no running process owns',
    found: `process ${owner.pid}`,
    where: directory,
    pid: owner.pid,
  });
}

function unusable(directory: string, action: string, error: unknown): IsobarError {
  const found = error instanceof Error ? error.message : String(error);
  return new IsobarError(
    'STATE_DIRECTORY_UNUSABLE',
    `${directory} cannot be used: ${action}: ${found}`,
    { expected: 'a directory that can be written', found, where: directory },
    error,
  );
}
