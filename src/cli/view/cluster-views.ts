/** What the commands that talk to Nimbus print for people: plain lines. Pure. */
import type {
  ClusterSummary,
  LifeResult,
  Place,
  RebalanceResult,
  SettingValue,
  TopologyDetail,
  TopologySummary,
} from '../../api/index.js';
import { sketchQuantile } from '../../base/index.js';
import {
  type Column,
  columns,
  columnsWidth,
  columnsWithRemarks,
  counted,
  cut,
  duration,
  grouped,
  megabytes,
  micros,
  printable,
} from './format.js';
import { eventLines } from './event-lines.js';
import { indented } from './indented.js';
import { lostTasks } from './lost-states.js';
import { padded } from './text-width.js';

const MAX_MOVES = 20;
const MAX_ERRORS = 20;
/** Less of a meaning says nothing. */
const LEAST_MEANING = 40;
/** A worker that nobody has heard of for this long is not just idle. */
const SILENT_MS = 12_000;

/** `3`, or `2/3` where two of three run. */
function ofDesired({ desired, actual }: { readonly desired: number; readonly actual: number }): string {
  return desired === actual ? String(actual) : `${actual}/${desired}`;
}

function ago(atMs: number, nowMs: number): string {
  return `${duration(Math.max(0, nowMs - atMs))} ago`;
}

function statusText({ status, waitLeftMs, isRebalancing }: TopologySummary): string {
  if (waitLeftMs !== null) return `${status} (${duration(waitLeftMs)} left)`;
  return isRebalancing ? `${status} (rebalancing)` : status;
}

/** `rebalanced 3.0 s ago`, `became INACTIVE 3.0 s ago`. */
function lastChangeText({ lastChange, lastChangeMs, status }: TopologySummary, nowMs: number): string {
  return `${lastChange === 'status' ? `became ${status}` : lastChange} ${ago(lastChangeMs, nowMs)}`;
}

export function listLines(summary: ClusterSummary, width: number): string[] {
  const { topologies, atMs, slots, supervisors, coordinatorProblem } = summary;
  const total = [
    `${counted(supervisors, 'supervisor')}, ${slots.used} of ${counted(slots.total, 'slot')} used`,
    ...(coordinatorProblem === null
      ? []
      : [
          `problem: ${coordinatorProblem.code}: ${printable(coordinatorProblem.message)}`,
          'What runs goes on; nothing is started, moved or changed, and what is shown is as it was known last.',
        ]),
  ];
  if (topologies.length === 0) return ['No topologies. Submit one: isobar submit app.ts', ...total];
  const all: readonly Column<TopologySummary>[] = [
    { title: 'NAME', align: 'left', cell: ({ name }) => printable(name) },
    { title: 'STATUS', align: 'left', cell: statusText },
    { title: 'WORKERS', align: 'right', cell: ({ workers }) => ofDesired(workers) },
    { title: 'EXECUTORS', align: 'right', cell: ({ executors }) => ofDesired(executors) },
    { title: 'TASKS', align: 'right', givesWay: 1, cell: ({ tasks }) => grouped(tasks) },
    { title: 'UPTIME', align: 'right', givesWay: 2, cell: ({ uptimeMs }) => duration(uptimeMs) },
    {
      title: 'LAST CHANGE',
      align: 'left',
      cell: (topology) => lastChangeText(topology, atMs),
    },
  ];
  const problems: Column<TopologySummary> = {
    title: 'PROBLEM',
    align: 'left',
    cell: ({ problem }) => problemText(problem, atMs),
  };
  return [...columnsWithRemarks(topologies, all, problems, width), ...total];
}

/** `WORKER_LOST, 3.0 s ago`. */
function problemText(problem: TopologySummary['problem'], nowMs: number): string {
  if (problem === null) return '';
  return problem.atMs === null ? problem.code : `${problem.code}, ${ago(problem.atMs, nowMs)}`;
}

