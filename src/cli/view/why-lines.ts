/** A diagnosis as one screen, and as JSON. Pure. */
import type { ComponentLoad, Diagnosis, Skew, StuckCall, TopologyDetail } from '../../api/index.js';
import { eventLines } from './event-lines.js';
import { indented } from './indented.js';
import { type Column, columns, counted, cut, duration, grouped, micros, printable, rate } from './format.js';

const MAX_THREADS = 3;
const MAX_LOST = 3;
const MAX_REASONS = 5;
/** Of one fact. */
const MAX_LINES = 4;
/** `oldest row   …`. */
const LABELLED = /^[a-z][a-z ]{11} /;
/** Of a younger row that is on its way it is no news that nobody knows who holds it. */
const OLD_ROW_MS = 1000;

export function whyLines(
  { summary, status, events }: TopologyDetail,
  diagnosis: Diagnosis,
  width: number,
): readonly string[] {
  const nowMs = summary.submittedMs + summary.uptimeMs;
  const ago = (atMs: number): string => `${duration(Math.max(0, nowMs - atMs))} ago`;
  const lines = [
    `${printable(summary.name)} (${summary.status}): ${verdictText(diagnosis, nowMs)}`,
    ...adviceOf(summary.name, diagnosis).map((advice) => `  → ${advice}`),
    '',
    ...columns(diagnosis.components, COLUMNS, width),
    '',
  ];
  const { move } = diagnosis;
  if (move !== null) {
    lines.push(
      `rebalance    ${counted(move.tasks, 'task')}, ${move.step}; what does not move runs meanwhile`,
    );
    for (const problem of move.problems.slice(0, MAX_REASONS))
      lines.push(`             ${printable(problem)}`);
  }
  for (const { worker, thread, active, restarts, tasks } of diagnosis.threads.slice(0, MAX_THREADS)) {
    const again = restarts === 0 ? '' : `, started again ${grouped(restarts)} ×`;
    const what = tasks.length === 0 ? '' : `: ${tasks.join(' ')}`;
    lines.push(`thread       ${worker}/${thread} is active ${percent(active)}${again}${what}`);
  }
  for (const skew of diagnosis.skews) lines.push(`skew         ${skewText(skew)}`);
  for (const call of diagnosis.stuckCalls) lines.push(`long call    ${callText(call)}`);
  const { oldestPending } = diagnosis;
  if (oldestPending !== null) {
    const { component, task, row, ageMs, heldBy } = oldestPending;
    const unknown = ageMs < OLD_ROW_MS ? '' : '; nobody knows who holds it';
    const holder = heldBy === null ? unknown : `; held by ${heldBy}`;
    lines.push(
      `oldest row   ${component}[${task}] ${printable(row)}, pending for ${duration(ageMs)}${holder}`,
    );
  }
  const { waiting, lost } = diagnosis.replay;
  if (waiting + lost > 0)
    lines.push(
      `replay       waiting for replay ${grouped(waiting)}, lost ${lost === 0 ? '0' : `${grouped(lost)} at most (rows without position)`}`,
    );
  for (const { component, task, error, count, lastMs } of diagnosis.errors) {
    const who = component === '' ? 'worker' : `${component}[${task}]`;
    lines.push(
      `error        ${who} ${error.code}: ${printable(error.message)} (${grouped(count)} ×, last ${ago(lastMs)})`,
    );
  }
  for (const { component, task, atMs } of diagnosis.lostStates.slice(-MAX_LOST))
    lines.push(`lost state   ${component}[${task}], ${ago(atMs)}`);
  if (diagnosis.lostStates.length > MAX_LOST)
    lines.push(`lost state   and ${grouped(diagnosis.lostStates.length - MAX_LOST)} more before`);
  if (status.deadLetterFiles.length > 0)
    lines.push(`dead letters ${grouped(status.totals.deadLetters)}; isobar describe names their files`);
  for (const line of eventLines(events, ago)) lines.push(`event        ${line}`);
  return lines.flatMap((line) => brokenLine(line, Math.max(40, width)));
}

