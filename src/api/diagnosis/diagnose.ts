/**
 * Why a topology is not faster, from two looks at it some seconds apart: what holds rows up, which tasks get more than their
 * share, what is stuck, what has failed. Pure.
 *
 * What it concludes from: a component whose executors have rows and cannot send on is *held up* and stands before the
 * bottleneck; the bottleneck has rows, can send on, and is busiest. Rows that are uneven over the tasks of a component point to
 * a hot key, even rows over uneven threads to a hot placement. Where a component is held up, rows are uneven because some of its
 * tasks may not send, which says nothing of keys.
 */
import { sketchQuantile, type SketchPairs } from '../../base/index.js';
import { isTerminal } from '../../coordination/index.js';
import type { ComponentStatus, TopologyDetail, TopologyStatus, WorkerStatus } from '../../nimbus/index.js';
import { lagOf } from '../metrics/collect-metrics.js';

export interface ComponentLoad {
  readonly component: string;
  readonly kind: 'spout' | 'bolt';
  readonly executors: number;
  /** Share of its time that an executor ran rows, on average. */
  readonly capacity: number;
  /** Share of its time that an executor had rows and could not send on, on average. */
  readonly heldUp: number;
  readonly queued: number;
  readonly queuedPerSecond: number;
  /** Milliseconds that a row waits; null: rows wait and none is executed. */
  readonly waitMs: number | null;
  /** Bolts: executed; spouts: emitted. */
  readonly rowsPerSecond: number;
  /** Of what was measured between the looks, or else since the submission. */
  readonly p99Micros: number | null;
  /** Rows that sources have yet to give; null: they do not say. */
  readonly lag: number | null;
  readonly lagPerSecond: number | null;
}

export interface ThreadLoad {
  /** `supervisor:port`. */
  readonly worker: string;
  readonly thread: number;
  /** Share of its time that its event loop was not idle. */
  readonly active: number;
  /** How often it ended and was started again. */
  readonly restarts: number;
  /** `component[task]`, as far as tasks run there. */
  readonly tasks: readonly string[];
}

export interface StuckCall {
  readonly worker: string;
  readonly thread: number;
  readonly component: string;
  readonly task: number;
  readonly call: string;
  readonly forMs: number;
  readonly isBlocking: boolean;
}

export type Skew =
  | {
      readonly kind: 'hot-key';
      readonly component: string;
      readonly task: number;
      /** Where it runs; null: not known. */
      readonly worker: string | null;
      /** Of the rows of the component. */
      readonly share: number;
      readonly tasks: number;
    }
  | {
      readonly kind: 'hot-placement';
      readonly worker: string;
      readonly thread: number;
      readonly active: number;
      /** Of the other threads. */
      readonly othersActive: number;
      readonly tasks: readonly string[];
    };

type HotKey = Extract<Skew, { readonly kind: 'hot-key' }>;

export type Verdict =
  /** Nothing of it runs, and nothing will. */
  | { readonly kind: 'ended'; readonly status: string; readonly reasons: readonly string[] }
  /** Not all of it runs. */
  | { readonly kind: 'not-running'; readonly reasons: readonly string[] }
  | { readonly kind: 'not-reading'; readonly status: string }
  | { readonly kind: 'stuck'; readonly call: StuckCall }
  /** Its executors do nothing else. `threadsFull`: they share their threads, which are. */
  | { readonly kind: 'busy'; readonly component: string; readonly threadsFull: boolean }
  /** One of its tasks gets most rows and works on a busy thread; what the others have to spare does not help it. */
  | {
      readonly kind: 'hot-task';
      readonly component: string;
      readonly task: number;
      readonly worker: string;
      /** Of the rows of the component. */
      readonly share: number;
      readonly tasks: number;
      /** Share of its time that the task's thread was not idle. */
      readonly active: number;
    }
  /** Rows wait in it while its threads rest: it waits for promises. */
  | { readonly kind: 'waiting'; readonly component: string }
  /** The source of this spout task throws each time that it is asked, and gives no rows. */
  | {
      readonly kind: 'throwing';
      readonly component: string;
      readonly task: number;
      readonly message: string;
      readonly count: number;
      readonly lastMs: number;
    }
  /** Nothing is held up. */
  | { readonly kind: 'sources'; readonly lagPerSecond: number | null };

