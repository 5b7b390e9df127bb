/**
 * Decides what one slot of a supervisor does next: state and event in, new state and actions out. No clock, no process.
 *
 *     empty ──► localising ──► launching ──► starting ──► running
 *       ▲          │ ▲             │         │  ▲ │          │ │
 *       │          ▼ │             ▼         │  │ │ stop     │ │ stop
 *       ├─── backing-off ◄─────────┴─────────┘  │ ▼          │ ▼
 *       │          ▲ ▲      gone                │ stopping ◄─┼─┘
 *       │          │ └──────────────────────────┼─── │ gone  │
 *       └───────── unusable ◄───────────────────┼────┘       │ gone ──► backing-off
 *                  adopted by its hello: empty, localising, backing-off, unusable ──► starting
 *
 * Invariants
 * P1  A slot has at most one worker: `launch` is asked for only in a state that has none.
 * P2  A state with a worker is left only by `gone`, which the runner says after it has verified the process's end.
 * P3  Every wait ends when the assignment changes; the newest one wins, whatever was under way.
 * P4  While the assignment is unknown (coordinator away since the start), nothing is started and nothing stopped.
 * P5  Where the assignment has no tasks, only a worker that may have had some is kept: it may still have something to say.
 */
import type { ProcessIdentity } from '../base/index.js';

/** How long this topology's workers may take, and how long their restarts wait. All ms. */
export interface WorkerTuning {
  readonly launchTimeoutMs: number;
  readonly timeoutMs: number;
  readonly backoffMs: number;
  readonly backoffMaxMs: number;
}

/** A worker process that a slot holds. */
export interface SlotWorker {
  readonly workerId: string;
  readonly topologyId: string;
  readonly generation: number;
  readonly process: ProcessIdentity;
  readonly tuning: WorkerTuning;
}

/** What the newest known assignment wants in this slot. */
export type Desired =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none' }
  /** `hasTasks`: some are there or to come; else the slot is kept for what its worker has still to say. */
  | { readonly kind: 'worker'; readonly topologyId: string; readonly hasTasks: boolean };

/** Why a worker is being stopped; decides what follows once it is gone. */
export type StopReason = 'assignment' | 'start-timeout' | 'run-timeout' | 'memory' | 'unusable';

interface Attempts {
  /** Number of the last attempt to start a worker here; tells results of earlier ones apart. */
  readonly attempts: number;
}
interface Trying extends Attempts {
  readonly topologyId: string;
  /** Failed starts and crashes in a row. */
  readonly failures: number;
}
interface Holding extends Attempts {
  readonly worker: SlotWorker;
  readonly failures: number;
}

export type SlotState =
  | ({ readonly kind: 'empty' } & Attempts)
  | ({ readonly kind: 'localising' } & Trying)
  | ({ readonly kind: 'launching' } & Trying)
  /** `isWelcomed`: it has been told its assignment, so it may have tasks. */
  | ({ readonly kind: 'starting'; readonly deadlineMs: number; readonly isWelcomed: boolean } & Holding)
  | ({ readonly kind: 'running'; readonly sinceMs: number; readonly seenMs: number } & Holding)
  | ({ readonly kind: 'stopping'; readonly reason: StopReason; readonly killAtMs: number } & Holding)
  | ({ readonly kind: 'backing-off'; readonly untilMs: number } & Trying)
  | ({ readonly kind: 'unusable'; readonly untilMs: number } & Trying);

export type SlotEvent =
  /** Time has passed, or the desired worker has changed. */
  | { readonly kind: 'tick' }
  | { readonly kind: 'localised'; readonly attempt: number }
  | { readonly kind: 'localise-failed'; readonly attempt: number }
  | { readonly kind: 'launched'; readonly attempt: number; readonly worker: SlotWorker }
  | { readonly kind: 'launch-failed'; readonly attempt: number }
  /** A running process claims, rightly, to be this slot's worker. */
  | { readonly kind: 'adopted'; readonly worker: SlotWorker }
  /** The slot's worker has said hello and is being told its assignment. */
  | { readonly kind: 'welcomed'; readonly workerId: string }
  /** A heartbeat. */
  | { readonly kind: 'alive'; readonly workerId: string }
  /** The worker says that this topology cannot run in any worker. */
  | { readonly kind: 'unusable'; readonly workerId: string }
  /** The worker takes more memory than it may. */
  | { readonly kind: 'too-large'; readonly workerId: string }
  /** The process has been verified gone. */
  | { readonly kind: 'gone'; readonly workerId: string };

