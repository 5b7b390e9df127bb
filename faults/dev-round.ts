/**
 * One round of the accountant against a cluster of `isobar dev` with three supervisors: submits its topology, kills what
 * the round is about at a seeded moment, and accounts for every number.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Cluster, isAlive, kill, NAMES, pick } from './cluster.js';
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

const APP = fileURLToPath(new URL('../../faults/app.ts', import.meta.url));
const WINDOW_MS = 200;
const ROUND_TIMEOUT_MS = 120_000;

export async function runDevRound(
  round: number,
  seed: number,
  fault: DevFault,
  rows: number,
): Promise<RoundResult> {
  const random = createRandom(seed);
  const cluster = new Cluster({ FAULTS_ROWS: String(rows), FAULTS_PARALLELISM: '3' });
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
    const left = await cluster.leftBehind();
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
    cluster.dispose(result?.problem !== null);
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
  const killed = fault === 'machine' ? cluster.workersOf(name) : [];
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
