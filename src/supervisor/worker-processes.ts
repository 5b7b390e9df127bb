/**
 * Worker processes as the operating system sees them: starting one detached, ending its process group, finding those
 * that an earlier supervisor started, and what they last wrote.
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { IsobarError, isSameProcessAlive, processIdentity, type ProcessIdentity } from '../base/index.js';

const SOURCE_MAPS = '--enable-source-maps';
const KEPT_OUTPUTS = 3;
const TAIL_BYTES = 4096;
const TAIL_LINES = 12;

/** How a child of this supervisor ended; null for a process that an earlier supervisor had started. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface StartedProcess {
  readonly identity: ProcessIdentity;
  /** Resolves when the process has ended and has been reaped. Never rejects. */
  readonly exited: Promise<ProcessExit>;
}

/**
 * Starts a worker detached, in a process group of its own, with its output going to a file: it outlives this process.
 * It keeps the working directory and environment of its supervisor, so that relative paths of users mean the same.
 *
 * @throws WORKER_START_FAILED
 */
export async function spawnWorker(options: {
  workerEntry: string;
  launchFile: string;
  outputPath: string;
}): Promise<StartedProcess> {
  const { workerEntry, launchFile, outputPath } = options;
  const output = openSync(outputPath, 'a', 0o600);
  try {
    const child = spawn(process.execPath, [SOURCE_MAPS, workerEntry, launchFile], {
      detached: true,
      stdio: ['ignore', output, output],
    });
    const exited = new Promise<ProcessExit>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    const { pid } = child;
    if (pid === undefined) {
      const error = await new Promise<Error>((resolve) => child.once('error', resolve));
      throw new IsobarError(
        'WORKER_START_FAILED',
        `the worker process could not be started: ${error.message}`,
        {
          where: workerEntry,
        },
      );
    }
    child.on('error', () => undefined);
    child.unref();
    // Not reaped before `exit` is told, so the pid is still this process's, even if it has ended already.
    return { identity: processIdentity(pid) ?? { pid, startTime: '' }, exited };
  } finally {
    closeSync(output);
  }
}

/** Asks a worker to end. */
export function terminateWorker(identity: ProcessIdentity): void {
  if (isSameProcessAlive(identity)) signal(identity.pid, 'SIGTERM');
}

/**
 * Ends a worker's whole process group at once, and what it left behind of it.
 *
 * A pid that has been given to another process is left alone: the system does not give away the number of a group that
 * still has members, so then there is nobody to end.
 */
export function killWorkerGroup(identity: ProcessIdentity): void {
  if (isSameProcessAlive(identity)) {
    signal(-identity.pid, 'SIGKILL');
    signal(identity.pid, 'SIGKILL');
    return;
  }
  const holder = processIdentity(identity.pid);
  if (holder === undefined || holder.startTime === identity.startTime) signal(-identity.pid, 'SIGKILL');
}

/** Workers among the processes of this machine, by the launch file in their command line. Empty where there is no /proc. */
export function findWorkerProcesses(
  isLaunchFile: (argument: string) => boolean,
): { readonly launchFile: string; readonly identity: ProcessIdentity }[] {
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    let commandLine: string;
    try {
      commandLine = readFileSync(`/proc/${name}/cmdline`, 'utf8');
    } catch {
      return [];
    }
    // As `spawnWorker` makes it: whoever else reads a launch file is no worker.
    const [, option, , launchFile, ...rest] = commandLine.split('\0');
    if (
      option !== SOURCE_MAPS ||
      launchFile === undefined ||
      rest.join('') !== '' ||
      !isLaunchFile(launchFile)
    )
      return [];
    const identity = processIdentity(Number(name));
    return identity === undefined ? [] : [{ launchFile, identity }];
  });
}

/** Makes room for a fresh file at `path`, keeping the last three of its predecessors as `path.1` to `path.3`. */
export function rotateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  for (let age = KEPT_OUTPUTS; age >= 1; age--) {
    const from = age === 1 ? path : `${path}.${age - 1}`;
    if (existsSync(from)) renameSync(from, `${path}.${age}`);
  }
}

/** The last lines of a text file; empty if there is none. */
export function lastLines(path: string): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const read = readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString('utf8', 0, read).trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  } finally {
    closeSync(file);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone already is what was wanted; a process that may not be signalled shows as one that is still there.
  }
}
