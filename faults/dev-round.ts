/**
 * One round of the accountant against a cluster of `isobar dev` with three supervisors: submits its topology, kills what
 * the round is about at a seeded moment, and accounts for every number.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProcesses, listeningSockets, pidsOf } from './processes.js';
import { createRandom } from './random.js';
import type { RoundResult } from './round.js';
import { account, countRecords } from './sinks.js';

export const DEV_FAULTS = [
  'dev-keeper',
  'nimbus',
  'supervisor',
  'coordinator',
  'dev-two',
  'machine',
] as const;
export type DevFault = (typeof DEV_FAULTS)[number];

const CLI = fileURLToPath(new URL('../cli/main.js', import.meta.url));
const APP = fileURLToPath(new URL('../../faults/app.ts', import.meta.url));
const NAMES = ['a', 'b', 'c'] as const;
const WINDOW_MS = 200;
const ROUND_TIMEOUT_MS = 120_000;
const GONE_MS = 10_000;

interface Daemons {
  readonly keeper: { readonly pid: number } | null;
  readonly state: string;
  readonly daemons: readonly { readonly id: string; readonly pid: number | null }[];
}

class Cluster {
  readonly root = mkdtempSync(join(tmpdir(), 'isobar-faults-'));
  readonly sinks = join(this.root, 'sinks');
  readonly directory = join(this.root, 'dev');
  readonly #environment: Readonly<Record<string, string>>;

  constructor(rows: number) {
    mkdirSync(this.sinks);
    this.#environment = { FAULTS_DIRECTORY: this.sinks, FAULTS_ROWS: String(rows), FAULTS_PARALLELISM: '3' };
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

  start(): void {
    const supervisors = NAMES.flatMap((name) => ['--supervisor', `name=${name},host=h-${name},slots=3`]);
    this.run(['dev', ...supervisors]);
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
}

export async function runDevRound(
  round: number,
  seed: number,
  fault: DevFault,
  rows: number,
): Promise<RoundResult> {
  const random = createRandom(seed);
  const cluster = new Cluster(rows);
  const startMs = performance.now();
  let result: RoundResult | undefined;
  try {
    cluster.start();
    cluster.run(['submit', APP, '--no-check', '--workers', '3', '--set', 'topology.executor-threads=1']);
    const harm = await harmCluster(cluster, fault, rows, random);
    const problems = [...harm.problems];
    if (!(await reached(cluster, rows, ROUND_TIMEOUT_MS))) problems.push('the last row never came');
    const end = await untilFinished(cluster);
    if (end === undefined) problems.push(`hangs: not at its end after ${ROUND_TIMEOUT_MS / 1000} s`);
    const accounted = account(cluster.sinks, rows);
    if (accounted.lost > 0) problems.push(`${accounted.lost} rows lost, the first is ${accounted.firstLost}`);
    if ((end?.deadLetters ?? 0) > 0)
      problems.push(`${end?.deadLetters} dead letters that no user code caused`);
    if (harm.needlessRestarts > 0) problems.push(`${harm.needlessRestarts} healthy workers restarted`);
    cluster.run(['dev', 'stop']);
    const left = await leftBehind(cluster);
    if (left !== null) problems.push(left);
    result = {
      round,
      seed,
      rows,
      fault: harm.what,
      lost: accounted.lost,
      duplicates: accounted.duplicates,
      recoveryMs: harm.recoveryMs,
      needlessRestarts: harm.needlessRestarts,
      deadLetters: end?.deadLetters ?? 0,
      seconds: (performance.now() - startMs) / 1000,
      problem: problems.length > 0 ? `${problems.join('; ')} (see ${cluster.root})` : null,
    };
    return result;
  } finally {
    for (const { pid } of findProcesses(cluster.directory)) kill(pid);
    // What went wrong can be looked at.
    if (result?.problem === null) rmSync(cluster.root, { recursive: true, force: true });
  }
}

interface Harm {
  readonly what: string;
  readonly recoveryMs: number | null;
  readonly needlessRestarts: number;
  readonly problems: readonly string[];
}

async function harmCluster(
  cluster: Cluster,
  fault: DevFault,
  rows: number,
  random: () => number,
): Promise<Harm> {
  const moment = Math.floor(rows * (0.1 + 0.4 * random()));
  if (!(await reached(cluster, moment, ROUND_TIMEOUT_MS)))
    return {
      what: `${fault} (never at row ${moment})`,
      recoveryMs: null,
      needlessRestarts: 0,
      problems: ['rows do not flow'],
    };
  const name = pick(NAMES, random);
  const before = cluster.workers();
  const rateBefore = await rateOver(cluster);
  const victims = victimsOf(fault, name, random);
  const pids = victims.map((id) => cluster.pidOf(id));
  const killed = fault === 'machine' ? workersOf(cluster, name) : [];
  const harmedMs = performance.now();
  if (fault === 'machine') cluster.run(['dev', 'supervisor', 'stop', name, '--crash']);
  for (const pid of pids) kill(pid);
  const recoveryMs = await recovery(cluster, rateBefore, harmedMs, rows);
  const problems: string[] = [];
  if (fault === 'machine') cluster.run(['dev', 'supervisor', 'start', name]);
  // Where the keeper is gone, somebody has to look after the daemons again.
  cluster.run(['dev']);
  if (cluster.status().state !== 'ready') problems.push('the cluster is not ready again');
  const needlessRestarts =
    countRecords(cluster.sinks) < rows
      ? before.filter((pid) => !killed.includes(pid) && !isAlive(pid)).length
      : 0;
  return {
    what: [fault, ...(fault === 'machine' ? [name] : victims)].join(' '),
    recoveryMs,
    needlessRestarts,
    problems,
  };
}

function victimsOf(fault: DevFault, name: string, random: () => number): readonly string[] {
  const all = ['keeper', 'coordinator', 'nimbus', ...NAMES.map((one) => `supervisor-${one}`)];
  switch (fault) {
    case 'dev-keeper':
      return ['keeper'];
    case 'nimbus':
    case 'coordinator':
      return [fault];
    case 'supervisor':
      return [`supervisor-${name}`];
    case 'dev-two': {
      const first = pick(all, random);
      return [
        first,
        pick(
          all.filter((id) => id !== first),
          random,
        ),
      ];
    }
    case 'machine':
      return [];
  }
}

/** Each worker has its launch file, in its supervisor's directory, on its command line. */
function workersOf(cluster: Cluster, supervisor: string): readonly number[] {
  return pidsOf(join(cluster.directory, 'supervisors', supervisor), 'worker');
}

