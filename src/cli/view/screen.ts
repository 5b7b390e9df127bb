/** The live screen of a run as lines of text: a pure function of what is to be shown and the width. */
import type { Colors } from '../colors.js';
import { messageOf } from '../error-text.js';
import {
  type Column,
  columns,
  columnsWidth,
  compact,
  counted,
  cut,
  duration,
  grouped,
  megabytes,
  micros,
  printable,
  rate,
} from './format.js';
import type { ComponentView, RunView, WorkerView } from './view.js';
import { longCallText } from './warnings.js';

/** From this width on, numbers are written out and there are more columns, as many as fit. */
const WIDE = 120;
/** The columns of components that give way where not all fit, in this order. */
const GIVING_WAY = ['dead letters', 'kind', 'tasks', 'pending', 'emitted', 'executed'];
const OLD_ROW_MS = 5000;
const SILENT_MS = 5000;
const MAX_LONG_CALLS = 3;
/** Fewer tasks start in a moment; of so many it is said how far they are. */
const MANY_TASKS = 1000;

/** Lines of at most `width` characters, colours not counted. */
export function renderScreen(view: RunView, width: number, colors: Colors): readonly string[] {
  const isWide = width >= WIDE;
  const table = <T>(rows: readonly T[], all: readonly Column<T>[]): readonly string[] => {
    const [titles, ...lines] = columns(rows, all, width);
    return [colors.dim(titles ?? ''), ...lines];
  };
  return [
    colors.bold(cut(headline(view), width)),
    cut(totalsLine(view), width),
    '',
    ...table(view.components, componentColumnsWithin(view.components, width)),
    '',
    ...table(view.workers, workerColumns(isWide)),
    ...notices(view).flatMap((notice, i) => {
      const color = notice.isError ? colors.red : colors.magenta;
      return [...(i === 0 ? [''] : []), color(cut(notice.text, width))];
    }),
  ];
}

export function headline({ topology, phase, starting, uptimeMs }: RunView): string {
  const progress =
    starting === null || starting.tasks < MANY_TASKS
      ? ''
      : `, ${grouped(starting.running)} of ${grouped(starting.tasks)} tasks run`;
  return `${topology} · ${phase}${progress} · ${duration(uptimeMs)}`;
}

export function totalsLine({ totals, ackedPerSecond, isAcking }: RunView): string {
  const { acked, emitted, pending, failed, replayed, deadLetters } = totals;
  if (!isAcking) return `${counted(emitted, 'row')} emitted · acking is off`;
  const parts = [
    `${counted(acked, 'row')} acked, ${rate(ackedPerSecond)}/s`,
    `${grouped(pending)} pending`,
    `${grouped(failed)} failed`,
    `${grouped(replayed)} replayed`,
    ...(deadLetters > 0 ? [counted(deadLetters, 'dead letter')] : []),
  ];
  return parts.join(' · ');
}

function componentColumnsWithin(
  components: readonly ComponentView[],
  width: number,
): readonly Column<ComponentView>[] {
  if (width < WIDE) return componentColumns(false);
  const all = componentColumns(true);
  for (let gone = 0; gone <= GIVING_WAY.length; gone++) {
    const some = all.filter(({ title }) => !GIVING_WAY.slice(0, gone).includes(title));
    if (columnsWidth(components, some) <= width) return some;
  }
  return componentColumns(false);
}

function componentColumns(isWide: boolean): readonly Column<ComponentView>[] {
  const count = isWide ? grouped : compact;
  const right = (title: string, cell: (row: ComponentView) => string): Column<ComponentView> => ({
    title,
    align: 'right',
    cell,
  });
  const bolts = (row: ComponentView, text: string): string => (row.kind === 'spout' ? '–' : text);
  return [
    { title: 'component', align: 'left', cell: ({ id }) => printable(id) },
    ...(isWide
      ? [{ title: 'kind', align: 'left', cell: ({ kind }) => kind } satisfies Column<ComponentView>]
      : []),
    right(isWide ? 'executors' : 'exec', ({ executors }) => compact(executors)),
    ...(isWide ? [right('tasks', ({ tasks }) => compact(tasks))] : []),
    right('in/s', (row) => bolts(row, rate(row.executedPerSecond))),
    right('out/s', ({ emittedPerSecond }) => rate(emittedPerSecond)),
    right('p50', ({ latency }) => micros(latency.p50Micros)),
    right('p99', ({ latency }) => micros(latency.p99Micros)),
    right('queue', (row) => bolts(row, count(row.queued))),
    ...(isWide ? [right('pending', ({ pending }) => grouped(pending))] : []),
    ...(isWide ? [right('executed', (row) => bolts(row, grouped(row.executed)))] : []),
    ...(isWide ? [right('emitted', ({ emitted }) => grouped(emitted))] : []),
    right('acked', ({ acked }) => count(acked)),
    right('failed', ({ failed }) => count(failed)),
    right(isWide ? 'replayed' : 'repl', (row) => (row.kind === 'spout' ? count(row.replayed) : '–')),
    ...(isWide ? [right('dead letters', ({ deadLetters }) => grouped(deadLetters))] : []),
  ];
}