export type SlotAction =
  | { readonly kind: 'localise'; readonly topologyId: string; readonly attempt: number }
  | { readonly kind: 'cancel-localise' }
  | { readonly kind: 'launch'; readonly topologyId: string; readonly attempt: number }
  /** Ask politely. */
  | { readonly kind: 'stop'; readonly worker: SlotWorker; readonly reason: StopReason }
  | { readonly kind: 'kill'; readonly worker: SlotWorker }
  /** The worker is gone: drop its record. */
  | { readonly kind: 'forget'; readonly worker: SlotWorker };

/** What holds for every slot of a supervisor. All ms. */
export interface SlotLimits {
  /** Between asking to stop and the first kill. */
  readonly stopTimeoutMs: number;
  /** Between kills, until the process is verified gone. */
  readonly killRepeatMs: number;
  /** A worker that ran for longer has recovered: its next crash is a first one. */
  readonly healthyMs: number;
  /** Used until a topology's own tuning is known. */
  readonly tuning: WorkerTuning;
}

/** The legal moves. */
export const SLOT_MOVES = {
  empty: ['localising', 'starting'],
  localising: ['empty', 'launching', 'backing-off', 'starting'],
  launching: ['starting', 'backing-off'],
  starting: ['running', 'stopping', 'backing-off'],
  running: ['running', 'stopping', 'backing-off'],
  stopping: ['stopping', 'empty', 'backing-off', 'unusable'],
  'backing-off': ['empty', 'localising', 'starting'],
  unusable: ['empty', 'localising', 'starting'],
} as const satisfies Record<SlotState['kind'], readonly SlotState['kind'][]>;

type Kind = SlotState['kind'];
type StateOf<K extends Kind> = Extract<SlotState, { kind: K }>;

export const EMPTY_SLOT: StateOf<'empty'> = { kind: 'empty', attempts: 0 };

export interface SlotPlan {
  readonly state: SlotState;
  readonly actions: readonly SlotAction[];
}

/**
 * Applies one event, then moves on for as long as the desired worker or the time demands it. An event that belongs to
 * another worker or an earlier attempt changes nothing.
 */
export function planSlot(
  state: SlotState,
  desired: Desired,
  event: SlotEvent,
  nowMs: number,
  limits: SlotLimits,
): SlotPlan {
  const actions: SlotAction[] = [];
  let next = applyEvent(state, event, nowMs, limits, actions);
  // Each turn goes one move along a path without circle (… → empty → localising), so this ends.
  for (;;) {
    const settled = settle(next, desired, nowMs, limits, actions);
    if (settled === next) return { state: next, actions };
    next = settled;
  }
}

/** When time alone demands the next call; null: never. */
export function wakeAtMs(state: SlotState): number | null {
  switch (state.kind) {
    case 'starting':
      return state.deadlineMs;
    case 'running':
      return state.seenMs + state.worker.tuning.timeoutMs;
    case 'stopping':
      return state.killAtMs;
    case 'backing-off':
    case 'unusable':
      return state.untilMs;
    case 'empty':
    case 'localising':
    case 'launching':
      return null;
  }
}

/** The worker that a state holds. */
export function workerOf(state: SlotState): SlotWorker | undefined {
  return 'worker' in state ? state.worker : undefined;
}

/** The topology that a state works for. */
export function topologyOf(state: SlotState): string | undefined {
  return 'topologyId' in state ? state.topologyId : workerOf(state)?.topologyId;
}

