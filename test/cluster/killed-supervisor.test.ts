/**
 * A supervisor is killed with -9 before each of its steps in the life of a slot (files that come and go, the spawn of a worker,
 * signals), and started again. Whatever the moment: no slot has two workers at any time, none is left over, the worker that
 * runs is the one that is reported, and the slot goes to another topology only when the old worker is gone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { processIdentity, silentLogger, systemClock } from '../../src/base/index.js';
import {
  connectCoordination,
  openEmbeddedCoordinator,
  type Coordination,
} from '../../src/coordination/index.js';

const BUILD = fileURLToPath(new URL('../../build', import.meta.url));
const PROCESS = fileURLToPath(new URL('./supervisor-process.mjs', import.meta.url));
const WORKER_ENTRY = fileURLToPath(new URL('../../src/supervisor/fake-worker.mjs', import.meta.url));
const PORT = 6700;
const SETTINGS = {
  'supervisor.slots': 1,
  'supervisor.heartbeat-interval': 50,
  'supervisor.worker-stop-timeout': 1000,
  'worker.restart-backoff': 20,
};
const NEVER = 0;
const LONGEST_MS = 20_000;

class Life {
  readonly #root: string;
  readonly #coordination: Coordination;
  readonly #close: () => Promise<void>;
  #supervisor: ChildProcess;
  lives = 1;

  private constructor(
    root: string,
    coordination: Coordination,
    close: () => Promise<void>,
    supervisor: ChildProcess,
  ) {
    this.#root = root;
    this.#coordination = coordination;
    this.#close = close;
    this.#supervisor = supervisor;
  }

  static async begin(dieAt: number): Promise<Life> {
    const root = mkdtempSync(join(tmpdir(), 'isobar-killed-'));
    const common = { clock: systemClock, logger: silentLogger };
    const coordinator = await openEmbeddedCoordinator({
      ...common,
      directory: join(root, 'coordinator'),
      socketPath: join(root, 'c.sock'),
      sessionTimeoutMs: 10_000,
    });
    const coordination = await connectCoordination({
      ...common,
      address: join(root, 'c.sock'),
      process: processIdentity(process.pid)!,
      settings: { 'coordinator.session-timeout': 10_000 },
    });
    mkdirSync(join(root, 'blobs'));
    const close = async (): Promise<void> => {
      await coordination.close();
      await coordinator.close();
      rmSync(root, { recursive: true, force: true });
    };
    return new Life(root, coordination, close, startSupervisor(root, dieAt));
  }

  get steps(): readonly string[] {
    return readFileSync(join(this.#root, 'steps.log'), 'utf8').trimEnd().split('\n');
  }

  async submit(id: string): Promise<void> {
    await this.#coordination.createTopology({
      id,
      name: id,
      submittedMs: 0,
      codeHash: this.#put('good'),
      descriptionHash: this.#put(`{"name":"${id}"}`),
      settings: {},
      secret: '00',
      phase: { kind: 'active' },
    });
  }

  async assign(topologyId: string, ports: readonly number[]): Promise<void> {
    const version = ((await this.#coordination.readAssignment(topologyId))?.version ?? 0) + 1;
    const executors = [[1, 1]] as const;
    const place = { supervisor: 's1', host: 'localhost', executors, startedMs: version };
    const slots = ports.map((port) => ({ ...place, port }));
    await this.#coordination.writeAssignment({ topologyId, version, tasks: [], slots });
  }

  /** The slot's worker is of that topology, is the only process of a worker, and is the one that is reported. */
  running(topologyId: string, beside?: number): Promise<number> {
    return this.#until(`a worker of ${topologyId}`, async () => {
      const slot = await this.#slot();
      const [pid] = this.workers();
      const isIt = slot?.state === 'running' && slot.topologyId === topologyId && slot.pid === pid;
      return isIt && pid !== beside ? pid : undefined;
    });
  }

  empty(): Promise<true> {
    return this.#until('an empty slot', async () => {
      const isEmpty = (await this.#slot())?.state === 'empty' && this.workers().length === 0;
      return isEmpty ? true : undefined;
    });
  }

  /** Processes of workers. Throws when there are two. */
  workers(): readonly number[] {
    const pids = readdirSync('/proc').flatMap((name) => {
      try {
        const words = /^\d+$/.test(name) ? readFileSync(`/proc/${name}/cmdline`, 'utf8') : '';
        return words.includes(`\0${this.#root}`) && words.includes('/launch-') ? [Number(name)] : [];
      } catch {
        return [];
      }
    });
    if (pids.length > 1) throw new Error(`two workers in one slot: ${pids.join(' ')}`);
    return pids;
  }

  /** Records, launch files, and what was being written; code is removed some time later, as a whole. */
  remains(): readonly string[] {
    const directory = join(this.#root, 'supervisor');
    const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
    return names.filter(
      (name) => !name.startsWith('code/') && /launch-[^/]*$|\/67\d\d\.json$|\/\.[^/]*$/u.test(name),
    );
  }

  async end(): Promise<void> {
    this.#supervisor.kill('SIGKILL');
    for (const pid of this.workers()) process.kill(pid, 'SIGKILL');
    await this.#close();
  }

  async #slot() {
    const [folded] = await this.#coordination.listHeartbeats();
    return folded?.slots.find(({ port }) => port === PORT);
  }

  async #until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    const deadlineMs = performance.now() + LONGEST_MS;
    for (;;) {
      if (this.#supervisor.signalCode !== null) {
        this.lives++;
        this.#supervisor = startSupervisor(this.#root, NEVER);
      }
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > deadlineMs)
        throw new Error(`waited in vain for ${what}; the slot: ${JSON.stringify(await this.#slot())}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  #put(text: string): string {
    const hash = createHash('sha256').update(text).digest('hex');
    writeFileSync(join(this.#root, 'blobs', hash), text);
    return hash;
  }
}

function startSupervisor(root: string, dieAt: number): ChildProcess {
  const words = { build: BUILD, root, workerEntry: WORKER_ENTRY, settings: SETTINGS, dieAt };
  return spawn(process.execPath, [PROCESS, JSON.stringify(words)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** The life of a slot: a worker, its crash, another topology, nothing. Returns the steps of the first supervisor. */
async function play(dieAt: number): Promise<readonly string[]> {
  const life = await Life.begin(dieAt);
  try {
    await life.submit('words');
    await life.submit('other');
    await life.assign('words', [PORT]);
    const first = await life.running('words');
    process.kill(first, 'SIGKILL');
    const second = await life.running('words', first);
    await life.assign('words', []);
    await life.assign('other', [PORT]);
    await life.running('other', second);
    await life.assign('other', []);
    await life.empty();
    const { steps } = life;
    expect(life.remains().join(' ')).toBe('');
    expect(life.lives).toBe(dieAt === NEVER ? 1 : 2);
    return steps;
  } finally {
    await life.end();
  }
}

describe('a supervisor', () => {
  it('that is killed before any step in the life of a slot leaves neither two workers nor one too many', async () => {
    const steps = await play(NEVER);
    expect(steps.filter((step) => step === 'spawn')).toHaveLength(3);
    const failures: string[] = [];
    for (let dieAt = 1; dieAt <= steps.length; dieAt++) {
      await play(dieAt).catch((error: unknown) =>
        failures.push(`${dieAt} (${steps[dieAt - 1]}): ${String(error)}`),
      );
    }
    expect(failures).toEqual([]);
  }, 300_000);
});
