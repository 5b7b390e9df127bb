/** The lines of `--json`. Their shape is promised in docs/json-output.md. Pure. */
import type { ErrorRecord } from '../base/index.js';
import { accountsOf, exitCodeOf, outcomeOf, rateOf, throwingSpouts, type RunEnd } from './view/report.js';
import { componentsWithLostOutput, errorKinds } from './view/error-kinds.js';
import type { ProblemView, RunView } from './view/view.js';
import { latencyOf } from './view/view.js';
import type { Warning } from './view/warnings.js';

export function submittedLine(
  topologyId: string,
  name: string,
  notes: readonly string[],
  atMs: number,
): object {
  return { type: 'submitted', atMs, topology: name, topologyId, notes };
}

/** Once a second. */
export function statusLine(view: RunView, atMs: number): object {
  const { topology, topologyId, phase, uptimeMs, totals, ackedPerSecond, components, workers } = view;
  return {
    type: 'status',
    atMs,
    topology,
    topologyId,
    phase,
    uptimeMs,
    totals,
    ackedPerSecond,
    components,
    workers,
    errorCount: view.errorCount,
    problems: view.problems.map(({ code, message }) => ({ code, message })),
    lostStates: view.lostStates,
    oldestPending: view.oldestPending,
    longCalls: view.longCalls,
  };
}

/** A line that user code has printed. */
export function outputLine(worker: string, text: string): object {
  return { type: 'output', worker, text };
}

/** The first occurrence of an error in a task. */
export function problemLine(
  { component, task, error }: ProblemView,
  frames: readonly string[],
  atMs: number,
): object {
  return { type: 'problem', atMs, component, task, ...errorFields(error, frames) };
}

/** Something that the run did not survive. */
export function errorLine(
  error: ErrorRecord,
  frames: readonly string[],
  exitCode: number,
  atMs: number,
): object {
  return { type: 'error', atMs, ...errorFields(error, frames), exitCode };
}

/** Something worth knowing: `note`. */
export function noteLine(text: string, atMs: number): object {
  return { type: 'note', atMs, text };
}

/** Something that may need attention, once for each component or call: `warning`. */
export function warningLine({ component, task, text }: Warning, atMs: number): object {
  return { type: 'warning', atMs, component, task, text };
}

export function summaryLine(end: RunEnd, atMs: number): object {
  const { status, durationMs, totalMs, drain } = end;
  const { isEveryRowAcked, ...accounts } = accountsOf(end);
  return {
    type: 'summary',
    atMs,
    topology: status.name,
    topologyId: status.id,
    outcome: outcomeOf(end),
    exitCode: exitCodeOf(end),
    durationMs,
    totalMs,
    rowsPerSecond: rateOf(end),
    everyRowAcked: isEveryRowAcked,
    outputMayBeMissing: componentsWithLostOutput(status),
    printedLinesLost: end.isOutputLost,
    spoutsStillThrowing: throwingSpouts(end),
    accounts,
    totals: status.totals,
    deadLetters: status.totals.deadLetters,
    deadLetterFiles: status.deadLetterFiles,
    lostStates: status.lostStates,
    drain,
    components: status.components.map((component) => ({
      id: component.component,
      kind: component.kind,
      executors: component.executors,
      tasks: component.tasks,
      emitted: component.emitted,
      executed: component.executed,
      acked: component.acked,
      failed: component.failed,
      replayed: component.replayed,
      deadLetters: component.deadLetters,
      unreplayable: component.unreplayable,
      failures: component.failures,
      replays: component.replays,
      counters: component.counters,
      latency: latencyOf(component, undefined),
    })),
    errors: errorKinds(status.errors).map(({ component, task, error, count }) => ({
      component,
      task,
      count,
      code: error.code,
      message: error.message,
    })),
  };
}

function errorFields({ code, message, details }: ErrorRecord, frames: readonly string[]): object {
  const { expected, found, where } = details;
  return { code, message, expected, found, where, frames };
}
