/** Runs the real command line as users do: in a folder of their own, without a terminal, its output collected. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The build under test; a packed installation can be tested by naming its command. */
export const CLI =
  process.env['ISOBAR_CLI'] ?? fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs, with its own folder for run directories, so that nothing else is counted as its own. */
export class RunningCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly home: string;
  stdout = '';
  stderr = '';

  constructor(
    words: readonly string[],
    options: { directory: string; home: string; environment?: Record<string, string> },
  ) {
    this.home = options.home;
    this.child = spawn(process.execPath, [CLI, ...words], {
      cwd: options.directory,
      env: { ...process.env, NO_COLOR: '1', ISOBAR_HOME: options.home, ...options.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code, signal) =>
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }),
      );
    });
  }

  /** The lines of --json so far. */
  lines(): Record<string, unknown>[] {
    const whole = this.stdout.slice(0, this.stdout.lastIndexOf('\n') + 1);
    return whole
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  line(type: string): Record<string, unknown> | undefined {
    return this.lines().findLast((line) => line['type'] === type);
  }
}

/** Folders and commands of one test file; {@link Workshop.close} ends and removes all of them. */
export class Workshop {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'isobar-test-')));
  readonly home = join(this.directory, 'home');
  readonly #commands: RunningCommand[] = [];

  constructor() {
    mkdirSync(this.home);
  }

  write(path: string, text: string): string {
    const full = join(this.directory, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  }

  start(
    words: readonly string[],
    options: { directory?: string; environment?: Record<string, string> } = {},
  ): RunningCommand {
    const command = new RunningCommand(words, {
      directory: options.directory ?? this.directory,
      home: this.home,
      ...(options.environment === undefined ? {} : { environment: options.environment }),
    });
    this.#commands.push(command);
    return command;
  }

  run(words: readonly string[], options: { directory?: string } = {}): Promise<Ended> {
    return this.start(words, options).ended;
  }

  /** Everything of the runs in this workshop: processes with a path in it, and open sockets. */
  processes(): { pid: number; kind: 'daemon' | 'worker' | 'other' }[] {
    return processesBelow(this.home);
  }

  sockets(): string[] {
    return readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/)[7] ?? '')
      .filter((path) => path.startsWith(this.home));
  }

  /** Names of what runs have left in their folder. */
  remains(): string[] {
    return readdirSync(this.home);
  }

  async close(): Promise<void> {
    for (const { child } of this.#commands) if (child.exitCode === null) child.kill('SIGKILL');
    for (const { pid } of this.processes()) process.kill(pid, 'SIGKILL');
    await Promise.all(this.#commands.map(({ ended }) => ended));
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

function processesBelow(directory: string): { pid: number; kind: 'daemon' | 'worker' | 'other' }[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    let words: string;
    try {
      const state = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /s, '')[0];
      if (state === 'Z' || state === 'X') return [];
      words = readFileSync(`/proc/${name}/cmdline`, 'utf8');
    } catch {
      // It has ended in between.
      return [];
    }
    if (!words.includes(directory)) return [];
    const kind = words.includes('daemon-main.js')
      ? 'daemon'
      : words.includes('worker/main.js')
        ? 'worker'
        : 'other';
    return [{ pid: Number(name), kind }];
  });
}

/** Waits for a condition and fails with what it was about. */
export async function until<T>(
  what: string,
  condition: () => T | undefined | false,
  timeoutMs = 30_000,
): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const value = condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadlineMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A topology of numbers from 0 up to `rows` (forever if null), each summed up by a bolt that prints the sum at the end. */
export function numbersApp(rows: number | null, options: { name?: string; workers?: number } = {}): string {
  const { name = 'numbers', workers = 1 } = options;
  return `
import { setTimeout as pause } from 'node:timers/promises';
import { bolt, spout, t, topology } from 'isobar';

const numbers = spout({
  emits: { value: t.int64 },
  async *read(context, from: number = 0) {
    for (let value = from; ${rows === null ? 'true' : `value < ${rows}`}; value++) {
      yield { row: { value }, position: value + 1 };
      ${rows === null ? 'await pause(2);' : ''}
    }
  },
});
const sum = bolt({
  takes: { value: t.int64 },
  prepare(context, saved?: number) {
    let total = saved ?? 0;
    console.log('task ' + context.index + ' is ready');
    return {
      process({ value }) { total += value; },
      save() { return total; },
      end() { console.log('the sum is ' + total); },
    };
  },
});
export default topology('${name}', { 'topology.workers': ${workers} }, (b) => {
  const source = b.spout('numbers', numbers);
  b.bolt('sum', sum, { parallelism: ${workers} }).shuffle(source);
});
`;
}
