/**
 * Rounds of the accountant over ZooKeeper: a cluster of `isobar dev` over an ensemble of three, under full load, while servers
 * of the ensemble are killed, stopped, or cannot be reached by a daemon for longer than a session. Nothing may move, no worker may be started
 * again, and every number is accounted for once and in order.
 *
 * In rounds with an odd seed the cluster has credentials, and its nodes are for them alone.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, isAlive, NAMES, pick } from './cluster.js';
import { accountForLives, accountForRows, highestNumber } from './move-accounts.js';
import { createRandom } from './random.js';
import { type Client, connectClient, MOVING_APP, MovingRun } from './rebalance-round.js';
import type { RoundResult } from './round.js';

export const ZOOKEEPER_FAULTS = ['zookeeper-leader', 'zookeeper-majority', 'zookeeper-session'] as const;
export type ZooKeeperFault = (typeof ZOOKEEPER_FAULTS)[number];

const SERVERS = new URL('../coordination/zookeeper/zookeeper-servers.conformance.js', import.meta.url).href;
const NAME = 'movers';
const SESSION_TIMEOUT_MS = 4000;
/** How long servers or a daemon are away: longer than a session, shorter than the grace of a machine. */
const AWAY_MS = SESSION_TIMEOUT_MS * 2;
const CALM_MS = 2000;
const WAIT_MS = 60_000;
const POLL_MS = 50;
const LOOK_MS = 500;

/** What of the test support of the `zookeeper` adapter is used; its types are not there yet when this is checked. */
interface Server {
  readonly port: number;
  start(): void;
  ready(): Promise<void>;
  mode(): Promise<string | undefined>;
  stop(): Promise<void>;
}

interface Servers {
  readonly zooKeeperMissing: () => Promise<string | undefined>;
  readonly startEnsemble: (directory: string, size: number) => Promise<readonly Server[]>;
}

export async function runZooKeeperRound(
  round: number,
  seed: number,
  fault: ZooKeeperFault,
): Promise<RoundResult> {
  const random = createRandom(seed);
  const startMs = performance.now();
  const { zooKeeperMissing, startEnsemble } = (await import(SERVERS)) as Servers;
  const missing = await zooKeeperMissing();
  if (missing !== undefined) throw new Error(missing);
  const cluster = new Cluster();
  let ensemble: readonly Server[] = [];
  let client: Client | undefined;
  let problem: string | null = 'it broke off';
  try {
    const zooKeeper = join(cluster.root, 'zookeeper');
    mkdirSync(zooKeeper);
    ensemble = await startEnsemble(zooKeeper, 3);
    const servers = ensemble.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const settings = [`coordinator.session-timeout=${SESSION_TIMEOUT_MS}ms`, 'supervisor.gone-grace=20s'];
    if ((seed & 1) === 1) settings.push(`coordinator.credentials-file=${writeCredentials(cluster.root)}`);
    const words = settings.flatMap((setting) => ['--set', setting]);
    cluster.start(['--coordinator', `zookeeper://${servers}/isobar`, ...words]);
    cluster.run(['submit', MOVING_APP, '--no-check', '--workers', '3']);
    client = await connectClient(cluster);
    const run = new MovingRun(cluster, client, random);
    await run.untilSettled();
    const workers = cluster.workers();
    const problems: string[] = [];
    const what = await harm(fault, ensemble, cluster, problems, random);
    const endedMs = performance.now();
    const isReady = await untilReady(cluster);
    const recoveryMs = isReady ? performance.now() - endedMs : null;
    if (!isReady) problems.push('the cluster is not ready again');
    // What would move because of it moves now.
    await pause(CALM_MS);
    await run.untilSettled();
    const needlessRestarts = workers.filter((pid) => !isAlive(pid)).length;
    const rows = await run.end();
    const { lost, duplicates, outOfOrder, resets } = accountForRows(cluster.sinks, rows, [0, 0]);
    const { moves, aliveTwice } = accountForLives(cluster.sinks);
    const topology = await run.topology();
    cluster.run(['dev', 'stop']);
    const left = await cluster.leftBehind();
    const deadLetters = topology?.totals.deadLetters ?? 0;
    const claims: readonly (readonly [number, string])[] = [
      [lost, 'rows lost'],
      [duplicates, 'rows came twice'],
      [outOfOrder, 'rows out of order'],
      [resets, 'times state was lost'],
      [moves, 'tasks were started again or moved'],
      [aliveTwice, 'times a task was alive twice'],
      [needlessRestarts, 'healthy workers restarted'],
      [deadLetters, 'dead letters that no user code caused'],
    ];
    problems.push(
      ...run.problems,
      ...claims.flatMap(([count, text]) => (count > 0 ? [`${count} ${text}`] : [])),
    );
    if (left !== null) problems.push(left);
    problem = problems.length > 0 ? `${problems.join('; ')} (see ${cluster.root})` : null;
    return {
      round,
      seed,
      rows,
      fault: `${what}${(seed & 1) === 1 ? ', with credentials' : ''}`,
      lost,
      duplicates,
      recoveryMs,
      needlessRestarts,
      deadLetters,
      seconds: (performance.now() - startMs) / 1000,
      problem,
    };
  } finally {
    client?.close();
    await Promise.all(ensemble.map((server) => server.stop()));
    cluster.dispose(problem !== null);
  }
}