/** Failed rows of spouts, as their workers have counted since they started. */
export interface ReplayState {
  /** Failed, and to be emitted again. */
  readonly waiting: number;
  /** Failed without a position, so that nobody emits them again: as many at most. */
  readonly lost: number;
}

export interface Diagnosis {
  /** Time between the two looks, by the reports that they saw, ms. */
  readonly windowMs: number;
  readonly verdict: Verdict;
  readonly components: readonly ComponentLoad[];
  /** The busiest first. */
  readonly threads: readonly ThreadLoad[];
  readonly skews: readonly Skew[];
  readonly stuckCalls: readonly StuckCall[];
  readonly oldestPending: TopologyStatus['oldestPending'];
  /** A planned move that is under way; null: none is. */
  readonly move: TopologyStatus['lastMove'];
  readonly replay: ReplayState;
  /** Newest first. */
  readonly errors: TopologyStatus['errors'];
  readonly lostStates: TopologyStatus['lostStates'];
}

/** Shares from which on something is held up, and a thread is full. */
const HELD_UP = 0.2;
const FULL = 0.85;
/** A thread that does more than this does not rest. */
const RESTS = 0.5;
/** A component with less to do than this is no bottleneck. */
const LEAST_CAPACITY = 0.02;
/** A task with so many times its share of the rows is hot, or with half of what the others should have as well. */
const HOT_TASK = 2;
/** Of fewer rows nothing is concluded. */
const FEWEST_ROWS = 100;
/** Rows that wait for less, or for less than this times what a call takes, do not pile up. Milliseconds. */
const LONG_WAIT_MS = 1000;
const LONG_WAIT_CALLS = 2;
/** A source that last threw longer ago gives rows again, or is not asked: above the longest pause between attempts. */
const STILL_THROWS_MS = 15_000;
/** The other threads do less than this part of what a hot one does. */
const HOT_THREAD = 0.6;
const MAX_ERRORS = 5;

export function diagnose(before: TopologyDetail, after: TopologyDetail): Diagnosis {
  const windowMs = windowBetween(before, after);
  const { status } = after;
  const former = new Map(before.status.components.map((one) => [one.component, one]));
  const components = status.components.map((one) => loadOf(one, former.get(one.component), windowMs));
  const threads = threadLoads(before.status, status, windowMs);
  const stuckCalls = stuckCallsOf(status.workers);
  const heldUp = new Set(components.flatMap((one) => (one.heldUp >= HELD_UP ? [one.component] : [])));
  const hot = hotKeys(status, former, threads).filter(({ component }) => !heldUp.has(component));
  return {
    windowMs,
    verdict: verdictOf(before, after, components, threads, stuckCalls, hot),
    components,
    threads,
    skews: [...hot, ...hotPlacements(threads)],
    stuckCalls,
    oldestPending: status.oldestPending,
    move: moveUnderWay(status),
    replay: replayState(status),
    errors: [...status.errors].reverse().slice(0, MAX_ERRORS),
    lostStates: status.lostStates,
  };
}

/** By the mean time of the reports: they are up to seconds old, each look has others. */
function replayState({ components }: TopologyStatus): ReplayState {
  let [waiting, lost] = [0, 0];
  for (const { kind, perTask } of components) {
    if (kind !== 'spout') continue;
    for (const { failed, replayed, deadLetters, unreplayable } of perTask) {
      const open = Math.max(0, failed - replayed - deadLetters);
      const cannot = Math.min(open, unreplayable);
      lost += cannot;
      waiting += open - cannot;
    }
  }
  return { waiting, lost };
}

function windowBetween(before: TopologyDetail, after: TopologyDetail): number {
  const reportedMs = ({ summary, status }: TopologyDetail): number => {
    const ages = status.workers.flatMap(({ heartbeatAgeMs }) =>
      heartbeatAgeMs === null ? [] : [heartbeatAgeMs],
    );
    const age = ages.length === 0 ? 0 : ages.reduce((sum, one) => sum + one, 0) / ages.length;
    return summary.uptimeMs - age;
  };
  const byReports = reportedMs(after) - reportedMs(before);
  return Math.max(1, byReports > 0 ? byReports : after.summary.uptimeMs - before.summary.uptimeMs);
}

