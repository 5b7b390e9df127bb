/**
 * Rounds of the accountant about planned moves: a cluster of `isobar dev` under full load whose topology is rebalanced again and
 * again, in peace or with harm done in the middle of moves; then every number, its order, its state and every life of
 * every task is accounted for.
 */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Cluster, kill, NAMES, pick } from './cluster.js';
import {
  accountForLives,
  accountForRows,
  highestNumber,
  type LifeAccount,
  type RowAccount,
} from './move-accounts.js';
import { harmOf, isMoveHarm, type Harm, type MoveFault } from './move-harms.js';
import { createRandom } from './random.js';
import type { RoundResult } from './round.js';

export const MOVING_APP = fileURLToPath(new URL('../../faults/moving-app.ts', import.meta.url));
const API = new URL('../api/index.js', import.meta.url).href;
const NAME = 'movers';
const PERIOD_MS = 1000;
const MOVES_PER_ROUND = 3;
const MAX_ATTEMPTS = 6;
const MAX_MOMENT_MS = 2000;
const WAIT_MS = 90_000;
const POLL_MS = 25;
const PENDING_ROWS = 2000;
/** Tasks of the spout, and rows between its looks at where it is to end. */
const SOURCES = 4;
const LOOK_ROWS = 64;

export interface MoveFigures extends LifeAccount {
  readonly rebalances: number;
  readonly outOfOrder: number;
  readonly stateLost: number;
  /** Longest time without any row acked, from the first to the last rebalance. */
  readonly pauseMs: number;
  readonly rowsPerSecond: number;
}

interface Topology {
  readonly name: string;
  readonly isReady: boolean;
  readonly phase: { readonly kind: string };
  readonly lastMove: { readonly step: string; readonly problems: readonly string[] } | null;
  readonly lostStates: readonly unknown[];
  readonly totals: { readonly acked: number; readonly deadLetters: number };
  readonly workers: readonly { readonly pid: number | null }[];
}

interface Change {
  readonly workers?: number;
  readonly executors: Readonly<Record<string, number>>;
}

/** What of the commands' own client is used: a process for each question would take the time that is measured. */
export interface Client {
  ask(method: 'status', body: null): Promise<{ readonly topologies: readonly Topology[] }>;
  ask(
    method: 'list',
    body: null,
  ): Promise<{ readonly topologies: readonly { readonly isRebalancing: boolean }[] }>;
  ask(method: 'rebalance', body: unknown): Promise<unknown>;
  close(): void;
}

interface Options {
  readonly round: number;
  readonly seed: number;
  readonly fault: MoveFault;
  /** How long there is a rebalance every second. */
  readonly seconds: number;
}

export async function runMoveRound({ round, seed, fault, seconds }: Options): Promise<RoundResult> {
  const random = createRandom(seed);
  const startMs = performance.now();
  const cluster = new Cluster();
  let client: Client | undefined;
  let problem: string | null = 'it broke off';
  try {
    cluster.start();
    const threads = 1 + (seed & 1);
    const settings = [
      `topology.executor-threads=${threads}`,
      `topology.max-spout-pending=${PENDING_ROWS}`,
      'rebalance.save-timeout=1s',
      'worker.restart-backoff-max=1s',
    ];
    cluster.run([
      'submit',
      MOVING_APP,
      '--no-check',
      '--workers',
      '3',
      ...settings.flatMap((one) => ['--set', one]),
    ]);
    client = await connectClient(cluster);
    const run = new MovingRun(cluster, client, random);
    await run.untilSettled();
    const fromMicros = nowMicros();
    if (isMoveHarm(fault)) for (let i = 0; i < MOVES_PER_ROUND; i++) await run.moveWithHarm(harmOf(fault));
    else await run.rebalanceFor(seconds);
    await run.untilSettled();
    const toMicros = nowMicros();
    const rows = await run.end();
    const accounted = accountForRows(cluster.sinks, rows, [fromMicros, toMicros]);
    const lives = accountForLives(cluster.sinks);
    const last = await run.topology();
    cluster.run(['dev', 'stop']);
    const left = await cluster.leftBehind();
    const problems = [
      ...run.problems,
      ...judge(accounted, lives, last, isMoveHarm(fault) ? harmOf(fault) : undefined),
      ...(left === null ? [] : [left]),
    ];
    problem = problems.length > 0 ? `${problems.join('; ')} (see ${cluster.root})` : null;
    const { lost, duplicates, outOfOrder, resets, pauseMs } = accounted;
    return {
      round,
      seed,
      rows,
      fault,
      lost,
      duplicates,
      recoveryMs: null,
      needlessRestarts: 0,
      deadLetters: last?.totals.deadLetters ?? 0,
      seconds: (performance.now() - startMs) / 1000,
      problem,
      moves: {
        ...lives,
        rebalances: run.rebalances,
        outOfOrder,
        stateLost: resets,
        pauseMs,
        rowsPerSecond: Math.round(rows / ((toMicros - fromMicros) / 1_000_000)),
      },
    };
  } finally {
    client?.close();
    cluster.dispose(problem !== null);
  }
}

