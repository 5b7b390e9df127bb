/** What workers report and supervisors fold: liveness, progress and metrics. Plain data. */
import type { ErrorRecord, Settings, SketchPairs } from '../base/index.js';
import type { ExecutorRange } from '../scheduling/index.js';

/** Busy, stuck and dead are three things: inside user code for long is not gone. */
export type ThreadState = 'starting' | 'idle' | 'busy' | 'stuck' | 'dead';

/** A call of user code that lasts for longer than `worker.stuck-warning`. */
export interface LongCall {
  /** Empty: not known. */
  readonly component: string;
  /** 0: not known. */
  readonly task: number;
  /** `process`, `prepare`, `close`, …; `code` where no call of a task is running. */
  readonly call: string;
  readonly forMs: number;
  /** The thread does nothing else meanwhile. False: it waits for a promise, and goes on with other tasks. */
  readonly isBlocking: boolean;
}

export interface ThreadReport {
  readonly index: number;
  readonly generation: number;
  readonly state: ThreadState;
  /** Component and task in whose code the thread is now, or was last. */
  readonly component: string | null;
  readonly task: number | null;
  /** For how long it has been in that call, ms. */
  readonly inCallMs: number;
  readonly longCalls: readonly LongCall[];
  /** Event-loop lag at the last turn, ms. */
  readonly lagMs: number;
  readonly executors: readonly ExecutorRange[];
  readonly restarts: number;
  /** Milliseconds in which its event loop was not idle, since it started. Absent, as the next two: not known. */
  readonly activeMs?: number;
  /** Collections of garbage since it started, and the time that they took, ms. */
  readonly collections?: number;
  readonly collectionMs?: number;
}

/** Totals of one task since its worker started, and its depths now. */
export interface TaskReport {
  readonly task: number;
  readonly component: string;
  readonly emitted: number;
  readonly transferred: number;
  readonly executed: number;
  /** Spouts: trees completed. Bolts: rows acked. */
  readonly acked: number;
  /** Spouts: trees failed. Bolts: rows failed. */
  readonly failed: number;
  readonly replayed: number;
  readonly deadLetters: number;
  /** Spouts, acking on: rows without a position that nobody would emit again if they failed. */
  readonly unreplayable: number;
  /** As in {@link TaskCounts}. */
  readonly busyMs?: number;
  readonly blockedMs?: number;
  readonly queued: number;
  /** Trees rooted at this task that are not complete. */
  readonly pending: number;
  /** Spouts: the source has ended. Bolts: `end` has returned. In this generation. */
  readonly ended: boolean;
  /** Spouts in `draining`: has stopped reading. */
  readonly stopped: boolean;
  readonly generation: number;
  /** It can move without losing what it knows; false: it has state that cannot travel. Absent: not known. */
  readonly movable?: boolean;
  /** It takes rows; false: it is being started. Absent: true. */
  readonly isRunning?: boolean;
  /** Spouts: rows that the source has yet to give. Absent: it does not say. */
  readonly lag?: number;
}

/** Counts of tasks. */
export interface TaskCounts {
  readonly emitted: number;
  readonly transferred: number;
  readonly executed: number;
  readonly acked: number;
  readonly failed: number;
  readonly replayed: number;
  readonly deadLetters: number;
  readonly unreplayable: number;
  /** Milliseconds in which executors ran rows, at the first task of each. Absent, as the next: not known. */
  readonly busyMs?: number;
  /** Milliseconds in which they had rows and their receivers took none; looked at a few times a second. */
  readonly blockedMs?: number;
}

export type { SketchPairs } from '../base/index.js';

export interface ComponentReport {
  readonly component: string;
  readonly executeMicros: SketchPairs;
  /** Spouts: from emit to the tree's completion. */
  readonly completeMicros: SketchPairs;
  /** Failures by reason (`user`, `timeout`, `lost`, `moved`, `overflow`). */
  readonly failures: Readonly<Record<string, number>>;
  readonly replays: Readonly<Record<string, number>>;
  /** User counters from `context.metrics`. */
  readonly counters: Readonly<Record<string, number>>;
  /** What tasks have counted here that have moved away; the other fields include it. Absent: none has. */
  readonly departed?: TaskCounts;
}