function workerColumns(isWide: boolean): readonly Column<WorkerView>[] {
  const right = (title: string, cell: (row: WorkerView) => string): Column<WorkerView> => ({
    title,
    align: 'right',
    cell,
  });
  return [
    { title: 'worker', align: 'left', cell: ({ port }) => String(port) },
    right('pid', ({ pid }) => (pid === null ? '–' : String(pid))),
    { title: 'state', align: 'left', cell: ({ state }) => state },
    right('threads', ({ threads, stuckThreads }) =>
      stuckThreads === 0 ? String(threads) : `${threads} (${stuckThreads} stuck)`,
    ),
    right(isWide ? 'executors' : 'exec', ({ executors }) => String(executors)),
    right('cpu', ({ cpuPercent }) => (cpuPercent === null ? '–' : `${Math.round(cpuPercent)} %`)),
    right('memory', ({ rssBytes }) => megabytes(rssBytes)),
    right('restarts', ({ restarts }) => String(restarts)),
  ];
}

interface Notice {
  readonly text: string;
  readonly isError: boolean;
}

/** What asks for attention, most urgent first. */
function notices(view: RunView): readonly Notice[] {
  const { reportAgeMs, problems, unplacedExecutors, unplacedReason, lastError, errorCount, lostStates } =
    view;
  const found: Notice[] = [];
  const say = (text: string, isError = false): void => void found.push({ text: printable(text), isError });
  for (const { code, message } of problems.slice(0, 3)) say(`${code}: ${message}`, true);
  if (unplacedExecutors > 0) {
    say(
      `${counted(unplacedExecutors, 'executor')} without a slot${unplacedReason === null ? '' : `: ${unplacedReason}`}`,
    );
  }
  if (reportAgeMs !== null && reportAgeMs > SILENT_MS && view.phase !== 'finished') {
    say(`no worker has reported for ${duration(reportAgeMs)}`);
  }
  if (lastError !== null) {
    const { component, task, error, count } = lastError;
    const alike = count > 1 ? ` … and ${grouped(count - 1)} more like it` : '';
    const place = component === '' ? '' : ` in ${component}${task === 0 ? '' : ` task ${task}`}`;
    say(`${counted(errorCount, 'error')}; last${place}: ${error.code}: ${messageOf(error)}${alike}`, true);
  }
  for (const call of view.longCalls.slice(0, MAX_LONG_CALLS)) say(longCallText(call));
  if (lostStates > 0) say(`${counted(lostStates, 'task')} lost state in a crash`);
  const oldest = view.oldestPending;
  if (oldest !== null && oldest.ageMs >= OLD_ROW_MS) {
    const holder = oldest.heldBy === null ? '' : `, held by ${oldest.heldBy}`;
    say(
      `oldest pending row: ${oldest.row} of ${oldest.component} task ${oldest.task}, for ${duration(oldest.ageMs)}${holder}`,
    );
  }
  return found;
}

/** One line for places where nothing can be redrawn. */
export function plainLine(view: RunView): string {
  const queued = view.components.reduce((sum, component) => sum + component.queued, 0);
  const cpu = view.workers.reduce((sum, { cpuPercent }) => sum + (cpuPercent ?? 0), 0);
  return [
    headline(view),
    totalsLine(view),
    `${grouped(queued)} queued`,
    `${counted(view.workers.length, 'worker')} at ${Math.round(cpu)} % cpu`,
    ...(view.errorCount > 0 ? [counted(view.errorCount, 'error')] : []),
    ...view.longCalls.slice(0, MAX_LONG_CALLS).map(longCallText),
  ].join(' · ');
}
