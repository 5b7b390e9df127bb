/**
 * Runs one job in a child process with a deadline: it sends one answer over its IPC channel, or it ends, or it is ended.
 * What it prints is kept, to be shown if something goes wrong.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const MAX_OUTPUT_BYTES = 64 * 1024;
const OUTPUT_GRACE_MS = 250;

export type ChildEnd<T> =
  | { readonly kind: 'answered'; readonly answer: T; readonly output: string }
  | { readonly kind: 'ended'; readonly how: string; readonly output: string }
  | { readonly kind: 'timeout'; readonly output: string };

export interface ChildJob {
  readonly entry: URL;
  readonly arguments: readonly string[];
  readonly timeoutMs: number;
  /** Ends the child; {@link runChild} then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Runs the job to its first answer, its end or its deadline; the child is gone when this resolves. */
export function runChild<T>(job: ChildJob): Promise<ChildEnd<T>> {
  return new Promise((resolve, reject) => {
    const { signal } = job;
    if (signal?.aborted === true) return reject(abortReason(signal));
    const child = fork(fileURLToPath(job.entry), [...job.arguments], {
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    const output: Buffer[] = [];
    let outputBytes = 0;
    const keep = (chunk: Buffer): void => {
      if (outputBytes < MAX_OUTPUT_BYTES) output.push(chunk.subarray(0, MAX_OUTPUT_BYTES - outputBytes));
      outputBytes += chunk.length;
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    let answer: { value: T } | undefined;
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, job.timeoutMs);
    const onAbort = (): void => void child.kill('SIGKILL');
    signal?.addEventListener('abort', onAbort, { once: true });
    // The child is one of our own entries: it sends what its docstring says, and only once.
    child.on('message', (message) => {
      answer ??= { value: message as T };
    });
    child.once('error', (error) => {
      finish();
      reject(error);
    });
    // Its output ends with `close`; a process of the user's that it left behind may hold it open.
    child.once('exit', (...how) => setTimeout(onEnd, OUTPUT_GRACE_MS, ...how));
    child.once('close', (code, killedBy) => onEnd(code, killedBy));
    function onEnd(code: number | null, killedBy: NodeJS.Signals | null): void {
      finish();
      const text = Buffer.concat(output).toString('utf8').trimEnd();
      if (signal?.aborted === true) reject(abortReason(signal));
      else if (answer !== undefined) resolve({ kind: 'answered', answer: answer.value, output: text });
      else if (timedOut) resolve({ kind: 'timeout', output: text });
      else resolve({ kind: 'ended', how: killedBy ?? `exit code ${code ?? 'unknown'}`, output: text });
    }
    function finish(): void {
      clearTimeout(timer);
      child.stdout?.destroy();
      child.stderr?.destroy();
      signal?.removeEventListener('abort', onAbort);
    }
  });
}

function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason });
}
