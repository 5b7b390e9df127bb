/** A cluster of `isobar dev` that the accountant does harm to, and what it needs for that. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findProcesses, listeningSockets, pidsOf } from './processes.js';

/** Its supervisors. */
export const NAMES = ['a', 'b', 'c'] as const;
/** The command, as it gets installed. */
export const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const GONE_MS = 10_000;

interface Daemons {
  readonly keeper: { readonly pid: number } | null;
  readonly state: string;
  readonly daemons: readonly { readonly id: string; readonly pid: number | null }[];
}

/** A cluster of `isobar dev` with three supervisors of three slots, in a directory of its own. */
export class Cluster {
  readonly root = mkdtempSync(join(tmpdir(), 'isobar-faults-'));
  readonly sinks = join(this.root, 'sinks');
  readonly directory = join(this.root, 'dev');
  readonly #environment: Readonly<Record<string, string>>;

  /** @param environment of the topology; FAULTS_DIRECTORY is added */
  constructor(environment: Readonly<Record<string, string>> = {}) {
    mkdirSync(this.sinks);
    this.#environment = { FAULTS_DIRECTORY: this.sinks, ...environment };
  }

  /** Runs a command with --json and returns its last line. @throws if it fails, unless `mayFail` */
  run(words: readonly string[], mayFail = false): Record<string, unknown> {
    const ended = spawnSync(process.execPath, [CLI, ...words, '--directory', this.directory, '--json'], {
      encoding: 'utf8',
      env: { ...process.env, ...this.#environment },
    });
    if (ended.status !== 0 && !mayFail)
      throw new Error(`isobar ${words.join(' ')} ended with ${ended.status}: ${ended.stdout}${ended.stderr}`);
    return JSON.parse(ended.stdout.trim().split('\n').at(-1) ?? '{}') as Record<string, unknown>;
  }

  /** @param words further options of `isobar dev` */
  start(words: readonly string[] = []): void {
    const supervisors = NAMES.flatMap((name) => ['--supervisor', `name=${name},host=h-${name},slots=3`]);
    this.run(['dev', ...supervisors, ...words]);
  }

  status(): Daemons {
    // As `dev status` promises in docs/json-output.md.
    return this.run(['dev', 'status'], true) as unknown as Daemons;
  }

  pidOf(id: string): number {
    const { keeper, daemons } = this.status();
    const pid = id === 'keeper' ? keeper?.pid : daemons.find((one) => one.id === id)?.pid;
    if (pid === undefined || pid === null) throw new Error(`${id} does not run`);
    return pid;
  }

  workers(): readonly number[] {
    return pidsOf(this.directory, 'worker');
  }

  /** Each worker has its launch file, in its supervisor's directory, on its command line. */
  workersOf(supervisor: string): readonly number[] {
    return pidsOf(join(this.directory, 'supervisors', supervisor), 'worker');
  }

  /** What is still there some time after the cluster was stopped; null: nothing. */
  async leftBehind(): Promise<string | null> {
    const endMs = performance.now() + GONE_MS;
    for (;;) {
      const processes = findProcesses(this.directory);
      const sockets = listeningSockets(this.directory);
      if (processes.length === 0 && sockets.length === 0) return null;
      if (performance.now() > endMs)
        return `left behind: ${[...processes.map(({ pid, kind }) => `${kind} ${pid}`), ...sockets].join(', ')}`;
      await pause(20);
    }
  }

  /** Ends every process that is left; keeps what went wrong, so that it can be looked at. */
  dispose(keep: boolean): void {
    for (const { pid } of findProcesses(this.directory)) kill(pid);
    if (!keep) rmSync(this.root, { recursive: true, force: true });
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

export function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)]!;
}
