/** What the screen, the plain lines and the JSON lines show of a running topology: one model, computed from statuses. Pure. */
import { mergeSketches, sketchQuantile, type ErrorRecord, type SketchPairs } from '../../base/index.js';
import type { ComponentStatus, TopologyStatus, TopologyTotals, WorkerStatus } from '../../api/index.js';
import { errorKinds } from './error-kinds.js';
import { type History, type Window, windowOf } from './history.js';

export interface LatencyView {
  /** Microseconds; null: nothing was measured. */
  readonly p50Micros: number | null;
  readonly p99Micros: number | null;
}

export interface ComponentView {
  readonly id: string;
  readonly kind: 'spout' | 'bolt';
  readonly executors: number;
  readonly tasks: number;
  /** Of the last seconds; null: not known yet. */
  readonly executedPerSecond: number | null;
  readonly emittedPerSecond: number | null;
  /** Bolts: of one `process` call. Spouts: from emit to the tree's completion. Of the last seconds where there was any. */
  readonly latency: LatencyView;
  readonly queued: number;
  readonly pending: number;
  readonly emitted: number;
  readonly executed: number;
  readonly acked: number;
  readonly failed: number;
  readonly replayed: number;
  readonly deadLetters: number;
  readonly unreplayable: number;
}

/** A call of user code that does not end. */
export interface LongCallView {
  /** Port of the worker, and the thread in it. */
  readonly worker: number;
  readonly thread: number;
  readonly component: string;
  readonly task: number;
  readonly call: string;
  readonly forMs: number;
  /** Its thread does nothing else meanwhile. */
  readonly isBlocking: boolean;
}

export interface WorkerView {
  readonly port: number;
  readonly pid: number | null;
  readonly state: string;
  readonly threads: number;
  readonly stuckThreads: number;
  readonly executors: number;
  /** Of one core, of the last seconds; null: not known yet. */
  readonly cpuPercent: number | null;
  readonly rssBytes: number;
  readonly restarts: number;
}

export interface ProblemView {
  readonly component: string;
  readonly task: number;
  readonly error: ErrorRecord;
  readonly count: number;
}

export interface RunView {
  readonly topology: string;
  readonly topologyId: string;
  /** `starting`, `running`, `draining`, `ending 2/3`, `finished`, `failed`, `killed`. */
  readonly phase: string;
  /** While it starts: tasks that take rows, and all. */
  readonly starting: { readonly running: number; readonly tasks: number } | null;
  readonly isSettled: boolean;
  readonly uptimeMs: number;
  /** Age of the newest report of a worker, ms; null: none yet. */
  readonly reportAgeMs: number | null;
  readonly isAcking: boolean;
  readonly totals: TopologyTotals;
  readonly ackedPerSecond: number | null;
  readonly components: readonly ComponentView[];
  readonly workers: readonly WorkerView[];
  readonly errorCount: number;
  readonly lastError: ProblemView | null;
  /** Why it cannot run as it should, now. */
  readonly problems: readonly ErrorRecord[];
  readonly unplacedExecutors: number;
  readonly unplacedReason: string | null;
  readonly lostStates: number;
  readonly oldestPending: TopologyStatus['oldestPending'];
  readonly longCalls: readonly LongCallView[];
}