export async function connectClient(cluster: Cluster): Promise<Client> {
  // No types of the build are read here: it is not there yet when this is checked.
  const { clusterClient } = (await import(API)) as { clusterClient: (directory: string) => Client };
  return clusterClient(cluster.directory);
}

/** What must not be, in sentences. */
function judge(
  rows: RowAccount,
  lives: LifeAccount,
  last: Topology | undefined,
  harm: Harm | undefined,
): string[] {
  const problems: string[] = [];
  const claim = (count: number, what: string): void => {
    if (count > 0) problems.push(`${count} ${what}`);
  };
  claim(rows.lost, 'rows lost');
  claim(lives.aliveTwice, 'times a task was alive twice');
  claim(last?.totals.deadLetters ?? 0, 'dead letters that no user code caused');
  if (harm === undefined || harm.keepsState) {
    claim(rows.duplicates, 'rows came twice');
    claim(rows.outOfOrder, 'rows out of order');
    claim(rows.resets, 'times state was lost');
  } else if (rows.resets > 0 && last?.lostStates.length === 0)
    problems.push('state was lost and is not named');
  if (harm === undefined) {
    claim(lives.needlessStops, 'tasks stopped and started again where they were');
    if (lives.moves === 0) problems.push('nothing has moved');
  }
  return problems;
}

export class MovingRun {
  readonly problems: string[] = [];
  rebalances = 0;
  readonly #cluster: Cluster;
  readonly #client: Client;
  readonly #random: () => number;
  #workers = 3;

  constructor(cluster: Cluster, client: Client, random: () => number) {
    this.#cluster = cluster;
    this.#client = client;
    this.#random = random;
  }

  async topology(): Promise<Topology | undefined> {
    const { topologies } = await this.#client.ask('status', null);
    return topologies.find(({ name }) => name === NAME);
  }

