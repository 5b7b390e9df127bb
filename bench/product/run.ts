/**
 * One `isobar run` as a child process: what it prints, which processes belong to it (daemons and workers are detached,
 * so they are found by a mark in their environment), and its end.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { resolve } from 'node:path';
import { killProcess, within } from '../child.js';
import { CLI } from '../load-built.js';
import { processesMarked } from '../machine.js';

const MARK = 'ISOBAR_BENCH_RUN';
const END_MS = 60_000;
const ERROR_TAIL = 4000;

export interface RunOptions {
  /** The application, from the package's root. */
  readonly app: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export class ProductRun {
  readonly startedMs: number;
  readonly #mark = randomUUID();
  readonly #child: ChildProcess;
  readonly #closed: Promise<number>;
  #onLine: (line: unknown) => void = () => undefined;
  #errors = '';
  #pids: readonly number[] = [];
  #hasClosed = false;

  constructor(options: RunOptions) {
    const app = resolve(options.app);
    for (const path of [CLI, app]) {
      if (!existsSync(path))
        throw new Error(`${path} is missing. Build the package and run the bench from its root.`);
    }
    this.startedMs = Date.now();
    this.#child = spawn(process.execPath, [CLI, 'run', app, '--json', ...options.arguments], {
      env: { ...process.env, ...options.environment, [MARK]: this.#mark },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { stdout, stderr } = this.#child;
    createInterface({ input: stdout! }).on('line', (line) => this.#readLine(line));
    stderr!.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-ERROR_TAIL);
    });
    this.#closed = new Promise((done) => {
      this.#child.on('close', (code, signal) => {
        this.#hasClosed = true;
        done(code ?? (signal === null ? 1 : 128));
      });
    });
  }

  /** Called with each line of JSON. */
  set onLine(onLine: (line: unknown) => void) {
    this.#onLine = onLine;
  }

  get hasClosed(): boolean {
    return this.#hasClosed;
  }

  /** The end of what it wrote to standard error. */
  get errors(): string {
    return this.#errors.trim();
  }

  /** Command line, daemons and workers. Looked up once in a while, since it reads all of /proc. */
  pids(): readonly number[] {
    return this.#pids;
  }

  lookUpProcesses(): readonly number[] {
    this.#pids = processesMarked(MARK, this.#mark);
    return this.#pids;
  }

  /** Asks it to drain and end, as Ctrl-C does. Rejects when it ends with a failure, or not at all. */
  async interrupt(): Promise<void> {
    this.#child.kill('SIGINT');
    const code = await within(END_MS, 'Draining the topology', this.#closed);
    if (code !== 0 && code !== 130) throw new Error(`isobar run ended with code ${code}.\n${this.errors}`);
  }

  /** Ends it and all that it has started, at once. */
  kill(): void {
    for (const pid of processesMarked(MARK, this.#mark)) killProcess(pid);
  }

  #readLine(text: string): void {
    let line: unknown;
    try {
      line = JSON.parse(text);
    } catch {
      this.#errors = `${this.#errors}\nNot a line of JSON: ${text}`.slice(-ERROR_TAIL);
      return;
    }
    this.#onLine(line);
  }
}