export function describeLines({ summary, desired, status, events }: TopologyDetail, width: number): string[] {
  const nowMs = summary.submittedMs + summary.uptimeMs;
  const { totals, oldestPending } = status;
  const lines = [
    `${printable(summary.name)} (${summary.id})`,
    `status       ${statusText(summary)}`,
    `uptime       ${duration(summary.uptimeMs)}; last change: ${lastChangeText(summary, nowMs)}`,
    `workers      ${summary.workers.actual} running, ${summary.workers.desired} wanted`,
    `executors    ${summary.executors.actual} running, ${summary.executors.desired} wanted; ${counted(summary.tasks, 'task')}`,
    `rows         ${grouped(totals.emitted)} emitted, ${grouped(totals.acked)} acked, ${grouped(totals.failed)} failed${reasonsText(status)}, ${grouped(totals.replayed)} replayed, ${grouped(totals.pending)} pending, ${counted(totals.deadLetters, 'dead letter')}`,
  ];
  if (desired !== null)
    lines.push(`rebalanced   ${desired.revision} ×, last ${ago(desired.changedMs, nowMs)}`);
  lines.push(...moveLines(status.lastMove));
  if (oldestPending !== null) {
    const { component, task, row, ageMs, heldBy } = oldestPending;
    const holder = heldBy === null ? '' : `, held by ${heldBy}`;
    lines.push(`oldest row   ${component} ${task}: ${printable(row)}, ${duration(ageMs)}${holder}`);
  }
  if (summary.problem !== null)
    lines.push(`problem      ${problemText(summary.problem, nowMs)}: ${printable(summary.problem.message)}`);
  for (const note of status.notes) lines.push(`note         ${printable(note)}`);
  lines.push('', ...componentLines(status, width));
  lines.push('Counts and latencies are those since the submission; isobar why has those of now.');
  lines.push('', ...workerLines(status, width, nowMs));
  if (events.length > 0)
    lines.push('', `Events, newest last (all: isobar events ${printable(summary.name)}):`);
  for (const line of eventLines(events, (atMs) => ago(atMs, nowMs))) lines.push(`  ${line}`);
  const errors = status.errors.slice(-MAX_ERRORS);
  if (errors.length > 0) lines.push('', 'Errors, newest last:');
  for (const { component, task, error, count, firstMs, lastMs } of errors) {
    lines.push(
      `  ${component === '' ? 'worker' : `${component} ${task}`}: ${error.code}: ${printable(error.message)} (${grouped(count)} ×, first ${ago(firstMs, nowMs)}, last ${ago(lastMs, nowMs)})`,
    );
  }
  if (status.lostStates.length > 0) lines.push('', 'State lost with workers or threads that ended:');
  for (const { component, task, count, lastMs } of lostTasks(status.lostStates)) {
    lines.push(`  ${component} ${task} (${grouped(count)} ×, last ${ago(lastMs, nowMs)})`);
  }
  const dropped = status.workers.reduce((sum, { droppedLogRecords }) => sum + droppedLogRecords, 0);
  if (dropped > 0) lines.push(`logs: ${grouped(dropped)} records were dropped`);
  for (const file of status.deadLetterFiles) lines.push(`dead letters: ${printable(file)}`);
  return lines;
}

type Status = TopologyDetail['status'];

function moveLines(move: Status['lastMove']): readonly string[] {
  if (move === null) return [];
  const { step, tasks, problems } = move;
  return [
    `last move    ${counted(tasks, 'task')}, ${step}`,
    ...problems.map((problem) => `             ${printable(problem)}`),
  ];
}

/** ` (timeout 480, user 6)`: why rows of spouts failed, most frequent first. */
function reasonsText({ components }: Status): string {
  const reasons = new Map<string, number>();
  for (const { kind, failures } of components) {
    if (kind !== 'spout') continue;
    for (const [reason, count] of Object.entries(failures))
      reasons.set(reason, (reasons.get(reason) ?? 0) + count);
  }
  const told = [...reasons].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
  return told.length === 0 ? '' : ` (${told.map(([name, count]) => `${name} ${grouped(count)}`).join(', ')})`;
}

function componentLines({ components, errors }: Status, width: number): readonly string[] {
  const all: readonly Column<Status['components'][number]>[] = [
    { title: 'COMPONENT', align: 'left', cell: ({ component }) => printable(component) },
    { title: 'KIND', align: 'left', givesWay: 1, cell: ({ kind }) => kind },
    { title: 'EXECUTORS', align: 'right', givesWay: 6, cell: ({ executors }) => String(executors) },
    { title: 'TASKS', align: 'right', givesWay: 2, cell: ({ tasks }) => String(tasks) },
    { title: 'EXECUTED', align: 'right', givesWay: 4, cell: ({ executed }) => grouped(executed) },
    { title: 'EMITTED', align: 'right', givesWay: 3, cell: ({ emitted }) => grouped(emitted) },
    { title: 'ACKED', align: 'right', cell: ({ acked }) => grouped(acked) },
    { title: 'FAILED', align: 'right', cell: ({ failed }) => grouped(failed) },
    { title: 'QUEUED', align: 'right', cell: ({ queued }) => grouped(queued) },
    {
      title: 'ERRORS',
      align: 'right',
      cell: ({ component }) =>
        grouped(errors.reduce((sum, one) => sum + (one.component === component ? one.count : 0), 0)),
    },
    { title: 'P50', align: 'right', givesWay: 5, cell: (one) => micros(latency(one, 0.5)) },
    { title: 'P99', align: 'right', cell: (one) => micros(latency(one, 0.99)) },
  ];
  return columns(components, all, width);
}

/** Spouts: emit to completion; bolts: one call. Microseconds; null: nothing measured. */
export function latency(
  { kind, completeMicros, executeMicros }: Status['components'][number],
  quantile: number,
): number | null {
  const sketch = kind === 'spout' ? completeMicros : executeMicros;
  return sketch.length === 0 ? null : (sketchQuantile(sketch, quantile) ?? null);
}