  /** All runs, nothing is under way, and rows flow. */
  async untilSettled(): Promise<void> {
    const isSettled = await this.#until('its moves are not over', () => this.#isSettled());
    if (!isSettled) return;
    const before = (await this.topology())?.totals.acked ?? 0;
    await this.#until(
      'rows do not flow',
      async () => ((await this.topology())?.totals.acked ?? 0) > before + 100,
    );
  }

  async #isSettled(): Promise<boolean> {
    const topology = await this.topology();
    const { topologies } = await this.#client.ask('list', null);
    const step = topology?.lastMove?.step ?? 'done';
    return (
      topology?.isReady === true &&
      (step === 'done' || step === 'cancelled') &&
      topologies.every(({ isRebalancing }) => !isRebalancing)
    );
  }

  async rebalanceFor(seconds: number): Promise<void> {
    const startMs = performance.now();
    for (let i = 0; i < seconds; i++) {
      await this.#rebalance(this.#change());
      const leftMs = startMs + (i + 1) * PERIOD_MS - performance.now();
      if (leftMs > 0) await pause(leftMs);
    }
  }

  /** Rebalances so that most tasks move, does the harm when its moment has come, and waits until all is well again. */
  async moveWithHarm(harm: Harm): Promise<void> {
    const fired = join(this.#cluster.sinks, `fired-${harm.step}`);
    const victims = this.#victims(harm);
    if (harm.action !== undefined) writeFileSync(join(this.#cluster.sinks, `trap-${harm.step}`), harm.action);
    for (let attempts = 1; !(await this.#moveUntil(harm, fired)); attempts++) {
      // What a former harm has left where it was may make a move one of other tasks.
      if (attempts < MAX_ATTEMPTS) continue;
      this.problems.push(`no move came to the step "${harm.step}"`);
      return;
    }
    for (const pid of victims()) kill(pid);
    rmSync(fired, { force: true });
    await this.untilSettled();
  }

  /** Begins a move. Resolves when the moment of the harm has come; to false if the move is over without it. */
  async #moveUntil(harm: Harm, fired: string): Promise<boolean> {
    this.#workers = this.#workers === 1 ? 3 : 1;
    const before = new Set(this.#cluster.workers());
    await this.#rebalance({ workers: this.#workers, executors: {} });
    if (harm.step === 'moment') {
      await pause(this.#random() * MAX_MOMENT_MS);
      return true;
    }
    const hasCome = (): boolean =>
      harm.step === 'preparing' ? this.#cluster.workers().some((pid) => !before.has(pid)) : existsSync(fired);
    const atLeastMs = performance.now() + PERIOD_MS;
    await this.#until(
      'its moves are not over',
      async () => hasCome() || (performance.now() > atLeastMs && (await this.#isSettled())),
    );
    return hasCome();
  }

  /** Ends the source at a number that it has not reached, and the topology with it. Returns how many rows there were. */
  async end(): Promise<number> {
    const { sinks } = this.#cluster;
    const rows = highestNumber(sinks) + SOURCES * (PENDING_ROWS + 2 * LOOK_ROWS) + 20_000;
    writeFileSync(join(sinks, 'end.new'), String(rows));
    // All at once, or it could be read half written.
    renameSync(join(sinks, 'end.new'), join(sinks, 'end'));
    await this.#until(
      'it does not come to its end',
      async () => (await this.topology())?.phase.kind === 'finished',
    );
    return rows;
  }

  #change(): Change {
    const random = this.#random;
    if (random() < 0.5) return { workers: 1 + Math.floor(random() * 4), executors: {} };
    const [component, tasks] = pick(
      [
        ['numbers', 4],
        ['count', 8],
        ['record', 4],
      ] as const,
      random,
    );
    return { executors: { [component]: 1 + Math.floor(random() * tasks) } };
  }

  async #rebalance(change: Change): Promise<void> {
    const request = { resources: {}, waitMs: null, fromScratch: false, preview: false, ...change };
    await this.#client.ask('rebalance', { name: NAME, request });
    this.rebalances++;
  }

  /** Process ids are looked up before the harm, since looking takes a while. */
  #victims({ victim }: Harm): () => readonly number[] {
    const cluster = this.#cluster;
    const supervisor = `supervisor-${pick(NAMES, this.#random)}`;
    switch (victim) {
      case undefined:
        return () => [];
      case 'new-worker': {
        const before = new Set(cluster.workers());
        return () =>
          cluster
            .workers()
            .filter((pid) => !before.has(pid))
            .slice(0, 1);
      }
      case 'anybody': {
        const daemons = ['nimbus', 'coordinator', 'keeper', supervisor].map((id) => cluster.pidOf(id));
        return () => [pick([...daemons, ...cluster.workers()], this.#random)];
      }
      case 'supervisors': {
        const pids = NAMES.map((name) => cluster.pidOf(`supervisor-${name}`));
        return () => pids;
      }
      default: {
        const pid = cluster.pidOf(victim);
        return () => [pid];
      }
    }
  }

  /** Notes it as a problem if it does not come true. */
  async #until(problem: string, isTrue: () => Promise<boolean>): Promise<boolean> {
    const endMs = performance.now() + WAIT_MS;
    for (;;) {
      if (await isTrue().catch(() => false)) return true;
      if (performance.now() > endMs) {
        const moved = await this.topology().catch(() => undefined);
        this.problems.push(
          `${problem} after ${WAIT_MS / 1000} s (${JSON.stringify(moved?.lastMove ?? null)})`,
        );
        return false;
      }
      await pause(POLL_MS);
    }
  }
}

/** As the topology takes its times: the machine's monotonic clock. */
function nowMicros(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1_000_000 + Math.floor(nanos / 1000);
}
