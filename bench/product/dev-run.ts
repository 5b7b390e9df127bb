/**
 * One cluster of `isobar dev` in a directory of its own: its commands, the processes that belong to it (they are detached, so
 * they are found by a mark in their environment), and its end.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killProcess, within } from '../child.js';
import { CLI } from '../load-built.js';
import { processesMarked } from '../machine.js';

const MARK = 'ISOBAR_BENCH_RUN';
const COMMAND_MS = 60_000;

export class DevRun {
  /** Everything of the cluster is below it, and whatever the bench puts there. */
  readonly root = mkdtempSync(join(tmpdir(), 'isobar-bench-'));
  readonly directory = join(this.root, 'dev');
  readonly #environment: Readonly<Record<string, string>>;
  readonly #mark = randomUUID();

  /** @param environment what the command that starts the daemons passes on to them and to workers. */
  constructor(environment: (root: string) => Readonly<Record<string, string>>) {
    if (!existsSync(CLI)) throw new Error(`${CLI} is missing. Build the package first.`);
    this.#environment = environment(this.root);
  }

  /** Starts daemons that nobody else's ports meet. */
  async start(...words: readonly string[]): Promise<void> {
    await this.ask('dev', '--set', 'metrics.port=0', ...words);
  }

  /** Runs a command with --json to its end and returns its last line. Rejects when it fails. */
  async ask(...words: readonly string[]): Promise<unknown> {
    const all = [CLI, ...words, '--json', '--directory', this.directory];
    const child = spawn(process.execPath, all, {
      env: { ...process.env, ...this.#environment, [MARK]: this.#mark },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [output, errors] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const command = `isobar ${words.join(' ')}`;
    const code = await within(
      COMMAND_MS,
      command,
      new Promise<number | null>((done) => child.on('close', done)),
    );
    if (code !== 0) throw new Error(`${command} ended with code ${code}.\n${output}${errors}`);
    return JSON.parse(output.trim().split('\n').at(-1) ?? 'null');
  }

  /** Keeper, daemons and workers that live now. */
  pids(): readonly number[] {
    return processesMarked(MARK, this.#mark);
  }

  /** Ends all of it, politely first, and removes the directory. */
  async close(): Promise<void> {
    try {
      await this.ask('dev', 'stop');
    } finally {
      for (const pid of this.pids()) killProcess(pid);
      rmSync(this.root, { recursive: true, force: true });
    }
  }
}