function loadOf(now: ComponentStatus, before: ComponentStatus | undefined, windowMs: number): ComponentLoad {
  const risen = (value: (one: ComponentStatus) => number): number =>
    before === undefined ? 0 : Math.max(0, value(now) - value(before));
  const perSecond = (rows: number): number => rows / (windowMs / 1000);
  const share = (ms: number): number => Math.min(1, ms / windowMs / Math.max(1, now.executors));
  const { kind, queued } = now;
  const rowsPerSecond = perSecond(risen(kind === 'bolt' ? (one) => one.executed : (one) => one.emitted));
  const executedPerSecond = kind === 'bolt' ? rowsPerSecond : 0;
  const sketch = (one: ComponentStatus): SketchPairs =>
    kind === 'bolt' ? one.executeMicros : one.completeMicros;
  const measured = before === undefined ? [] : difference(sketch(now), sketch(before));
  const [lag, formerLag] = [lagOf(now), before === undefined ? null : lagOf(before)];
  return {
    component: now.component,
    kind,
    executors: now.executors,
    capacity: share(risen(({ busyMs }) => busyMs)),
    heldUp: share(risen(({ blockedMs }) => blockedMs)),
    queued,
    queuedPerSecond: before === undefined ? 0 : perSecond(queued - before.queued),
    waitMs: queued === 0 ? 0 : executedPerSecond === 0 ? null : (queued / executedPerSecond) * 1000,
    rowsPerSecond,
    p99Micros: sketchQuantile(measured.length > 0 ? measured : sketch(now), 0.99),
    lag,
    lagPerSecond: lag === null || formerLag === null ? null : perSecond(lag - formerLag),
  };
}

function difference(now: SketchPairs, before: SketchPairs): SketchPairs {
  const former = new Map(before);
  return now
    .map(([bucket, count]) => [bucket, count - (former.get(bucket) ?? 0)] as const)
    .filter(([, count]) => count > 0);
}

function verdictOf(
  before: TopologyDetail,
  after: TopologyDetail,
  components: readonly ComponentLoad[],
  threads: readonly ThreadLoad[],
  stuckCalls: readonly StuckCall[],
  hot: readonly HotKey[],
): Verdict {
  const { summary, status } = after;
  if (isTerminal(status.phase)) return { kind: 'ended', status: summary.status, reasons: problemsOf(status) };
  const blocking = stuckCalls.find(({ isBlocking }) => isBlocking);
  if (blocking !== undefined) return { kind: 'stuck', call: blocking };
  if (!status.isReady && !isOnlyMoving(status)) return { kind: 'not-running', reasons: reasonsOf(status) };
  const tight = tightest(components) ?? longestWait(components);
  if (tight !== undefined) {
    const hotTask = tight.capacity < FULL ? hotTaskOf(tight.component, hot, threads) : undefined;
    if (hotTask !== undefined) return hotTask;
    const full = threads.filter(({ active }) => active >= FULL);
    const isOnFull = full.some(({ tasks }) => tasks.some((task) => task.startsWith(`${tight.component}[`)));
    if (tight.capacity >= FULL || isOnFull)
      return { kind: 'busy', component: tight.component, threadsFull: tight.capacity < FULL };
    return { kind: 'waiting', component: tight.component };
  }
  if (summary.status !== 'ACTIVE') return { kind: 'not-reading', status: summary.status };
  const throwing = throwingSource(before, after);
  if (throwing !== undefined) return throwing;
  const lags = components.flatMap(({ lagPerSecond }) => (lagPerSecond === null ? [] : [lagPerSecond]));
  return {
    kind: 'sources',
    lagPerSecond: lags.length === 0 ? null : lags.reduce((sum, one) => sum + one, 0),
  };
}