/** A line broken between words, below what its label names; a very long one is cut, since all is to be one screen. */
function brokenLine(line: string, width: number): readonly string[] {
  const lines = indented(line, width, LABELLED.test(line) ? 13 : 4).map((one) => cut(one, width));
  if (lines.length <= MAX_LINES) return lines;
  return [...lines.slice(0, MAX_LINES - 1), `${cut(lines[MAX_LINES - 1]!, width - 2)} …`];
}

/** As docs/json-output.md says. */
export function whyJson({ summary, events }: TopologyDetail, diagnosis: Diagnosis): object {
  return {
    type: 'why',
    name: summary.name,
    id: summary.id,
    status: summary.status,
    summary: verdictText(diagnosis, summary.submittedMs + summary.uptimeMs),
    advice: adviceOf(summary.name, diagnosis),
    ...diagnosis,
    errors: diagnosis.errors.map(({ component, task, error: { code, message }, count, firstMs, lastMs }) => {
      return { component, task, code, message, count, firstMs, lastMs };
    }),
    events,
  };
}

const COLUMNS: readonly Column<ComponentLoad>[] = [
  { title: 'COMPONENT', align: 'left', cell: ({ component }) => printable(component) },
  { title: 'BUSY', align: 'right', cell: ({ capacity }) => percent(capacity) },
  { title: 'HELD UP', align: 'right', cell: ({ heldUp }) => percent(heldUp) },
  { title: 'QUEUED', align: 'right', cell: ({ queued }) => grouped(queued) },
  { title: 'GROWTH/S', align: 'right', givesWay: 1, cell: ({ queuedPerSecond }) => signed(queuedPerSecond) },
  {
    title: 'WAIT',
    align: 'right',
    cell: ({ waitMs }) => (waitMs === 0 ? '–' : waitText(waitMs)),
  },
  { title: 'ROWS/S', align: 'right', cell: ({ rowsPerSecond }) => rate(rowsPerSecond) },
  { title: 'P99', align: 'right', givesWay: 2, cell: ({ p99Micros }) => micros(p99Micros) },
  { title: 'LAG', align: 'right', cell: ({ lag }) => (lag === null ? '–' : grouped(lag)) },
  {
    title: 'LAG/S',
    align: 'right',
    cell: ({ lagPerSecond }) => (lagPerSecond === null ? '–' : signed(lagPerSecond)),
  },
];

function verdictText({ verdict, components, windowMs }: Diagnosis, nowMs: number): string {
  const load = (id: string): ComponentLoad | undefined =>
    components.find(({ component }) => component === id);
  switch (verdict.kind) {
    case 'ended':
      return `it has ended, and nothing of it runs${reasonsText(verdict.reasons)}`;
    case 'not-running':
      return `not all of it runs${reasonsText(verdict.reasons)}`;
    case 'not-reading':
      return 'its spouts do not read; nothing is held up';
    case 'stuck':
      return `${callText(verdict.call)}; its thread does nothing else`;
    case 'busy': {
      const busy = percent(load(verdict.component)?.capacity ?? 0);
      return verdict.threadsFull
        ? `${verdict.component} is the bottleneck: its executors are busy ${busy}, and the threads that they share have no time left`
        : `${verdict.component} is the bottleneck: its executors are busy ${busy} of the time`;
    }
    case 'hot-task': {
      const { component, task, worker, share, tasks, active } = verdict;
      return `${component} is the bottleneck: one of its ${tasks} tasks, ${component}[${task}] on ${worker}, gets ${percent(share)} of its rows, and its thread is active ${percent(active)}`;
    }
    case 'waiting': {
      const { queued = 0, waitMs = 0 } = load(verdict.component) ?? {};
      const wait =
        waitMs === null || waitMs >= OLD_ROW_MS ? ` (${grouped(queued)}, ${waitText(waitMs)})` : '';
      return `${verdict.component} is the bottleneck: rows wait in it${wait} while its threads rest, so it waits for its promises`;
    }
    case 'throwing': {
      const { component, task, message, count, lastMs } = verdict;
      return `${component}[${task}] gives no rows, since its source throws: ${printable(message)} (${grouped(count)} ×, last ${duration(Math.max(0, nowMs - lastMs))} ago)`;
    }
    case 'sources':
      return `nothing is held up; it does what its sources give (seen for ${duration(windowMs)})`;
  }
}

