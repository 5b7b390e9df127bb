/**
 * Which executors live, by start time and last heartbeat, and what that means for slots.
 * Source: Storm's `HeartbeatCache.getAliveExecutors` and the first steps of `mk-assignments`.
 */
import type { ExecutorRange } from './assignment.js';
import type { PlacedWorker } from './cluster-snapshot.js';

export interface LivenessLimits {
  /** An executor whose last heartbeat is so old, or older, has timed out. */
  readonly heartbeatTimeoutMs: number;
  /** A started executor lives for so long even without a heartbeat. */
  readonly launchTimeoutMs: number;
}

/** The two limits. A topology may raise the cluster's time-out, never lower it; launching never gets less time than that. */
export function livenessLimits(configured: {
  readonly clusterTimeoutMs: number;
  readonly topologyTimeoutMs: number | null;
  readonly launchTimeoutMs: number;
}): LivenessLimits {
  const heartbeatTimeoutMs = Math.max(configured.clusterTimeoutMs, configured.topologyTimeoutMs ?? 0);
  return {
    heartbeatTimeoutMs,
    launchTimeoutMs: Math.max(configured.launchTimeoutMs, heartbeatTimeoutMs),
  };
}

export interface ExecutorSigns {
  /** When its slot was given to it, ms; undefined: never. */
  readonly startedMs: number | undefined;
  /** When its last heartbeat was received, ms by the clock of the one who asks; undefined: never. */
  readonly lastHeartbeatMs: number | undefined;
}

/** Does the executor live? One that was never started does not. */
export function isAlive(
  { startedMs, lastHeartbeatMs }: ExecutorSigns,
  limits: LivenessLimits,
  nowMs: number,
): boolean {
  if (startedMs === undefined) return false;
  if (nowMs - startedMs < limits.launchTimeoutMs) return true;
  return lastHeartbeatMs !== undefined && nowMs - lastHeartbeatMs < limits.heartbeatTimeoutMs;
}

export interface LivePlacement {
  /** Workers with their live executors only; one without any is left out. */
  readonly workers: readonly PlacedWorker[];
  /** Ports with a dead executor, by supervisor: hidden for one round, so that a hung worker has time to go. */
  readonly deadPorts: ReadonlyMap<string, readonly number[]>;
}

/** Restricts placed workers to live executors; the same list if all of them live. A slot can be kept and yet be hidden: one executor dead, another alive. */
export function restrictToAlive<W extends PlacedWorker>(
  workers: readonly W[],
  alive: (range: ExecutorRange, worker: W) => boolean,
): LivePlacement {
  const kept: PlacedWorker[] = [];
  let isWhole = true;
  const deadPorts = new Map<string, number[]>();
  for (const worker of workers) {
    const executors = worker.executors.filter((range) => alive(range, worker));
    if (executors.length === worker.executors.length && executors.length > 0) {
      kept.push(worker);
      continue;
    }
    isWhole = false;
    if (executors.length > 0) kept.push({ supervisor: worker.supervisor, port: worker.port, executors });
    if (executors.length === worker.executors.length) continue;
    const ports = deadPorts.get(worker.supervisor);
    if (ports === undefined) deadPorts.set(worker.supervisor, [worker.port]);
    else if (!ports.includes(worker.port)) ports.push(worker.port);
  }
  return { workers: isWhole ? workers : kept, deadPorts };
}
