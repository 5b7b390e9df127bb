/**
 * Which call of user code a thread is in: its progress words say it to the worker's main thread, so that a call that does
 * not return can be named from outside. The thread itself is then the last to know.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { P_CALLS, P_IN_CALL, P_TASK } from './counters.js';

/** Names by their code in `P_IN_CALL`; 0: in none. */
const CALLS = [
  '',
  'process',
  'tick',
  'end',
  'prepare',
  'read',
  'open',
  'next',
  'ack',
  'fail',
  'save',
  'close',
  'activate',
  'deactivate',
  'a custom grouping',
  'lag',
] as const;

export type CallName = Exclude<(typeof CALLS)[number], ''>;

export const IN_PROCESS = codeOf('process');
export const IN_READ = codeOf('read');
export const IN_NEXT = codeOf('next');

/** The call that a thread is in; null: in none. */
export function callIn(progress: Int32Array): string | null {
  const code = progress[P_IN_CALL]!;
  return code === 0 ? null : (CALLS[code] ?? null);
}

/** Runs a call of a task; one inside another gives way to it again. The hot path writes the words itself. */
export function inCall<T>(progress: Int32Array, task: number, call: CallName, run: () => T): T {
  const [outerCall, outerTask] = [progress[P_IN_CALL]!, progress[P_TASK]!];
  progress[P_TASK] = task;
  progress[P_IN_CALL] = codeOf(call);
  progress[P_CALLS]!++;
  try {
    return followed(task, run);
  } finally {
    progress[P_IN_CALL] = outerCall;
    if (outerCall !== 0) progress[P_TASK] = outerTask;
  }
}

function codeOf(call: CallName): number {
  return CALLS.indexOf(call);
}

/** Knows the task also behind an `await`; undefined: nobody has asked for that. */
let callers: AsyncLocalStorage<number> | undefined;

/**
 * From now on calls of this thread are followed over their awaits. It slows promises down, so it begins when user code first
 * does something outside of any call that somebody wants to know the task of.
 */
export function followCalls(): void {
  callers ??= new AsyncLocalStorage<number>();
}

export function areCallsFollowed(): boolean {
  return callers !== undefined;
}

/** Runs a part of a call of `task` that is not marked by {@link inCall}. */
export function followed<T>(task: number, run: () => T): T {
  return callers === undefined ? run() : callers.run(task, run);
}

/** Task to whose call the running code belongs; undefined: not known. */
export function callingTask(progress: Int32Array): number | undefined {
  return progress[P_IN_CALL] === 0 ? callers?.getStore() : progress[P_TASK];
}