async function reached(cluster: Cluster, records: number, timeoutMs: number): Promise<boolean> {
  const endMs = performance.now() + timeoutMs;
  while (countRecords(cluster.sinks) < records) {
    if (performance.now() > endMs) return false;
    await pause(5);
  }
  return true;
}

async function rateOver(cluster: Cluster): Promise<number> {
  const before = countRecords(cluster.sinks);
  const startMs = performance.now();
  await pause(WINDOW_MS);
  return (countRecords(cluster.sinks) - before) / (performance.now() - startMs);
}

/** Milliseconds from the harm until rows flow at 90 % of the rate before; null: the input ended first. */
async function recovery(
  cluster: Cluster,
  rateBefore: number,
  harmedMs: number,
  rows: number,
): Promise<number | null> {
  while (performance.now() - harmedMs < ROUND_TIMEOUT_MS && countRecords(cluster.sinks) < rows) {
    const startMs = performance.now();
    if ((await rateOver(cluster)) >= 0.9 * rateBefore) return Math.max(0, startMs - harmedMs);
  }
  return null;
}

async function untilFinished(cluster: Cluster): Promise<{ readonly deadLetters: number } | undefined> {
  const endMs = performance.now() + ROUND_TIMEOUT_MS;
  while (performance.now() < endMs) {
    const { status, totals } = cluster.run(['describe', 'accountant'], true) as {
      readonly status?: string;
      readonly totals?: { readonly deadLetters: number };
    };
    if (status === 'FINISHED' && totals !== undefined) return totals;
    await pause(50);
  }
  return undefined;
}

async function leftBehind(cluster: Cluster): Promise<string | null> {
  const endMs = performance.now() + GONE_MS;
  for (;;) {
    const processes = findProcesses(cluster.directory);
    const sockets = listeningSockets(cluster.directory);
    if (processes.length === 0 && sockets.length === 0) return null;
    if (performance.now() > endMs)
      return `left behind: ${[...processes.map(({ pid, kind }) => `${kind} ${pid}`), ...sockets].join(', ')}`;
    await pause(20);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)]!;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
