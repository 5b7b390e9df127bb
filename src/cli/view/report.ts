/**
 * How a run ended: what it comes to, as facts, as sentences and as an exit code. Pure. Whatever is claimed is computed from
 * the final counts.
 */
import type { TopologyStatus, TopologyTotals } from '../../api/index.js';
import { messageOf } from '../error-text.js';
import { ExitCode } from '../exit-code.js';
import { componentsWithLostOutput, errorKinds, spoutsStillThrowing } from './error-kinds.js';
import {
  type Column,
  columns,
  counted,
  cut,
  duration,
  grouped,
  micros,
  printable,
  rate,
  wrapped,
} from './format.js';
import { lostTasks } from './lost-states.js';
import { latencyOf } from './view.js';

const MAX_ERROR_LINES = 10;
/** Below these a rate says more about starting than about the topology. */
const MIN_RATED_ROWS = 100;
const MIN_RATED_MS = 1000;

export interface Drain {
  /** When it was asked for, in the clock of the statuses. */
  readonly atMs: number;
  /** Rows pending in the last report before the drain was asked for. */
  readonly pending: number;
  /** Totals of that report, to be compared with the final ones. */
  readonly acked: number;
  readonly failed: number;
  readonly deadLetters: number;
}

export interface RunEnd {
  readonly status: TopologyStatus;
  /** Of the last status before it was over: afterwards nobody is there to say what is pending. null: there was none. */
  readonly aliveTotals: TopologyTotals | null;
  /** Lines that the topology's code printed were lost before they could be shown. */
  readonly isOutputLost: boolean;
  /** From the submission to the end. */
  readonly durationMs: number;
  /** From the start of the command: checking and starting included. */
  readonly totalMs: number;
  /** A drain had been asked for. */
  readonly drain: Drain | null;
  /** A second signal did not wait for its end. */
  readonly isForced: boolean;
}

/** What has become of the rows that the spouts emitted. */
export interface Accounts {
  /** Emitted for the first time, in each life of their spout task. */
  readonly rows: number;
  readonly acked: number;
  readonly deadLetters: number;
  /** Failed and not replayed: they had no position, or were emitted again under another one. */
  readonly givenUp: number;
  /** Under way when their spout task was lost; those with a position have been read again. */
  readonly readAgain: number;
  /** Not acked when the run ended. */
  readonly left: number;
  /** Every row was acked; null: acking is off, so nobody knows. */
  readonly isEveryRowAcked: boolean | null;
}

export function accountsOf({ status, aliveTotals }: Pick<RunEnd, 'status' | 'aliveTotals'>): Accounts {
  const { emitted, acked, failed, replayed, deadLetters, pending } = status.totals;
  const rows = emitted - replayed;
  const isComplete = status.phase.kind === 'finished';
  const open = openRows(status.totals);
  // What was open and not pending before the end has been given up or was read again; the rest was cut off by the end.
  const gone = aliveTotals === null ? 0 : Math.max(0, openRows(aliveTotals) - aliveTotals.pending);
  const left = isComplete ? 0 : Math.max(0, open - gone);
  const givenUp = Math.min(open - left, Math.max(0, failed - replayed - deadLetters));
  const readAgain = open - left - givenUp;
  const isEveryRowAcked =
    status.ackers === 0
      ? null
      : isComplete && deadLetters === 0 && givenUp === 0 && pending === 0 && acked >= rows;
  return { rows, acked, deadLetters, givenUp, readAgain, left, isEveryRowAcked };
}

/** Emitted, and neither acked nor a dead letter. */
function openRows({ emitted, replayed, acked, deadLetters }: TopologyTotals): number {
  return Math.max(0, emitted - replayed - acked - deadLetters);
}

/** `finished`, `drained`, `drain-timeout`, `killed`, `forced` or `failed`. */
export function outcomeOf({ status, drain, isForced }: RunEnd): string {
  const { phase } = status;
  if (phase.kind === 'failed') return 'failed';
  if (isForced) return 'forced';
  if (phase.kind === 'finished') return phase.drained ? 'drained' : 'finished';
  return drain === null ? 'killed' : 'drain-timeout';
}

