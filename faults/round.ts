/** One round of the accountant: runs its topology, does one kind of harm at a seeded moment, and accounts for every number. */
import { spawn, type ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
  createWriteStream,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CLI } from './cluster.js';
import type { MoveFigures } from './rebalance-round.js';
import { findProcesses, listeningSockets, pidsOf } from './processes.js';
import { createRandom } from './random.js';
import { account, countRecords } from './sinks.js';

export const FAULTS = ['none', 'worker', 'thread', 'daemon', 'pause', 'link', 'end', 'keeper'] as const;
export type Fault = (typeof FAULTS)[number];

export interface RoundResult {
  readonly round: number;
  readonly seed: number;
  readonly fault: string;
  readonly rows: number;
  readonly lost: number;
  readonly duplicates: number;
  /** From the harm until rows flow at 90 % of the rate before; null: the input ended before that. */
  readonly recoveryMs: number | null;
  /** Workers that were not harmed and yet have another process id. */
  readonly needlessRestarts: number;
  readonly deadLetters: number;
  readonly seconds: number;
  /** Of rounds about planned moves. */
  readonly moves?: MoveFigures;
  /** What went wrong; null: nothing. */
  readonly problem: string | null;
}

const APP = fileURLToPath(new URL('../../faults/app.ts', import.meta.url));
const WINDOW_MS = 200;
const ROUND_TIMEOUT_MS = 120_000;
const GONE_MS = 10_000;
/** Longer than a coordinator session. */
const PAUSE_MS = 30_000;

interface Run {
  readonly directory: string;
  readonly sinks: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly output: string;
}

export async function runRound(
  round: number,
  seed: number,
  fault: Fault,
  rows: number,
): Promise<RoundResult> {
  const random = createRandom(seed);
  const run = startRun(rows);
  const startMs = performance.now();
  const base = { round, seed, rows, fault: fault as string };
  let result: RoundResult | undefined;
  try {
    if (fault === 'keeper') return (result = await keeperRound(run, base, startMs, random));
    const harm = await harmRun(run, fault, rows, random);
    const code = await withTimeout(run.exited, ROUND_TIMEOUT_MS);
    const accounted = account(run.sinks, rows);
    const summary = readSummary(run.output);
    const problems: string[] = [];
    if (code === 'timeout') problems.push(`hangs: not at its end after ${ROUND_TIMEOUT_MS / 1000} s`);
    else if (code !== 0) problems.push(`exit code ${code}`);
    if (accounted.lost > 0) problems.push(`${accounted.lost} rows lost, the first is ${accounted.firstLost}`);
    const deadLetters = summary?.deadLetters ?? 0;
    if (deadLetters > 0) problems.push(`${deadLetters} dead letters that no user code caused`);
    if (harm.needlessRestarts > 0) problems.push(`${harm.needlessRestarts} healthy workers restarted`);
    result = {
      ...base,
      fault: harm.what,
      lost: accounted.lost,
      duplicates: accounted.duplicates,
      recoveryMs: harm.recoveryMs,
      needlessRestarts: harm.needlessRestarts,
      deadLetters,
      seconds: (performance.now() - startMs) / 1000,
      problem: problems.length > 0 ? `${problems.join('; ')} (see ${run.directory})` : null,
    };
    return result;
  } finally {
    for (const { pid } of findProcesses(run.directory)) kill(pid, 'SIGKILL');
    // What went wrong can be looked at.
    if (result?.problem === null) rmSync(run.directory, { recursive: true, force: true });
  }
}

function startRun(rows: number): Run {
  const directory = mkdtempSync(join(tmpdir(), 'isobar-faults-'));
  const sinks = join(directory, 'sinks');
  mkdirSync(sinks);
  const output = join(directory, 'output.jsonl');
  const child = spawn(
    process.execPath,
    [
      CLI,
      'run',
      APP,
      '--no-check',
      '--json',
      '--workers',
      '2',
      '--state',
      join(directory, 'state'),
      '--set',
      'topology.executor-threads=2',
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, FAULTS_DIRECTORY: sinks, FAULTS_ROWS: String(rows) },
    },
  );
  child.stdout.pipe(createWriteStream(output));
  child.stderr.pipe(createWriteStream(join(directory, 'errors.txt')));
  const exited = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  return { directory, sinks, child, exited, output };
}

interface Harm {
  readonly what: string;
  readonly recoveryMs: number | null;
  readonly needlessRestarts: number;
}