export interface ReportedError {
  readonly component: string;
  readonly task: number;
  readonly error: ErrorRecord;
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** State that went with a crash. */
export interface LostState {
  readonly component: string;
  readonly task: number;
  readonly atMs: number;
}

export interface OldestPending {
  readonly component: string;
  readonly task: number;
  readonly ageMs: number;
  /** The position of the row, or its sequence number where it has none. */
  readonly row: string;
  /** Of its tree, at its task. Absent: not known. */
  readonly sequence?: number;
  /** Component and task that hold it, where known. */
  readonly heldBy: string | null;
}

export interface WorkerHeartbeat {
  readonly workerId: string;
  readonly topologyId: string;
  readonly supervisorId: string;
  readonly port: number;
  readonly generation: number;
  readonly pid: number;
  readonly startedMs: number;
  /** Version of the assignment that this worker has reconciled with; 0: none yet. */
  readonly assignmentVersion: number;
  /** All executors run and all routes stand. */
  readonly ready: boolean;
  /** Rises with each heartbeat of this worker. */
  readonly sequence: number;
  readonly cpuMicros: number;
  readonly rssBytes: number;
  readonly threads: readonly ThreadReport[];
  readonly tasks: readonly TaskReport[];
  readonly components: readonly ComponentReport[];
  readonly errors: readonly ReportedError[];
  readonly lostStates: readonly LostState[];
  readonly oldestPending: OldestPending | null;
  /** Dead-letter files written by this worker. */
  readonly deadLetterFiles: readonly string[];
  /** It has no task, and all that its tasks have sent has arrived: it can be stopped without a trace. */
  readonly isIdle?: boolean;
  /** Records that its log dropped since it started; not given by workers of older versions. */
  readonly droppedLogRecords?: number;
}

const QUIET_INTERVALS = 3;

/**
 * Longest time between two heartbeats that say the same, ms: a few heartbeat intervals, and well below the time after
 * which a worker counts as dead.
 */
export function quietIntervalMs(
  settings: Pick<Settings, 'supervisor.heartbeat-interval' | 'topology.worker-timeout'>,
): number {
  const intervalMs = settings['supervisor.heartbeat-interval'];
  return Math.max(
    intervalMs,
    Math.min(QUIET_INTERVALS * intervalMs, settings['topology.worker-timeout'] / 4),
  );
}

/** Something that happened to a worker, as its supervisor saw it. */
export interface WorkerEvent {
  /** Rises with each event of this supervisor, over its restarts. */
  readonly number: number;
  /**
   * `worker-stopped`: it was told to, since nothing of the topology is to run there any more. `worker-died`: in any other way.
   * `thread-died`: an executor thread of it, which it has started again.
   */
  readonly kind: 'worker-started' | 'worker-stopped' | 'worker-died' | 'worker-not-started' | 'thread-died';
  readonly topologyId: string;
  readonly port: number;
  /** Code of an error of the table; null: there was none. */
  readonly code: string | null;
  /** Exit code, signal, limit, time-out: the same for all that happen for one reason. */
  readonly reason: string;
  /** What is said about this one; empty: nothing. */
  readonly detail: string;
  /** How often it has happened between these two moments, ms since the epoch. */
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Events of one slot and topology with the same text here are one thing that happened again. */
export function workerEventSort({ kind, code, reason }: WorkerEvent): string {
  // How much memory it was differs each time.
  return [kind, code ?? '', code === 'WORKER_MEMORY_EXCEEDED' ? '' : reason].join('\n');
}

/** By which an event is acknowledged together with last reports; ids of workers never look so. */
export function workerEventId({ number }: Pick<WorkerEvent, 'number'>): string {
  return `event ${number}`;
}

/** A slot as its supervisor sees it. */
export interface SlotReport {
  readonly port: number;
  readonly state: string;
  readonly topologyId: string | null;
  readonly workerId: string | null;
  readonly pid: number | null;
  readonly restarts: number;
  /** Why the last worker of this slot ended, or could not be started. */
  readonly lastProblem: ErrorRecord | null;
  /** When that was, ms since the epoch; null or not given: there was none. */
  readonly lastProblemMs?: number | null;
  /** Until the next attempt to start a worker, when this was reported, ms; null or not given: none is waited for. */
  readonly retryInMs?: number | null;
  readonly heartbeat: WorkerHeartbeat | null;
  /** When the supervisor received that heartbeat, ms since the epoch by its clock. */
  readonly heartbeatMs: number | null;
}

/** One node per supervisor: the write rate grows with machines, not with executors. */
export interface FoldedHeartbeat {
  readonly supervisorId: string;
  readonly pid: number;
  /** Rises with each write. */
  readonly sequence: number;
  readonly slots: readonly SlotReport[];
  /**
   * What workers that have ended had counted, one sum a component: said again and again until Nimbus has acknowledged it
   * (`acknowledgeReports`), since a heartbeat that is overwritten before it is read takes with it what only it said.
   */
  readonly lastReports: readonly WorkerHeartbeat[];
  /** What happened to its workers and was not acknowledged yet, as last reports; oldest first. Not given: nothing. */
  readonly events?: readonly WorkerEvent[];
}