/** The view of the newest status; undefined before the first. */
export function buildView(history: History): RunView | undefined {
  const newest = history.samples.at(-1);
  if (newest === undefined) return undefined;
  const { status } = newest;
  const window = windowOf(history);
  const before = (id: string): ComponentStatus | undefined =>
    window?.from.status.components.find(({ component }) => component === id);
  const perSecond = (now: number, then: number | undefined): number | null =>
    window === undefined ? null : Math.max(0, (now - (then ?? 0)) / window.seconds);
  const last = errorKinds(status.errors).at(-1);
  const ages = status.workers.flatMap(({ heartbeatAgeMs }) =>
    heartbeatAgeMs === null ? [] : [heartbeatAgeMs],
  );
  return {
    topology: status.name,
    topologyId: status.id,
    phase: phaseText(status),
    starting: phaseText(status) === 'starting' ? startedTasks(status) : null,
    isSettled: status.isSettled,
    uptimeMs: Math.max(0, history.atMs - status.submittedMs),
    reportAgeMs: ages.length === 0 ? null : Math.min(...ages),
    isAcking: status.ackers > 0,
    totals: status.totals,
    ackedPerSecond: perSecond(status.totals.acked, window?.from.status.totals.acked),
    components: status.components.map((component) => {
      const then = before(component.component);
      return {
        id: component.component,
        kind: component.kind,
        executors: component.executors,
        tasks: component.tasks,
        executedPerSecond: perSecond(component.executed, then?.executed),
        emittedPerSecond: perSecond(component.emitted, then?.emitted),
        latency: latencyOf(component, then),
        queued: component.queued,
        pending: component.pending,
        emitted: component.emitted,
        executed: component.executed,
        acked: component.acked,
        failed: component.failed,
        replayed: component.replayed,
        deadLetters: component.deadLetters,
        unreplayable: component.unreplayable,
      };
    }),
    workers: status.workers.map((worker) => workerView(worker, window)),
    errorCount: status.errors.reduce((sum, { count }) => sum + count, 0),
    lastError:
      last === undefined
        ? null
        : { component: last.component, task: last.task, error: last.error, count: last.count },
    problems: status.problems,
    unplacedExecutors: status.unplacedExecutors,
    unplacedReason: status.unplacedReason,
    lostStates: status.lostStates.length,
    oldestPending: status.oldestPending,
    longCalls: status.workers.flatMap(({ port, threads }) =>
      threads.flatMap(({ index, longCalls }) =>
        longCalls.map((call) => ({ worker: port, thread: index, ...call })),
      ),
    ),
  };
}

/** Latency of the window; of the whole life where the window has none, so that a quiet component keeps its figure. */
export function latencyOf(now: ComponentStatus, then: ComponentStatus | undefined): LatencyView {
  const pick = ({ kind, completeMicros, executeMicros }: ComponentStatus): SketchPairs =>
    kind === 'spout' ? completeMicros : executeMicros;
  const recent = then === undefined ? [] : subtractSketch(pick(now), pick(then));
  const sketch = recent.length > 0 ? recent : pick(now);
  return { p50Micros: sketchQuantile(sketch, 0.5), p99Micros: sketchQuantile(sketch, 0.99) };
}

/** What was counted since `earlier`. A component that was restarted may have counted less than before: that is nothing. */
export function subtractSketch(sketch: SketchPairs, earlier: SketchPairs): SketchPairs {
  const negated = earlier.map(([bucket, count]) => [bucket, -count] as const);
  return mergeSketches([sketch, negated]).filter(([, count]) => count > 0);
}

function workerView(worker: WorkerStatus, window: Window | undefined): WorkerView {
  const { workerId } = worker;
  const before =
    workerId === null ? undefined : window?.from.status.workers.find((one) => one.workerId === workerId);
  return {
    port: worker.port,
    pid: worker.pid,
    state: worker.state === 'running' && !worker.isReady ? 'starting' : worker.state,
    threads: worker.threads.length,
    stuckThreads: worker.threads.filter(({ state }) => state === 'stuck').length,
    executors: worker.executors,
    cpuPercent:
      before === undefined || window === undefined
        ? null
        : Math.max(0, (worker.cpuMicros - before.cpuMicros) / (window.seconds * 10_000)),
    rssBytes: worker.rssBytes,
    restarts: worker.restarts,
  };
}

function startedTasks({ components }: TopologyStatus): RunView['starting'] {
  let [running, tasks] = [0, 0];
  for (const component of components) {
    tasks += component.tasks;
    for (const task of component.perTask) if (task.isRunning === true) running++;
  }
  return { running, tasks };
}

function phaseText({ phase, isReady, workers }: TopologyStatus): string {
  switch (phase.kind) {
    case 'active':
      return isReady || workers.some((worker) => worker.isReady) ? 'running' : 'starting';
    case 'ending':
      return `ending ${Math.min(phase.stage + 1, phase.stages.length)}/${phase.stages.length}`;
    default:
      return phase.kind;
  }
}