function move<F extends Kind, T extends (typeof SLOT_MOVES)[F][number] & Kind>(
  _from: StateOf<F>,
  to: StateOf<T>,
): StateOf<T> {
  return to;
}

function applyEvent(
  state: SlotState,
  event: SlotEvent,
  nowMs: number,
  limits: SlotLimits,
  actions: SlotAction[],
): SlotState {
  switch (event.kind) {
    case 'tick':
      return state;
    case 'localised': {
      if (state.kind !== 'localising' || state.attempts !== event.attempt) return state;
      const { topologyId, attempts, failures } = state;
      actions.push({ kind: 'launch', topologyId, attempt: attempts });
      return move(state, { kind: 'launching', topologyId, attempts, failures });
    }
    case 'localise-failed':
      if (state.kind !== 'localising' || state.attempts !== event.attempt) return state;
      return move(state, backOff(state, state.topologyId, state.failures + 1, limits.tuning, nowMs));
    case 'launched':
      if (state.kind !== 'launching' || state.attempts !== event.attempt) return state;
      return move(state, {
        kind: 'starting',
        worker: event.worker,
        attempts: state.attempts,
        failures: state.failures,
        deadlineMs: nowMs + event.worker.tuning.launchTimeoutMs,
        isWelcomed: false,
      });
    case 'launch-failed':
      if (state.kind !== 'launching' || state.attempts !== event.attempt) return state;
      return move(state, backOff(state, state.topologyId, state.failures + 1, limits.tuning, nowMs));
    case 'adopted':
      return adopt(state, event.worker, nowMs, actions);
    case 'welcomed':
      if (state.kind !== 'starting' || state.isWelcomed || !isWorker(state, event.workerId)) return state;
      return { ...state, isWelcomed: true };
    case 'alive':
      return seen(state, event.workerId, nowMs);
    case 'unusable':
      if ((state.kind !== 'starting' && state.kind !== 'running') || !isWorker(state, event.workerId))
        return state;
      return stop(state, 'unusable', nowMs, limits, actions);
    case 'too-large':
      if ((state.kind !== 'starting' && state.kind !== 'running') || !isWorker(state, event.workerId))
        return state;
      return stop(state, 'memory', nowMs, limits, actions);
    case 'gone':
      return gone(state, event.workerId, nowMs, limits, actions);
  }
}

function adopt(state: SlotState, worker: SlotWorker, nowMs: number, actions: SlotAction[]): SlotState {
  switch (state.kind) {
    case 'localising':
    case 'empty':
    case 'backing-off':
    case 'unusable': {
      if (state.kind === 'localising') actions.push({ kind: 'cancel-localise' });
      // It runs already, so the time-out of running workers is the fair one, not that of a launch.
      const deadlineMs = nowMs + worker.tuning.timeoutMs;
      const { attempts } = state;
      return move(state, { kind: 'starting', worker, attempts, failures: 0, deadlineMs, isWelcomed: true });
    }
    case 'launching':
    case 'starting':
    case 'running':
    case 'stopping':
      return state;
  }
}

function seen(state: SlotState, workerId: string, nowMs: number): SlotState {
  if (!isWorker(state, workerId)) return state;
  if (state.kind === 'running') return move(state, { ...state, seenMs: nowMs });
  if (state.kind !== 'starting') return state;
  const { worker, attempts, failures } = state;
  return move(state, { kind: 'running', worker, attempts, failures, sinceMs: nowMs, seenMs: nowMs });
}

function gone(
  state: SlotState,
  workerId: string,
  nowMs: number,
  limits: SlotLimits,
  actions: SlotAction[],
): SlotState {
  if (!isWorker(state, workerId)) return state;
  switch (state.kind) {
    case 'starting':
    case 'running': {
      const { worker } = state;
      actions.push({ kind: 'forget', worker });
      return move(
        state,
        backOff(state, worker.topologyId, failuresAfter(state, nowMs, limits), worker.tuning, nowMs),
      );
    }
    case 'stopping': {
      const { worker, attempts, failures } = state;
      actions.push({ kind: 'forget', worker });
      if (state.reason === 'assignment') return move(state, { kind: 'empty', attempts });
      if (state.reason !== 'unusable') {
        return move(state, backOff(state, worker.topologyId, failures, worker.tuning, nowMs));
      }
      const untilMs = nowMs + worker.tuning.backoffMaxMs;
      return move(state, { kind: 'unusable', topologyId: worker.topologyId, attempts, failures, untilMs });
    }
    case 'empty':
    case 'localising':
    case 'launching':
    case 'backing-off':
    case 'unusable':
      return state;
  }
}