/** The task that gets most rows of a component, if its thread does not rest: then it waits for no promise. */
function hotTaskOf(
  component: string,
  hot: readonly HotKey[],
  threads: readonly ThreadLoad[],
): Verdict | undefined {
  const skew = hot.find((one) => one.component === component);
  if (skew === undefined) return undefined;
  const { task, share, tasks } = skew;
  const thread = threads.find((one) => one.tasks.includes(`${component}[${task}]`));
  if (thread === undefined || thread.active < RESTS) return undefined;
  const { worker, active } = thread;
  return { kind: 'hot-task', component, task, worker, share, tasks, active };
}

/** The component that others wait for, if anything waits. */
function tightest(components: readonly ComponentLoad[]): ComponentLoad | undefined {
  const isAnyHeldUp = components.some(({ heldUp }) => heldUp >= HELD_UP);
  const isFull = components.some(({ capacity }) => capacity >= FULL);
  if (!isAnyHeldUp && !isFull) return undefined;
  const free = components.filter(({ heldUp, kind, queued, capacity }) => {
    const hasWork = kind === 'bolt' ? queued > 0 || capacity >= FULL : capacity >= FULL;
    return heldUp < HELD_UP && hasWork;
  });
  const [busiest] = free.sort((a, b) => b.capacity - a.capacity || b.queued - a.queued);
  const [longest] = [...free].sort((a, b) => b.queued - a.queued);
  // Nobody is busy: what waits for promises has the rows.
  return busiest !== undefined && busiest.capacity >= LEAST_CAPACITY ? busiest : longest;
}

/**
 * The bolt in which most rows pile up though their senders are not held up yet: they wait for much longer than calls take, so
 * they are not just under way in it.
 */
function longestWait(components: readonly ComponentLoad[]): ComponentLoad | undefined {
  const [longest] = components
    .filter(({ kind, queued, waitMs, p99Micros }) => {
      const callMs = (p99Micros ?? 0) / 1000;
      const isLong = waitMs === null || waitMs >= Math.max(LONG_WAIT_MS, LONG_WAIT_CALLS * callMs);
      return kind === 'bolt' && queued >= FEWEST_ROWS && isLong;
    })
    .sort((a, b) => b.queued - a.queued);
  return longest;
}

/** A spout task that has given nothing since the first look, and whose source has thrown a short time ago. */
function throwingSource(before: TopologyDetail, { summary, status }: TopologyDetail): Verdict | undefined {
  const nowMs = summary.submittedMs + summary.uptimeMs;
  const emitted = ({ components }: TopologyStatus, id: string, task: number): number | undefined =>
    components.find(({ component }) => component === id)?.perTask.find((one) => one.task === task)?.emitted;
  const spouts = new Set(status.components.flatMap((one) => (one.kind === 'spout' ? [one.component] : [])));
  const last = status.errors.findLast(
    ({ component, task, error, lastMs }) =>
      spouts.has(component) &&
      error.code === 'USER_CODE_FAILED' &&
      nowMs - lastMs <= STILL_THROWS_MS &&
      emitted(status, component, task) === emitted(before.status, component, task),
  );
  if (last === undefined) return undefined;
  const { component, task, error, count, lastMs } = last;
  return { kind: 'throwing', component, task, message: error.message, count, lastMs };
}

function moveUnderWay({ lastMove }: TopologyStatus): TopologyStatus['lastMove'] {
  return lastMove?.step === 'preparing' || lastMove?.step === 'moving' ? lastMove : null;
}

/** Nothing is wrong: workers are not ready because a move is under way, meanwhile everything runs. */
function isOnlyMoving(status: TopologyStatus): boolean {
  return moveUnderWay(status) !== null && status.problems.length === 0 && status.unplacedExecutors === 0;
}

function problemsOf({ problems }: TopologyStatus): readonly string[] {
  return problems.map(({ code, message }) => `${code}: ${message}`);
}

function reasonsOf(status: TopologyStatus): readonly string[] {
  const reasons = [...problemsOf(status)];
  if (status.unplacedExecutors > 0)
    reasons.push(
      `${status.unplacedExecutors} executors have no slot: ${status.unplacedReason ?? 'none is free'}`,
    );
  for (const worker of status.workers) if (!worker.isReady) reasons.push(notReadyText(worker));
  return reasons;
}