/** `: a; b`, or nothing. */
function reasonsText(reasons: readonly string[]): string {
  return reasons.length === 0 ? '' : `: ${reasons.slice(0, MAX_REASONS).map(printable).join('; ')}`;
}

function adviceOf(name: string, { verdict, components, skews }: Diagnosis): readonly string[] {
  const executors = (id: string): number =>
    (components.find(({ component }) => component === id)?.executors ?? 1) * 2;
  switch (verdict.kind) {
    case 'busy': {
      const { component } = verdict;
      if (skews.some((skew) => skew.kind === 'hot-key' && skew.component === component))
        return [
          `One task of ${component} gets most rows: split its key, or group by partial key; more executors do not help. isobar tap ${name} ${component} --taken shows which keys come`,
        ];
      if (skews.some(({ kind }) => kind === 'hot-placement'))
        return [
          `One thread is full while others rest: isobar rebalance ${name} -e ${component}=${executors(component)} spreads its rows`,
        ];
      return verdict.threadsFull
        ? [
            `More threads or workers: topology.executor-threads, isobar rebalance ${name} -n WORKERS; or make ${component} cheaper`,
          ]
        : [
            `isobar rebalance ${name} -e ${component}=${executors(component)} if it has tasks for it, or make ${component} cheaper`,
          ];
    }
    case 'hot-task': {
      const { component } = verdict;
      return [
        `Split its key, or group by partial key; more executors do not help. isobar tap ${name} ${component} --taken shows which keys come`,
      ];
    }
    case 'waiting':
      return [`Raise bolt.max-in-flight, give ${verdict.component} more tasks, or look at what it waits for`];
    case 'throwing':
      return [
        `It is asked again and again, with pauses up to worker.restart-backoff-max, and reads on where it was. isobar logs ${name} ${verdict.component} has the place in its source`,
      ];
    case 'stuck':
      return [
        `Nothing ends it by itself unless worker.stuck-timeout is set; kill -9 of its worker does (pid in isobar describe ${name}): another one is started, and rows are replayed. isobar logs ${name} ${verdict.call.component}`.trimEnd(),
      ];
    case 'ended':
      return [
        verdict.status === 'FINISHED'
          ? `isobar describe ${name} has what it did; isobar kill ${name} removes it`
          : `isobar events ${name} says how; isobar kill ${name} removes it`,
      ];
    case 'not-running':
      return [`isobar describe ${name}; isobar logs ${name} --level warn`];
    case 'not-reading':
      return verdict.status === 'INACTIVE' ? [`isobar activate ${name}`] : [];
    case 'sources':
      return verdict.lagPerSecond !== null && verdict.lagPerSecond > 0
        ? ['Its sources fall behind though nothing holds them up: more spout tasks, or a faster source']
        : [];
  }
}

function skewText(skew: Skew): string {
  if (skew.kind === 'hot-key') {
    const where = skew.worker === null ? '' : ` on ${skew.worker}`;
    return `hot key: ${skew.component}[${skew.task}]${where} got ${percent(skew.share)} of the rows, one of ${skew.tasks} tasks`;
  }
  return `hot placement: thread ${skew.worker}/${skew.thread} is active ${percent(skew.active)}, the others ${percent(skew.othersActive)}`;
}

function callText({ worker, thread, component, task, call, forMs, isBlocking }: StuckCall): string {
  const who = component === '' ? `thread ${worker}/${thread}` : `${component}[${task}] on ${worker}`;
  return `${who} has been ${isBlocking ? 'in' : 'waiting in'} ${call} for ${duration(forMs)}`;
}

function waitText(waitMs: number | null): string {
  return waitMs === null ? 'no end' : duration(waitMs);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function signed(perSecond: number): string {
  const text = rate(Math.abs(perSecond));
  return perSecond < 0 ? `-${text}` : perSecond > 0 ? `+${text}` : text;
}