/** See docs/cli.md. */
export function exitCodeOf(end: RunEnd): number {
  switch (outcomeOf(end)) {
    case 'forced':
      return ExitCode.interrupted;
    case 'finished':
    case 'drained':
      return end.status.totals.deadLetters > 0 ||
        accountsOf(end).givenUp > 0 ||
        end.isOutputLost ||
        componentsWithLostOutput(end.status).length > 0 ||
        throwingSpouts(end).length > 0
        ? ExitCode.failed
        : ExitCode.ok;
    default:
      return ExitCode.failed;
  }
}

/** Rows per second from the submission to the end; null: too few rows, or too short a time, for a rate. */
export function rateOf(end: RunEnd): number | null {
  const { rows } = accountsOf(end);
  return rows < MIN_RATED_ROWS || end.durationMs < MIN_RATED_MS ? null : rows / (end.durationMs / 1000);
}

/** The sentence on what a drain did; null where there was none. */
export function drainSentence(end: RunEnd): string | null {
  const { drain, status } = end;
  if (drain === null) return null;
  const { totals } = status;
  const parts = [
    `${counted(Math.max(0, totals.acked - drain.acked), 'row')} completed since the last report before the signal`,
    `${grouped(Math.max(0, totals.failed - drain.failed))} failed`,
    ...(totals.deadLetters > drain.deadLetters
      ? [counted(totals.deadLetters - drain.deadLetters, 'dead letter')]
      : []),
    `${grouped(accountsOf(end).left)} left`,
  ];
  const before = `${grouped(drain.pending)} ${drain.pending === 1 ? 'was' : 'were'} pending in it`;
  return `Drained: ${parts.join(', ')} (${before}).`;
}

/** The final report, lines of plain text. */
export function renderReport(end: RunEnd, width: number): readonly string[] {
  const { status, durationMs } = end;
  const drained = drainSentence(end);
  const perSecond = rateOf(end);
  const sentences = [
    ...(drained === null ? [] : [drained]),
    ...accountSentences(end),
    ...troubleSentences(end),
    ...lostStateSentences(status),
  ];
  return [
    ...columns(status.components, totalsColumns(), width),
    '',
    ...sentences.flatMap((sentence) => wrapped(sentence, width)),
    ...errorLines(status, width),
    ...(status.deadLetterFiles.length === 0
      ? []
      : ['Dead letters are in:', ...status.deadLetterFiles.map((path) => `  ${path}`)]),
    ...wrapped(
      `${status.name} ${outcomeSentence(end)}: ${counted(accountsOf(end).rows, 'row')}` +
        `${perSecond === null ? '' : `, ${rate(perSecond)} rows/s`}; ` +
        `ran ${duration(durationMs)} (${duration(end.totalMs)} with checking and starting).`,
      width,
    ),
  ];
}

function totalsColumns(): readonly Column<TopologyStatus['components'][number]>[] {
  type Row = TopologyStatus['components'][number];
  const right = (title: string, cell: (row: Row) => string): Column<Row> => ({ title, align: 'right', cell });
  return [
    { title: 'component', align: 'left', cell: ({ component }) => component },
    right('executed', ({ kind, executed }) => (kind === 'spout' ? '–' : grouped(executed))),
    right('emitted', ({ emitted }) => grouped(emitted)),
    right('acked', ({ acked }) => grouped(acked)),
    right('failed', ({ failed }) => grouped(failed)),
    right('replayed', ({ kind, replayed }) => (kind === 'spout' ? grouped(replayed) : '–')),
    right('p50', (row) => micros(latencyOf(row, undefined).p50Micros)),
    right('p99', (row) => micros(latencyOf(row, undefined).p99Micros)),
  ];
}

