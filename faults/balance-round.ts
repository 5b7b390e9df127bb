/**
 * One round of balance with real processes: three supervisors of three slots each come up in a random order within three
 * seconds, a topology of unequal parallelism waits for them, and where its executors run is counted by machine.
 *
 * `balance` looks at the start, `balance-machine` then kills a machine and brings it back, `balance-none` does the first without
 * balance, to show what it saves.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type * as Api from '../build/api/index.js';
import { CLI, kill, NAMES } from './cluster.js';
import { findProcesses } from './processes.js';
import { createRandom } from './random.js';
import type { RoundResult } from './round.js';
import { countRecords } from './sinks.js';

export const BALANCE_FAULTS = ['balance', 'balance-none', 'balance-machine'] as const;
export type BalanceFault = (typeof BALANCE_FAULTS)[number];

export interface BalanceResult extends RoundResult {
  /** Executors by machine, ascending: when all run, with a machine less, and after its return. */
  readonly spreads: Readonly<Record<string, readonly number[]>>;
  /** From the moment the third supervisor was there until the balanced executors ran, ms; negative: before it. */
  readonly balancedAfterMs: number | null;
  /** `placed`: so from the start. `moved`: by moving that many workers. */
  readonly how: string;
  /** Workers that moved when the machine came back; null: it did not go. */
  readonly movesAtReturn: number | null;
  /** Longest time without a row while the machine came back, ms. */
  readonly longestGapMs: number | null;
}

const APP = fileURLToPath(new URL('../../faults/balance-app.ts', import.meta.url));
const COUNTS = [
  [2, 4, 6],
  [1, 2, 3],
] as const;
const SPREAD_MS = 3000;
const LIMIT_MS = 60_000;
const POLL_MS = 20;
/** A placement that has not changed for so long is at rest. */
const REST_MS = 1500;

export async function runBalanceRound(
  round: number,
  seed: number,
  fault: BalanceFault,
): Promise<BalanceResult> {
  const cluster = new Cluster(COUNTS[fault === 'balance' && round % 5 === 4 ? 1 : 0], createRandom(seed));
  const startMs = performance.now();
  let problem: string | null = 'did not end';
  try {
    const facts = await cluster.play(fault);
    await cluster.command('dev', 'stop');
    problem = facts.problems.length > 0 ? `${facts.problems.join('; ')} (see ${cluster.root})` : null;
    return {
      round,
      seed,
      fault: `${fault} ${cluster.counts.join('-')}`,
      rows: countRecords(cluster.sinks),
      lost: 0,
      duplicates: 0,
      recoveryMs: facts.recoveryMs,
      needlessRestarts: 0,
      deadLetters: 0,
      seconds: (performance.now() - startMs) / 1000,
      problem,
      spreads: facts.spreads,
      balancedAfterMs: facts.balancedAfterMs,
      how: facts.how,
      movesAtReturn: facts.movesAtReturn,
      longestGapMs: facts.longestGapMs,
    };
  } finally {
    cluster.close();
    // What went wrong can be looked at.
    if (problem === null) rmSync(cluster.root, { recursive: true, force: true });
  }
}

interface Facts {
  readonly problems: readonly string[];
  readonly spreads: Readonly<Record<string, readonly number[]>>;
  readonly balancedAfterMs: number | null;
  readonly how: string;
  readonly recoveryMs: number | null;
  readonly movesAtReturn: number | null;
  readonly longestGapMs: number | null;
}

/** Slots with executors, and how many user executors each runs; undefined: not all run yet. */
type Running = ReadonlyMap<string, number>;

class Cluster {
  readonly root = mkdtempSync(join(tmpdir(), 'isobar-faults-'));
  readonly sinks = join(this.root, 'sinks');
  readonly directory = join(this.root, 'dev');
  readonly counts: readonly number[];
  readonly #random: () => number;
  #client: Api.ClusterClient | undefined;

  constructor(counts: readonly number[], random: () => number) {
    this.counts = counts;
    this.#random = random;
    mkdirSync(this.sinks);
  }