/** Does the harm and ends it. Returns what was done. */
async function harm(
  fault: ZooKeeperFault,
  ensemble: readonly Server[],
  cluster: Cluster,
  problems: string[],
  random: () => number,
): Promise<string> {
  switch (fault) {
    case 'zookeeper-leader': {
      const leader = await leaderOf(ensemble);
      await leader.stop();
      await rowsFlowFor(AWAY_MS, cluster, problems);
      if (!(await untilReady(cluster))) problems.push('the cluster is not ready with two servers of three');
      leader.start();
      await leader.ready();
      return fault;
    }
    case 'zookeeper-majority': {
      const victims = [...ensemble].sort(() => random() - 0.5).slice(1);
      await Promise.all(victims.map((server) => server.stop()));
      await rowsFlowFor(AWAY_MS, cluster, problems);
      expectRefusal(cluster, problems);
      for (const server of victims) server.start();
      await Promise.all(ensemble.map((server) => server.ready()));
      return fault;
    }
    case 'zookeeper-session': {
      // Its sessions end at the ensemble while it stands still.
      const daemon = pick(['nimbus', ...NAMES.map((name) => `supervisor-${name}`)], random);
      const pid = cluster.pidOf(daemon);
      process.kill(pid, 'SIGSTOP');
      try {
        await rowsFlowFor(AWAY_MS, cluster, problems);
      } finally {
        process.kill(pid, 'SIGCONT');
      }
      return `${fault} of ${daemon}`;
    }
  }
}

async function leaderOf(ensemble: readonly Server[]): Promise<Server> {
  const endMs = performance.now() + WAIT_MS;
  for (;;) {
    for (const server of ensemble) if ((await server.mode()) === 'leader') return server;
    if (performance.now() > endMs) throw new Error('the ensemble has no leader');
    await pause(POLL_MS);
  }
}

/** Workers need no coordinator: rows come all the time. */
async function rowsFlowFor(ms: number, cluster: Cluster, problems: string[]): Promise<void> {
  const endMs = performance.now() + ms;
  let highest = highestNumber(cluster.sinks);
  let isStill = 0;
  while (performance.now() < endMs) {
    await pause(LOOK_MS);
    const now = highestNumber(cluster.sinks);
    isStill = now > highest ? 0 : isStill + LOOK_MS;
    if (isStill >= 2000) {
      problems.push('rows stood still');
      return;
    }
    highest = now;
  }
}

/** Without a majority a change is refused, and nothing of it is done later. */
function expectRefusal(cluster: Cluster, problems: string[]): void {
  const answer = cluster.run(['rebalance', NAME, '-n', '1'], true) as { readonly code?: string };
  if (answer.code !== 'COORDINATOR_UNAVAILABLE')
    problems.push(`a rebalance without majority was answered with ${JSON.stringify(answer).slice(0, 300)}`);
}

async function untilReady(cluster: Cluster): Promise<boolean> {
  const endMs = performance.now() + WAIT_MS;
  while (performance.now() < endMs) {
    if (cluster.status().state === 'ready') return true;
    await pause(POLL_MS);
  }
  return false;
}

function writeCredentials(directory: string): string {
  const file = join(directory, 'credentials');
  writeFileSync(file, 'accountant:every row counts\n');
  chmodSync(file, 0o600);
  return file;
}