function accountSentences(end: RunEnd): readonly string[] {
  const { rows, acked, deadLetters, givenUp, readAgain, left, isEveryRowAcked } = accountsOf(end);
  if (isEveryRowAcked === null)
    return [`${counted(rows, 'row')} emitted; acking is off, so nobody waited for them.`];
  if (isEveryRowAcked && rows === 0) return ['No row was read.'];
  if (isEveryRowAcked)
    return [rows === 1 ? 'The one row was acked.' : `Every one of ${counted(rows, 'row')} was acked.`];
  const parts = [
    `${grouped(acked)} acked`,
    ...(deadLetters > 0 ? [counted(deadLetters, 'dead letter')] : []),
    ...(givenUp > 0 ? [`${grouped(givenUp)} failed and not replayed, for want of a position`] : []),
    ...(readAgain > 0
      ? [`${grouped(readAgain)} under way when their spout was lost (read again if they have positions)`]
      : []),
    ...(left > 0 ? [`${grouped(left)} not acked`] : []),
  ];
  return [`Of ${counted(rows, 'row')}: ${parts.join(', ')}.`];
}

/** Spouts that a drain ended while they were failing; those of a run to the end have got over it. */
export function throwingSpouts({ status, drain }: RunEnd): readonly string[] {
  return drain === null ? [] : spoutsStillThrowing(status, drain.atMs);
}

/** What the counts cannot tell. */
export function troubleSentences(end: RunEnd): readonly string[] {
  const lost = componentsWithLostOutput(end.status);
  const throwing = throwingSpouts(end);
  const unreplayable =
    end.status.ackers === 0 ? [] : end.status.components.filter((component) => component.unreplayable > 0);
  return [
    ...(lost.length === 0
      ? []
      : [`Output of ${lost.map(printable).join(', ')} may be missing: see its errors.`]),
    ...(end.isOutputLost ? ['Some of what the topology printed was lost: see OUTPUT_LOST.'] : []),
    ...throwing.map(
      (spout) => `${printable(spout)} was still throwing at the end: rows behind that place were not read.`,
    ),
    ...unreplayable.map(
      ({ component, unreplayable: rows }) =>
        `Nothing would have replayed ${counted(rows, 'row')} of ${printable(component)}, which had no position.`,
    ),
  ];
}

/** The most frequent errors of each component, in the order of the components; those of none last. */
function errorLines({ errors, components }: TopologyStatus, width: number): readonly string[] {
  if (errors.length === 0) return [];
  const order = components.map(({ component }) => component);
  const place = (component: string): number => (order.indexOf(component) + 1 || Infinity) - 1;
  const kinds = errorKinds(errors).toSorted((a, b) => {
    const [first, second] = [place(a.component), place(b.component)];
    return first === second ? b.count - a.count : first < second ? -1 : 1;
  });
  const more = kinds.slice(MAX_ERROR_LINES).reduce((sum, { count }) => sum + count, 0);
  return [
    'Errors:',
    ...kinds
      .slice(0, MAX_ERROR_LINES)
      .map(({ component, error, count }) =>
        cut(
          printable(
            `  ${grouped(count)} × ${component === '' ? '' : `${component}: `}${error.code}: ${messageOf(error)}`,
          ),
          width,
        ),
      ),
    ...(more > 0 ? [`  … and ${grouped(more)} more`] : []),
  ];
}

function lostStateSentences({ lostStates }: TopologyStatus): readonly string[] {
  return lostTasks(lostStates).map(({ component, task, count, lastMs }) => {
    const when = new Date(lastMs).toISOString();
    const crashes = count === 1 ? `a crash at ${when}` : `${grouped(count)} crashes, the last at ${when}`;
    return `State of ${component} task ${task} was lost in ${crashes}.`;
  });
}

function outcomeSentence(end: RunEnd): string {
  switch (outcomeOf(end)) {
    case 'finished':
      return 'ran to the end of its input';
    case 'drained':
      return 'was drained';
    case 'drain-timeout':
      return 'was stopped, since drain.timeout had passed';
    case 'forced':
      return 'was stopped by force';
    case 'failed':
      return 'failed';
    default:
      return 'was stopped';
  }
}