  get executors(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  async play(fault: BalanceFault): Promise<Facts> {
    const supervisors = NAMES.flatMap((name) => ['--supervisor', `name=${name},host=h-${name},slots=3`]);
    await this.command('dev', ...supervisors);
    const { clusterClient } = await loadApi();
    this.#client = clusterClient(this.directory);
    for (const name of NAMES) await this.command('dev', 'supervisor', 'stop', name, '--crash');
    await this.until('no supervisor is there', async () => (await this.#supervisors()) === 0);
    const mode = fault === 'balance-none' ? 'none' : 'tasks';
    // Waits as long as the last supervisor may take: what is there in time is placed as a whole.
    await this.command('submit', APP, '--no-check', '--set', `load-balance.mode=${mode}`);

    let upMs = Infinity;
    const order = shuffled(NAMES, this.#random);
    const starts = order.map(async (name) => {
      await pause(SPREAD_MS * this.#random());
      await this.command('dev', 'supervisor', 'start', name);
    });
    const watch = (async (): Promise<void> => {
      await this.until(
        'three supervisors are there',
        async () => (await this.#supervisors()) === NAMES.length,
      );
      upMs = performance.now();
    })();
    const isEven = (running: Running): boolean => isBalanced(this.#spreadOf(running));
    const first = await this.until('all executors run', () => this.#running());
    let firstMs = performance.now();
    await Promise.all([...starts, watch]);
    const problems: string[] = [];
    let last = first;
    if (fault === 'balance-none') last = await this.#atRest();
    else if (!isEven(first)) {
      last = await this.until('executors run in balance', async () => {
        const running = await this.#running();
        return running !== undefined && isEven(running) && running;
      });
      firstMs = performance.now();
    }
    const balancedAfterMs = Math.round(firstMs - upMs);
    const moves = movedBetween(first, last);
    const spreads: Record<string, readonly number[]> = { start: this.#spreadOf(last) };
    if (fault !== 'balance-none' && balancedAfterMs > 2000)
      problems.push(`balanced only ${balancedAfterMs} ms after the third supervisor was there`);
    const facts = {
      problems,
      spreads,
      balancedAfterMs: fault === 'balance-none' ? null : balancedAfterMs,
      how: fault === 'balance-none' ? 'none' : moves === 0 ? 'placed' : `moved ${moves}`,
    };
    if (fault !== 'balance-machine')
      return { ...facts, recoveryMs: null, movesAtReturn: null, longestGapMs: null };

    const victim = order[0]!;
    await this.command('dev', 'supervisor', 'stop', victim, '--crash');
    const goneMs = await this.until('the machine is declared gone', () => this.#declaredGoneMs(victim));
    const atGone = countRecords(this.sinks);
    const fewer = await this.until('all executors run on two machines', () => this.#running());
    await this.until('rows flow', () => Promise.resolve(countRecords(this.sinks) > atGone + 100));
    const recoveryMs = Math.round(Date.now() - goneMs);
    spreads['without'] = this.#spreadOf(fewer);
    if (!isBalanced(spreads['without'], 2)) problems.push(`${spreads['without'].join('/')} on two machines`);

    const gaps = this.#watchRows();
    await this.command('dev', 'supervisor', 'start', victim);
    const back = await this.until('executors run in balance again', async () => {
      const running = await this.#running();
      return running !== undefined && isEven(running) && running;
    });
    const rested = await this.#atRest();
    const longestGapMs = Math.round(await gaps.stop());
    spreads['returned'] = this.#spreadOf(rested);
    const movesAtReturn = movedBetween(fewer, rested);
    if (!isEven(rested)) problems.push('the balance did not last');
    if (movesAtReturn > movedBetween(fewer, back)) problems.push('workers moved that need not');
    return { ...facts, recoveryMs, movesAtReturn, longestGapMs };
  }

  /** Runs a command that must succeed. */
  command(...words: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [CLI, ...words, '--directory', this.directory, '--json'], {
        env: { ...process.env, FAULTS_DIRECTORY: this.sinks, BALANCE_COUNTS: this.counts.join(',') },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let said = '';
      child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
      child.on('close', (code) => {
        if (code === 0) resolve();
        else reject(new Error(`isobar ${words.join(' ')} ended with ${code}: ${said}`));
      });
    });
  }

  async until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    const endMs = performance.now() + LIMIT_MS;
    for (;;) {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      if (performance.now() > endMs)
        throw new Error(`waited ${LIMIT_MS} ms in vain: ${what} (see ${this.root})`);
      await pause(POLL_MS);
    }
  }

  close(): void {
    this.#client?.close();
    for (const { pid } of findProcesses(this.directory)) kill(pid);
  }

  async #supervisors(): Promise<number> {
    return (await this.#client!.ask('list', null)).supervisors;
  }

  async #running(): Promise<Running | undefined> {
    const { topologies } = await this.#client!.ask('status', null);
    const topology = topologies.find(({ name }) => name === 'balance');
    if (topology?.isReady !== true) return undefined;
    const running = new Map<string, number>();
    // The tasks of ackers, which weigh nothing here, have the lowest numbers.
    const isOfUser = ([first]: readonly [number, number]): boolean => first > topology.ackers;
    for (const { supervisorId, port, threads } of topology.workers) {
      const executors = threads.reduce((sum, thread) => sum + thread.executors.filter(isOfUser).length, 0);
      if (executors > 0) running.set(`${supervisorId}:${port}`, executors);
    }
    const total = [...running.values()].reduce((sum, count) => sum + count, 0);
    return total === this.executors ? running : undefined;
  }

  /** Where everything runs, once that has stayed the same for a while. */
  async #atRest(): Promise<Running> {
    let [known, sinceMs] = ['', performance.now()];
    return this.until('the placement is at rest', async () => {
      const running = await this.#running();
      const text = JSON.stringify([...(running ?? [])].sort());
      if (text !== known) [known, sinceMs] = [text, performance.now()];
      return running !== undefined && performance.now() - sinceMs >= REST_MS && running;
    });
  }

  /** Ascending. */
  #spreadOf(running: Running): readonly number[] {
    const byMachine = new Map<string, number>();
    for (const [slot, count] of running) {
      const machine = slot.slice(0, slot.indexOf(':'));
      byMachine.set(machine, (byMachine.get(machine) ?? 0) + count);
    }
    return [...byMachine.values()].sort((a, b) => a - b);
  }

  /** When Nimbus said so, by the wall clock. */
  #declaredGoneMs(supervisor: string): Promise<number | undefined> {
    const lines = readFileSync(join(this.directory, 'logs', 'nimbus.log'), 'utf8').split('\n');
    const line = lines.findLast(
      (text) => text.includes('supervisor.gone') && text.includes(`"${supervisor}"`),
    );
    if (line === undefined) return Promise.resolve(undefined);
    const { time } = JSON.parse(line) as { readonly time: number | string };
    const timeMs = new Date(time).getTime();
    // Not that of an earlier stop.
    return Promise.resolve(Date.now() - timeMs < 1000 ? timeMs : undefined);
  }

  #watchRows(): { stop(): Promise<number> } {
    let [count, sinceMs, longestMs] = [countRecords(this.sinks), performance.now(), 0];
    const timer = setInterval(() => {
      const now = performance.now();
      longestMs = Math.max(longestMs, now - sinceMs);
      const next = countRecords(this.sinks);
      if (next > count) [count, sinceMs] = [next, now];
    }, 5);
    return {
      stop: () => {
        clearInterval(timer);
        return Promise.resolve(longestMs);
      },
    };
  }
}

/** Over all machines, or so many of them: no other spread of these executors is more even. */
function isBalanced(spread: readonly number[], machines: number = NAMES.length): boolean {
  return spread.length === machines && spread.at(-1)! - spread[0]! <= 1;
}

function movedBetween(before: Running, after: Running): number {
  return [...after.keys()].filter((slot) => !before.has(slot)).length;
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const order = items.map((item) => ({ item, key: random() }));
  return order.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

async function loadApi(): Promise<typeof Api> {
  // Compiled beside it, from the sources that the type was taken from.
  return (await import(new URL('../api/index.js', import.meta.url).href)) as typeof Api;
}