/** One move that the desired worker or the time demands; the same state if none. */
function settle(
  state: SlotState,
  desired: Desired,
  nowMs: number,
  limits: SlotLimits,
  actions: SlotAction[],
): SlotState {
  const isOther =
    desired.kind !== 'unknown' && !(desired.kind === 'worker' && desired.topologyId === topologyOf(state));
  const isIdle = desired.kind === 'worker' && !desired.hasTasks;
  switch (state.kind) {
    case 'empty':
      return desired.kind === 'worker' && !isIdle ? localise(state, desired.topologyId, 0, actions) : state;
    case 'localising':
      if (!isOther && !isIdle) return state;
      actions.push({ kind: 'cancel-localise' });
      return move(state, { kind: 'empty', attempts: state.attempts });
    case 'launching':
      return state;
    case 'starting':
      if (isOther || (isIdle && !state.isWelcomed)) return stop(state, 'assignment', nowMs, limits, actions);
      return nowMs >= state.deadlineMs ? stop(state, 'start-timeout', nowMs, limits, actions) : state;
    case 'running':
      if (isOther) return stop(state, 'assignment', nowMs, limits, actions);
      return nowMs >= state.seenMs + state.worker.tuning.timeoutMs
        ? stop(state, 'run-timeout', nowMs, limits, actions)
        : state;
    case 'stopping':
      if (nowMs < state.killAtMs) return state;
      actions.push({ kind: 'kill', worker: state.worker });
      return move(state, { ...state, killAtMs: nowMs + limits.killRepeatMs });
    case 'backing-off':
    case 'unusable':
      if (isOther || isIdle) return move(state, { kind: 'empty', attempts: state.attempts });
      if (desired.kind === 'unknown' || nowMs < state.untilMs) return state;
      return localise(state, state.topologyId, state.failures, actions);
  }
}

function localise(
  state: StateOf<'empty' | 'backing-off' | 'unusable'>,
  topologyId: string,
  failures: number,
  actions: SlotAction[],
): SlotState {
  const attempts = state.attempts + 1;
  actions.push({ kind: 'localise', topologyId, attempt: attempts });
  return move(state, { kind: 'localising', topologyId, attempts, failures });
}

function stop(
  state: StateOf<'starting' | 'running'>,
  reason: StopReason,
  nowMs: number,
  limits: SlotLimits,
  actions: SlotAction[],
): SlotState {
  const { worker, attempts } = state;
  actions.push({ kind: 'stop', worker, reason });
  return move(state, {
    kind: 'stopping',
    worker,
    attempts,
    reason,
    failures: failuresAfter(state, nowMs, limits),
    killAtMs: nowMs + limits.stopTimeoutMs,
  });
}

function failuresAfter(state: StateOf<'starting' | 'running'>, nowMs: number, limits: SlotLimits): number {
  const hasRecovered = state.kind === 'running' && nowMs - state.sinceMs >= limits.healthyMs;
  return hasRecovered ? 1 : state.failures + 1;
}

function backOff(
  { attempts }: Attempts,
  topologyId: string,
  failures: number,
  tuning: WorkerTuning,
  nowMs: number,
): StateOf<'backing-off'> {
  const pauseMs = Math.min(tuning.backoffMaxMs, tuning.backoffMs * 2 ** Math.min(failures - 1, 30));
  return { kind: 'backing-off', topologyId, attempts, failures, untilMs: nowMs + pauseMs };
}

function isWorker(state: SlotState, workerId: string): boolean {
  return workerOf(state)?.workerId === workerId;
}
