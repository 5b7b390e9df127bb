/**
 * `bench soak`: a cluster of `isobar dev` left alone with an idle topology. Memory, open files and processor time of every process,
 * the disk, and everything that should not happen meanwhile: warnings, errors, restarts, moves, replays. Fails when it does.
 */
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openFiles, processUse, proportionalMb } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { DevRun } from '../product/dev-run.js';
import { summarize, type Report } from '../report.js';
import { bytesBelow, logAlarms } from './log-alarms.js';
import { levels, type Sample, slopePerHour } from './series.js';

const NAME = 'idle';
const READY_MS = 60_000;
const POLL_MS = 200;
/** Compilers and collectors are still busy in the first seconds. */
const SETTLE_MS = 20_000;
const QUICK_SETTLE_MS = 2000;
const SAMPLES = 180;
const SHOWN_ALARMS = 5;

interface Process {
  readonly role: string;
  readonly pid: number;
  readonly memory: Sample[];
  cpuMs: number;
  files: number;
}

/** Of `describe` and `dev status`, what this bench reads. */
interface Described {
  readonly totals: { readonly failed: number; readonly replayed: number };
  readonly problems: readonly unknown[];
  readonly errors: readonly unknown[];
  readonly executors: { readonly desired: number; readonly actual: number };
  readonly desired: unknown;
  readonly placements: readonly {
    readonly supervisorId: string;
    readonly port: number;
    readonly pid: number | null;
    readonly executors: unknown;
    readonly restarts: number;
  }[];
}
interface Status {
  readonly keeper: { readonly pid: number } | null;
  readonly daemons: readonly {
    readonly id: string;
    readonly pid: number | null;
    readonly restarts: number;
  }[];
}

export async function benchSoak(options: BenchOptions, report: Report): Promise<void> {
  const cluster = new DevRun(() => ({ ISOBAR_BENCH_SOURCE: 'both' }));
  try {
    await cluster.start('--supervisors', '2');
    await cluster.ask('submit', resolve('bench/idle/app.ts'), '--workers', '2', '--no-check');
    await untilReady(cluster);
    await pause(options.quick ? QUICK_SETTLE_MS : SETTLE_MS);
    await soak(cluster, options.soakMs, report);
  } finally {
    await cluster.close();
  }
}

async function untilReady(cluster: DevRun): Promise<void> {
  const deadlineMs = Date.now() + READY_MS;
  for (;;) {
    const { executors, placements } = await describe(cluster);
    if (executors.actual === executors.desired && placements.every(({ pid }) => pid !== null)) return;
    if (Date.now() > deadlineMs) throw new Error('The idle topology does not get ready.');
    await pause(POLL_MS);
  }
}

async function soak(cluster: DevRun, durationMs: number, report: Report): Promise<void> {
  const before = { topology: await describe(cluster), cluster: await statusOf(cluster) };
  const processes = processesOf(before.cluster, before.topology);
  const diskStart = bytesBelow(cluster.directory);
  const startedMs = Date.now();
  for (let sample = 0; sample <= SAMPLES; sample++) {
    await pause(Math.max(0, startedMs + (sample / SAMPLES) * durationMs - Date.now()));
    for (const { pid, memory } of processes) memory.push({ atMs: Date.now(), value: proportionalMb(pid) });
  }
  const seconds = (Date.now() - startedMs) / 1000;
  for (const one of processes) reportProcess(one, seconds, report);
  const say = (metric: string, unit: string, value: number): void =>
    report(summarize({ bench: 'soak', case: 'cluster', metric, unit }, [value]));
  say('duration', 'min', seconds / 60);
  say('disk-start', 'MB', diskStart / 2 ** 20);
  say('disk-end', 'MB', bytesBelow(cluster.directory) / 2 ** 20);
  // Asked only now: a command costs the daemons that answer it.
  const after = { topology: await describe(cluster), cluster: await statusOf(cluster) };
  const { warnings, errors, raw } = logAlarms(cluster.directory, startedMs);
  const alarms = {
    'processes-ended': processes.filter(({ pid }) => processUse(pid) === undefined).length,
    restarts: restartsOf(after) - restartsOf(before),
    moves: changedPlacements(before.topology, after.topology),
    failed: after.topology.totals.failed - before.topology.totals.failed,
    replayed: after.topology.totals.replayed - before.topology.totals.replayed,
    problems: after.topology.problems.length + after.topology.errors.length,
    'log-warnings': warnings.length,
    'log-errors': errors.length,
    'raw-output': raw.length,
  };
  for (const [metric, value] of Object.entries(alarms)) say(metric, '', value);
  const kinds = Object.entries(alarms).filter(([, count]) => count !== 0);
  if (kinds.length > 0) {
    const said = [...errors, ...warnings, ...raw].slice(0, SHOWN_ALARMS).join('\n');
    throw new Error(
      `An idle cluster is to be quiet; this one had ${kinds.map(([kind, count]) => `${kind}: ${count}`).join(', ')}.\n${said}`,
    );
  }
}

function processesOf({ keeper, daemons }: Status, { placements }: Described): Process[] {
  const roles: readonly (readonly [role: string, pid: number | null | undefined])[] = [
    ['keeper', keeper?.pid],
    ...daemons.map(({ id, pid }) => [id, pid] as const),
    ...placements.map(({ supervisorId, port, pid }) => [`worker-${supervisorId}-${port}`, pid] as const),
  ];
  return roles.map(([role, pid]) => {
    const use = pid === undefined || pid === null ? undefined : processUse(pid);
    if (pid === undefined || pid === null || use === undefined) throw new Error(`${role} does not run.`);
    return { role, pid, memory: [], cpuMs: use.cpuMs, files: openFiles(pid) };
  });
}

function reportProcess({ role, pid, memory, cpuMs, files }: Process, seconds: number, report: Report): void {
  const use = processUse(pid);
  const { start, end } = levels(memory);
  const say = (metric: string, unit: string, value: number): void =>
    report(summarize({ bench: 'soak', case: role, metric, unit }, [value]));
  say('pss-start', 'MB', start);
  say('pss-end', 'MB', end);
  say('pss-slope', 'MB/h', slopePerHour(memory));
  if (use !== undefined) say('cpu', '%', (use.cpuMs - cpuMs) / 10 / seconds);
  say('open-files-start', '', files);
  say('open-files-end', '', openFiles(pid));
}

function restartsOf({
  topology,
  cluster,
}: {
  readonly topology: Described;
  readonly cluster: Status;
}): number {
  return [...topology.placements, ...cluster.daemons].reduce((sum, { restarts }) => sum + restarts, 0);
}

/** Places whose executors differ, and those that are there only before or only after. */
function changedPlacements(before: Described, after: Described): number {
  const texts = ({ placements }: Described): string[] =>
    placements.map(({ supervisorId, port, executors }) => JSON.stringify([supervisorId, port, executors]));
  const [old, now] = [texts(before), texts(after)];
  return [...old.filter((one) => !now.includes(one)), ...now.filter((one) => !old.includes(one))].length;
}

async function describe(cluster: DevRun): Promise<Described> {
  return (await cluster.ask('describe', NAME)) as Described;
}

async function statusOf(cluster: DevRun): Promise<Status> {
  return (await cluster.ask('dev', 'status')) as Status;
}