function notReadyText(worker: WorkerStatus): string {
  const { state, threads } = worker;
  const restarts = threads.reduce((sum, one) => sum + one.restarts, 0);
  const what = state === 'running' ? 'runs, and is not ready' : `is ${state}, and not ready`;
  const again = restarts === 0 ? '' : `: its threads have ended and were started again ${restarts} ×`;
  return `worker ${nameOf(worker)} ${what}${again}`;
}

function stuckCallsOf(workers: readonly WorkerStatus[]): readonly StuckCall[] {
  return workers
    .flatMap((worker) =>
      worker.threads.flatMap(({ index, longCalls }) =>
        longCalls.map((call) => ({ worker: nameOf(worker), thread: index, ...call })),
      ),
    )
    .sort((a, b) => b.forMs - a.forMs);
}

function threadLoads(before: TopologyStatus, now: TopologyStatus, windowMs: number): readonly ThreadLoad[] {
  const components = new Map(
    now.components.flatMap(({ component, perTask }) => perTask.map(({ task }) => [task, component] as const)),
  );
  const former = new Map(
    before.workers.flatMap((worker) =>
      worker.threads.map(
        (thread) => [`${worker.workerId}/${thread.index}/${thread.generation}`, thread] as const,
      ),
    ),
  );
  return now.workers
    .flatMap((worker) =>
      worker.threads.flatMap((thread): ThreadLoad[] => {
        const earlier = former.get(`${worker.workerId}/${thread.index}/${thread.generation}`);
        if (thread.activeMs === undefined || earlier?.activeMs === undefined) return [];
        const active = Math.min(1, Math.max(0, thread.activeMs - earlier.activeMs) / windowMs);
        const tasks = thread.executors.flatMap(([first, last]) =>
          Array.from({ length: last - first + 1 }, (_, place) => first + place).flatMap((task) => {
            const component = components.get(task);
            return component === undefined ? [] : [`${component}[${task}]`];
          }),
        );
        const { index, restarts } = thread;
        return [{ worker: nameOf(worker), thread: index, active, restarts, tasks }];
      }),
    )
    .sort((a, b) => b.active - a.active);
}

function hotKeys(
  status: TopologyStatus,
  former: ReadonlyMap<string, ComponentStatus>,
  threads: readonly ThreadLoad[],
): readonly HotKey[] {
  return status.components.flatMap(({ component, kind, perTask }): HotKey[] => {
    if (kind === 'spout' || perTask.length < 2) return [];
    const earlier = new Map(former.get(component)?.perTask.map(({ task, executed }) => [task, executed]));
    const rows = perTask.map(({ task, executed }) => ({
      task,
      executed: Math.max(0, executed - (earlier.get(task) ?? executed)),
    }));
    const all = rows.reduce((sum, { executed }) => sum + executed, 0);
    const hottest = rows.reduce((most, one) => (one.executed > most.executed ? one : most));
    const even = 1 / rows.length;
    const share = all === 0 ? 0 : hottest.executed / all;
    if (all < FEWEST_ROWS || share < Math.min(HOT_TASK * even, (1 + even) / 2)) return [];
    const { task } = hottest;
    const place = threads.find(({ tasks }) => tasks.includes(`${component}[${task}]`));
    return [{ kind: 'hot-key', component, task, worker: place?.worker ?? null, share, tasks: rows.length }];
  });
}

function hotPlacements(threads: readonly ThreadLoad[]): readonly Skew[] {
  const [hottest, ...others] = threads;
  if (hottest === undefined || others.length === 0 || hottest.active < FULL) return [];
  const othersActive = others.reduce((sum, { active }) => sum + active, 0) / others.length;
  if (othersActive >= HOT_THREAD * hottest.active) return [];
  const { worker, thread, active, tasks } = hottest;
  return [{ kind: 'hot-placement', worker, thread, active, tasks, othersActive }];
}

function nameOf({ supervisorId, port }: WorkerStatus): string {
  return `${supervisorId}:${port}`;
}
