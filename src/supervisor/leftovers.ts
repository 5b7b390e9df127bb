/**
 * Workers of a supervisor that nobody supervises any more: found by the launch files in their command lines, asked to end,
 * or killed with their process groups.
 */
import { basename, join, resolve, sep } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isSameProcessAlive, type ProcessIdentity } from '../base/index.js';
import { findWorkerProcesses, killWorkerGroup, terminateWorker } from './worker-processes.js';

const POLL_MS = 20;

/** Whether an argument of a process is the launch file of a worker of the supervisor with this directory of workers. */
export function isLaunchFileBelow(workersDirectory: string): (argument: string) => boolean {
  return (argument) =>
    argument.startsWith(workersDirectory + sep) && basename(argument).startsWith('launch-');
}

/** Where a supervisor has the directories of its workers. */
export function workersDirectoryOf(supervisorDirectory: string): string {
  return join(resolve(supervisorDirectory), 'workers');
}

/** The workers that were started from a supervisor's directory and still run, whoever watches them. */
export function workerProcessesOf(supervisorDirectory: string): readonly ProcessIdentity[] {
  const isLaunchFile = isLaunchFileBelow(workersDirectoryOf(supervisorDirectory));
  return findWorkerProcesses(isLaunchFile).map(({ identity }) => identity);
}

/** Kills all workers of a supervisor, which must be gone itself, with what they have started. */
export function killWorkers(supervisorDirectory: string): void {
  for (const identity of workerProcessesOf(supervisorDirectory)) killWorkerGroup(identity);
}

/**
 * Asks the workers of a supervisor, which must be gone itself, to end; kills those that take longer than `timeoutMs`.
 * Resolves when all are verified gone.
 */
export async function endWorkers(supervisorDirectory: string, timeoutMs: number): Promise<void> {
  const workers = workerProcessesOf(supervisorDirectory);
  for (const identity of workers) terminateWorker(identity);
  const deadlineMs = performance.now() + timeoutMs;
  while (workers.some((identity) => isSameProcessAlive(identity))) {
    if (performance.now() >= deadlineMs) for (const identity of workers) killWorkerGroup(identity);
    await pause(POLL_MS);
  }
  // What they have started and left behind.
  for (const identity of workers) killWorkerGroup(identity);
}
