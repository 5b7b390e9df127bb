/**
 * The private directory of one local cluster: where its sockets, logs and, unless told otherwise, its state lie.
 *
 *     RUN/run.json     who it belongs to ({@link RunRecord})
 *     RUN/s/           sockets; removed first, and by whoever of the run is last
 *     RUN/daemon.log   RUN/supervisor/workers/TOPOLOGY-PORT/{output.log,worker.log}
 *     RUN/state/       coordinator, blobs, dead letters
 *
 * Directories of runs that are dead are swept when the next run starts; what may be data of a user (dead letters, a
 * state directory of their own) is never removed.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  IsobarError,
  makePrivateDirectory,
  MAX_SOCKET_PATH_BYTES,
  toIsobarError,
  isSameProcessAlive,
  type ProcessIdentity,
} from '../../base/index.js';

const PREFIX = 'isobar-run-';
const RECORD_FILE = 'run.json';
/** The longest name of a socket in the directory, with its separator. */
const SOCKET_NAME_BYTES = 40;
const FALLBACK_BASE = '/tmp';

/** Who a run directory belongs to. */
export interface RunRecord {
  readonly format: 1;
  readonly keeper: ProcessIdentity;
  readonly socketDirectory: string;
}

export interface RunDirectory {
  readonly path: string;
  readonly socketDirectory: string;
  readonly stateDirectory: string;
  readonly supervisorDirectory: string;
  readonly deadLetterDirectory: string;
  readonly daemonLog: string;
  readonly controlSocket: string;
}

export interface RunDirectoryOptions {
  /** Durable state of the user's choosing (`--state`); default: inside the run's directory. */
  readonly stateDirectory?: string;
  /** Where run directories are made (`ISOBAR_HOME`); default: the system's directory for temporary files. */
  readonly base?: string;
  readonly keeper: ProcessIdentity;
}

/** Makes a fresh directory that no other run has. @throws STATE_DIRECTORY_UNUSABLE */
export function createRunDirectory(options: RunDirectoryOptions): RunDirectory {
  const base = options.base ?? tmpdir();
  try {
    makeDirectory(base);
    const path = realpathSync(mkdtempSync(join(base, PREFIX)));
    const own = join(path, 's');
    const fits = Buffer.byteLength(own) + SOCKET_NAME_BYTES <= MAX_SOCKET_PATH_BYTES;
    const socketDirectory = fits ? own : join(realpathSync(mkdtempSync(join(FALLBACK_BASE, PREFIX))), 's');
    makePrivateDirectory(socketDirectory);
    const record: RunRecord = { format: 1, keeper: options.keeper, socketDirectory };
    writeFileSync(join(path, RECORD_FILE), JSON.stringify(record));
    return runDirectory(path, socketDirectory, options.stateDirectory);
  } catch (error) {
    throw toIsobarError(error, 'STATE_DIRECTORY_UNUSABLE', {
      expected: 'a directory that can be written',
      found: error instanceof Error ? error.message : String(error),
      where: base,
    });
  }
}

function runDirectory(path: string, socketDirectory: string, given: string | undefined): RunDirectory {
  const stateDirectory = given ?? join(path, 'state');
  return {
    path,
    socketDirectory,
    stateDirectory,
    supervisorDirectory: join(path, 'supervisor'),
    deadLetterDirectory: join(stateDirectory, 'dead-letters'),
    daemonLog: join(path, 'daemon.log'),
    controlSocket: join(socketDirectory, 'control.sock'),
  };
}

/**
 * Removes a run's directory; what users may want stays: dead letters always, everything if `keepLogs`.
 * Returns whether something was kept.
 */
export function removeRunDirectory(
  {
    path,
    socketDirectory,
    deadLetterDirectory,
  }: Pick<RunDirectory, 'path' | 'socketDirectory' | 'deadLetterDirectory'>,
  options: { keepLogs: boolean },
): boolean {
  removeSockets(path, socketDirectory);
  if (options.keepLogs) {
    // Without it the next run does not take the directory for one to sweep.
    rmSync(join(path, RECORD_FILE), { force: true });
    return true;
  }
  const deadLetters = deadLetterDirectory.startsWith(`${path}/`) && hasEntries(deadLetterDirectory);
  if (!deadLetters) {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    return false;
  }
  for (const name of readdirSync(path)) {
    if (name !== 'state') rmSync(join(path, name), { recursive: true, force: true });
  }
  for (const name of readdirSync(join(path, 'state'))) {
    if (name !== 'dead-letters') rmSync(join(path, 'state', name), { recursive: true, force: true });
  }
  return true;
}

function removeSockets(path: string, socketDirectory: string): void {
  const outside = !socketDirectory.startsWith(path);
  rmSync(outside ? join(socketDirectory, '..') : socketDirectory, { recursive: true, force: true });
}

/**
 * Removes what runs left behind that were killed. A run is dead when its keeper is and none of the others that know its
 * directory (daemon, workers) runs any more.
 *
 * @param isInUse whether some process was started with a file below this directory
 */
export function sweepDeadRuns(
  base: string | undefined,
  isInUse: (path: string) => boolean,
): readonly string[] {
  const swept: string[] = [];
  const root = base ?? tmpdir();
  if (!existsSync(root)) return swept;
  for (const name of readdirSync(root)) {
    if (!name.startsWith(PREFIX)) continue;
    const path = join(root, name);
    const record = readRecord(path);
    if (record === undefined || isSameProcessAlive(record.keeper) || isInUse(path)) continue;
    const directory = runDirectory(path, record.socketDirectory, undefined);
    try {
      removeRunDirectory(directory, { keepLogs: false });
      swept.push(path);
    } catch {
      // Somebody else sweeps it at the same time, or it is not ours to remove: it harms nobody.
      continue;
    }
  }
  return swept;
}

/** undefined where there is none, or where another user's permissions forbid to look. */
function readRecord(path: string): RunRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(path, RECORD_FILE), 'utf8'));
    return isRunRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRunRecord(value: unknown): value is RunRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { format, keeper, socketDirectory } = value as Partial<RunRecord>;
  return format === 1 && typeof keeper?.pid === 'number' && typeof socketDirectory === 'string';
}

function hasEntries(directory: string): boolean {
  try {
    return readdirSync(directory).length > 0;
  } catch {
    return false;
  }
}

/**
 * As `mkdir -p`. Node's own `recursive` never returns where a parent exists and still answers ENOENT, as in /proc, and says
 * ENOENT of a file system that is read-only.
 */
function makeDirectory(path: string): void {
  if (isDirectory(path)) return;
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && isDirectory(path)) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || parent === path || existsSync(parent)) throw error;
    makeDirectory(parent);
    makeDirectory(path);
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The state directory of the user's choosing, checked before anything is started. @throws STATE_DIRECTORY_UNUSABLE */
export function checkStateDirectory(path: string): void {
  try {
    makeDirectory(path);
    const probe = join(path, `.probe-${process.pid}`);
    writeFileSync(probe, '');
    rmSync(probe);
  } catch (error) {
    throw new IsobarError(
      'STATE_DIRECTORY_UNUSABLE',
      `the state directory ${path} cannot be used`,
      {
        expected: 'a directory that can be written',
        found: error instanceof Error ? error.message : String(error),
        where: path,
      },
      error,
    );
  }
}