function workerLines({ workers }: Status, width: number, nowMs: number): readonly string[] {
  if (workers.length === 0) return ['No worker.'];
  const all: readonly Column<Status['workers'][number]>[] = [
    { title: 'WORKER', align: 'left', cell: ({ supervisorId, port }) => `${supervisorId}:${port}` },
    { title: 'STATE', align: 'left', cell: workerState },
    { title: 'PID', align: 'right', cell: ({ pid }) => (pid === null ? '' : String(pid)) },
    { title: 'EXECUTORS', align: 'right', givesWay: 2, cell: ({ executors }) => String(executors) },
    { title: 'THREADS', align: 'right', givesWay: 1, cell: ({ threads }) => String(threads.length) },
    { title: 'MEMORY', align: 'right', cell: ({ rssBytes }) => megabytes(rssBytes) },
    { title: 'RESTARTS', align: 'right', cell: restartsText },
  ];
  const problems: Column<Status['workers'][number]> = {
    title: 'LAST PROBLEM',
    align: 'left',
    cell: ({ lastProblem, lastProblemMs }) => {
      if (lastProblem === null) return '';
      const when = lastProblemMs === null ? '' : `${ago(lastProblemMs, nowMs)}: `;
      return `${when}${lastProblem.code}: ${printable(lastProblem.message)}`;
    },
  };
  return columnsWithRemarks(workers, all, problems, width);
}

function workerState({ state, isReady, heartbeatAgeMs }: Status['workers'][number]): string {
  const isSilent = state === 'running' && heartbeatAgeMs !== null && heartbeatAgeMs >= SILENT_MS;
  if (isSilent) return `silent for ${duration(heartbeatAgeMs)}`;
  if (isReady) return 'ready';
  return state === 'running' ? 'not ready' : state;
}

/** Of the worker's process, and of threads within it, whose tasks start anew just as well. */
function restartsText({ restarts, threads }: Status['workers'][number]): string {
  const ofThreads = threads.reduce((sum, one) => sum + one.restarts, 0);
  return ofThreads === 0 ? String(restarts) : `${restarts} + ${counted(ofThreads, 'thread')}`;
}

export function lifeLine(name: string, { status, isChanged, waitMs }: LifeResult): string {
  if (!isChanged) return `${name} is ${status} already`;
  if (status === 'KILLED' && waitMs !== null)
    return `${name} is KILLED; it is removed in ${duration(waitMs)}`;
  return `${name} is ${status}`;
}

export function rebalanceLines(name: string, result: RebalanceResult, isPreview: boolean): string[] {
  const { changes, notes, waitMs, workers, executors, unplacedReason } = result;
  const { startedWorkers, stoppedWorkers, changedWorkers, moves, movedTasks } = changes;
  const counts = Object.entries(executors).map(([component, count]) => `${component} ${count}`);
  const when = isPreview ? 'would be' : waitMs === null ? 'is being' : `in ${duration(waitMs)} will be`;
  const lines = [
    `${name} ${when} rebalanced: ${counted(workers, 'worker')} wanted; executors: ${counts.join(', ')}`,
    `${counted(movedTasks, 'task')} ${movedTasks === 1 ? 'moves' : 'move'}; workers: ${startedWorkers.length} start, ${stoppedWorkers.length} stop, ${changedWorkers.length} change`,
  ];
  for (const { component, firstTask, lastTask, from, to } of moves.slice(0, MAX_MOVES)) {
    const tasks = firstTask === lastTask ? `${firstTask}` : `${firstTask}-${lastTask}`;
    lines.push(`  ${component} ${tasks}: ${placeText(from)} → ${placeText(to)}`);
  }
  if (moves.length > MAX_MOVES) lines.push(`  and ${moves.length - MAX_MOVES} more`);
  for (const note of notes) lines.push(`note: ${printable(note)}`);
  if (unplacedReason !== null) lines.push(`note: ${printable(unplacedReason)}`);
  return lines;
}

function placeText(place: Place | null): string {
  return place === null ? 'nowhere' : `${place.supervisorId}:${place.port}`;
}

/** Names, values and origins are never cut: without them a line says nothing. Meanings that have no room stand below. */
export function configLines(values: readonly SettingValue[], width: number): readonly string[] {
  const all: readonly Column<SettingValue>[] = [
    { title: 'SETTING', align: 'left', cell: ({ name }) => name },
    { title: 'VALUE', align: 'left', cell: ({ value, unit }) => valueText(value, unit) },
    { title: 'FROM', align: 'left', cell: ({ origin }) => origin },
  ];
  const start = columnsWidth(values, all) + 2;
  const isBeside = width - start >= LEAST_MEANING;
  return columns(values, all, Number.POSITIVE_INFINITY).flatMap((line, i) => {
    const meaning = i === 0 ? 'MEANING' : values[i - 1]!.what;
    if (isBeside) return [padded(line, start, 'left') + cut(meaning, width - start)];
    return i === 0 ? [line] : [line, ...indented(`    ${meaning}`, Math.max(40, width), 4)];
  });
}

function valueText(value: SettingValue['value'], unit: SettingValue['unit']): string {
  if (value === null) return 'not set';
  const text = typeof value === 'object' ? value.join(', ') : String(value);
  return unit === null ? text : `${text} ${unit}`;
}
