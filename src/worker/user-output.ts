/**
 * What user code prints in an executor thread: `console`, `process.stdout` and `process.stderr` become records of the worker's
 * log, each with the task that printed it. It is written where it is printed, so that a thread that ends at once loses nothing.
 *
 * U1  A text is one record; what has no line break yet waits for it, and is written when the thread ends.
 * U2  Printing never throws and never waits for another thread.
 */
import { StringDecoder } from 'node:string_decoder';
import type { Logger } from '../base/index.js';

/** Of what stood in the call of `console`, or the stream that was written to. */
export type OutputKind = 'debug' | 'log' | 'info' | 'warn' | 'error' | 'trace' | 'stdout' | 'stderr';

export interface OutputTarget {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly console: Console;
}

/** What is replaced of a stream of Node's. */
export type OutputStream = Pick<NodeJS.WriteStream, 'write'>;

type Done = (error?: Error | null) => void;

export interface Capture {
  /** Writes what still waits for its line break. */
  flush(): void;
  /** Gives console and streams back as they were. */
  release(): void;
}

/** Longer texts are several records. */
const MAX_RECORD_LENGTH = 262_144;
const CONSOLE_KINDS = ['debug', 'log', 'info', 'warn', 'error', 'trace'] as const;

/** @param onText called with each text, without its last line break */
export function captureOutput(
  target: OutputTarget,
  onText: (kind: OutputKind, text: string) => void,
): Capture {
  let kind: OutputKind | undefined;
  const streams = (['stdout', 'stderr'] as const).map((name) => {
    const stream = target[name];
    // The method itself, to be put back where it was.
    const before = Object.getOwnPropertyDescriptor(stream, 'write');
    const decoder = new StringDecoder('utf8');
    let waiting = '';
    const take = (text: string): void => {
      const end = text.lastIndexOf('\n');
      if (end < 0 && waiting.length + text.length <= MAX_RECORD_LENGTH) {
        waiting += text;
        return;
      }
      const whole = waiting + (end < 0 ? text : text.slice(0, end));
      waiting = end < 0 ? '' : text.slice(end + 1);
      for (let at = 0; at === 0 || at < whole.length; at += MAX_RECORD_LENGTH)
        onText(kind ?? name, whole.slice(at, at + MAX_RECORD_LENGTH));
    };
    stream.write = (chunk: string | Uint8Array, encoding?: BufferEncoding | Done, done?: Done) => {
      if (typeof chunk !== 'string') take(decoder.write(Buffer.from(chunk)));
      else if (typeof encoding !== 'string' || encoding.startsWith('utf')) take(chunk);
      else take(decoder.write(Buffer.from(chunk, encoding)));
      const called = typeof encoding === 'function' ? encoding : done;
      // A callback of a stream comes later, whoever gave it.
      if (called !== undefined) process.nextTick(called);
      return true;
    };
    return {
      flush: () => {
        const rest = waiting + decoder.end();
        waiting = '';
        if (rest !== '') onText(name, rest);
      },
      release: () => {
        if (before === undefined) Reflect.deleteProperty(stream, 'write');
        else Object.defineProperty(stream, 'write', before);
      },
    };
  });
  const restored = CONSOLE_KINDS.map((name) => {
    const before = target.console[name].bind(target.console);
    target.console[name] = (...values: unknown[]): void => {
      const outer = kind;
      kind = name;
      try {
        before(...values);
      } finally {
        kind = outer;
      }
    };
    return () => {
      target.console[name] = before;
    };
  });
  return {
    flush: () => {
      for (const stream of streams) stream.flush();
    },
    release: () => {
      for (const { release } of streams) release();
      for (const restore of restored) restore();
    },
  };
}

/**
 * Writes texts to a log, each with its task.
 *
 * @param taskOf the task that is printing now; undefined: not known
 */
export function outputRecords(
  logger: Logger,
  taskOf: () => { readonly component: string; readonly task: number } | undefined,
): (kind: OutputKind, text: string) => void {
  const speakers = new Map<string, Logger>();
  return (kind, text) => {
    const task = taskOf();
    const key = `${kind} ${task?.task ?? ''}`;
    let speaker = speakers.get(key);
    if (speaker === undefined) {
      speaker = logger.child({ ...task, output: kind });
      speakers.set(key, speaker);
    }
    speaker[levelOf(kind)](text);
  };
}

function levelOf(kind: OutputKind): 'debug' | 'info' | 'warn' | 'error' {
  switch (kind) {
    case 'debug':
    case 'error':
    case 'warn':
      return kind;
    case 'trace':
    case 'stderr':
      return 'warn';
    case 'log':
    case 'info':
    case 'stdout':
      return 'info';
  }
}