async function harmRun(run: Run, fault: Fault, rows: number, random: () => number): Promise<Harm> {
  // Nothing is harmed before rows flow; the moment after that is drawn.
  const moment =
    fault === 'end' ? rows - 1 - Math.floor(random() * 20) : Math.floor(rows * (0.1 + 0.5 * random()));
  if (!(await reached(run, moment)))
    return { what: `${fault} (never at row ${moment})`, recoveryMs: null, needlessRestarts: 0 };
  const workers = pidsOf(run.directory, 'worker');
  const rateBefore = await rateOver(run, fault === 'end' ? 0 : WINDOW_MS);
  const kind = fault === 'end' ? pick(['worker', 'link', 'link'] as const, random) : fault;
  const harmed = new Set<number>();
  const harmedMs = performance.now();
  switch (kind) {
    case 'worker': {
      const victim = pick(workers, random);
      if (victim !== undefined) {
        harmed.add(victim);
        kill(victim, 'SIGKILL');
      }
      break;
    }
    case 'daemon':
      for (const pid of pidsOf(run.directory, 'daemon')) kill(pid, 'SIGKILL');
      break;
    case 'pause': {
      // Coordinator, Nimbus and supervisor are away together; workers must go on, and nothing may move.
      const daemons = pidsOf(run.directory, 'daemon');
      for (const pid of daemons) kill(pid, 'SIGSTOP');
      const before = countRecords(run.sinks);
      await pause(PAUSE_MS);
      const after = countRecords(run.sinks);
      for (const pid of daemons) kill(pid, 'SIGCONT');
      if (after < Math.min(rows, before + 1))
        throw new Error('workers stood still while the coordinator was away');
      break;
    }
    case 'thread':
      writeFileSync(join(run.sinks, `exit-${random() < 0.5 ? 0 : 1}`), '');
      break;
    case 'link':
      for (const pid of workers) kill(pid, 'SIGUSR2');
      break;
    default:
      break;
  }
  const recoveryMs = kind === 'none' || kind === 'pause' ? null : await recovery(run, rateBefore, harmedMs);
  if (kind === 'link') for (const pid of workers) kill(pid, 'SIGUSR2');
  const healthy = workers.filter((pid) => !harmed.has(pid));
  let needlessRestarts = 0;
  while (!(await withTimeout(run.exited, 20).then((code) => code !== 'timeout'))) {
    const alive = new Set(pidsOf(run.directory, 'worker'));
    // While the run ends its workers go one after the other; they count only while rows still come.
    if (countRecords(run.sinks) < rows)
      needlessRestarts = Math.max(needlessRestarts, healthy.filter((pid) => !alive.has(pid)).length);
    if (performance.now() - harmedMs > ROUND_TIMEOUT_MS) break;
  }
  return { what: fault === 'end' ? `end-${kind}` : fault, recoveryMs, needlessRestarts };
}

/** A killed `run` leaves no process and no socket behind. */
async function keeperRound(
  run: Run,
  base: { round: number; seed: number; rows: number; fault: string },
  startMs: number,
  random: () => number,
): Promise<RoundResult> {
  await reached(run, Math.floor(base.rows * 0.1));
  const withDaemon = random() < 0.5;
  const harmedMs = performance.now();
  run.child.kill('SIGKILL');
  if (withDaemon) for (const pid of pidsOf(run.directory, 'daemon')) kill(pid, 'SIGKILL');
  let goneMs: number | null = null;
  while (performance.now() - harmedMs < GONE_MS) {
    if (findProcesses(run.directory).length === 0 && listeningSockets(run.directory).length === 0) {
      goneMs = performance.now() - harmedMs;
      break;
    }
    await pause(20);
  }
  const left = findProcesses(run.directory).map(({ pid, kind }) => `${kind} ${pid}`);
  return {
    ...base,
    fault: withDaemon ? 'keeper-and-daemon' : 'keeper',
    lost: 0,
    duplicates: 0,
    recoveryMs: goneMs,
    needlessRestarts: 0,
    deadLetters: 0,
    seconds: (performance.now() - startMs) / 1000,
    problem:
      goneMs === null ? `left behind after ${GONE_MS / 1000} s: ${left.join(', ') || 'sockets'}` : null,
  };
}

async function reached(run: Run, records: number): Promise<boolean> {
  const endMs = performance.now() + ROUND_TIMEOUT_MS;
  while (countRecords(run.sinks) < records) {
    if (performance.now() > endMs || run.child.exitCode !== null) return false;
    await pause(2);
  }
  return true;
}

async function rateOver(run: Run, windowMs: number): Promise<number> {
  if (windowMs === 0) return 0;
  const before = countRecords(run.sinks);
  const startMs = performance.now();
  await pause(windowMs);
  return (countRecords(run.sinks) - before) / (performance.now() - startMs);
}

/** Milliseconds from the harm until a window in which rows flow at 90 % of the rate before; null: the input ended first. */
async function recovery(run: Run, rateBefore: number, harmedMs: number): Promise<number | null> {
  if (rateBefore === 0) return null;
  while (run.child.exitCode === null && performance.now() - harmedMs < ROUND_TIMEOUT_MS) {
    const startMs = performance.now();
    if ((await rateOver(run, WINDOW_MS)) >= 0.9 * rateBefore) return Math.max(0, startMs - harmedMs);
  }
  return null;
}

function readSummary(output: string): { deadLetters: number } | null {
  if (!existsSync(output)) return null;
  const last = readFileSync(output, 'utf8').trim().split('\n').at(-1) ?? '';
  try {
    const parsed = JSON.parse(last) as { deadLetters?: unknown; totals?: { deadLetters?: unknown } };
    const found = parsed.deadLetters ?? parsed.totals?.deadLetters;
    return { deadLetters: typeof found === 'number' ? found : 0 };
  } catch {
    return null;
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended already.
  }
}

function pick<T>(items: readonly T[], random: () => number): T | undefined {
  return items[Math.floor(random() * items.length)];
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T | 'timeout'> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<'timeout'>((resolve) => {
    timer = setTimeout(() => resolve('timeout'), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
