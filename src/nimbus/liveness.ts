/**
 * Who has been heard from, and when, by Nimbus's own clock: a heartbeat counts when it differs from the last one seen,
 * never by a time written in it. Machines: gone is something else than away.
 *
 * A Nimbus that has just started has heard nobody; so everybody who was assigned before counts as heard at its start.
 */
import type { FoldedHeartbeat, SupervisorRecord, WorkerHeartbeat } from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';

interface Heard {
  readonly mark: string;
  readonly atMs: number;
}

export interface SlotQuestion {
  readonly topologyId: string;
  readonly supervisor: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly launchTimeoutMs: number;
  /** When the slot was given to its executors, by the clock of `nowMs`. */
  readonly startedMs: number;
}

export class Liveness {
  readonly #startedMs: number;
  readonly #workers = new Map<string, Heard>();
  readonly #supervisors = new Map<string, Heard>();
  /** Last report of an executor in a slot of a topology, by first task. */
  readonly #executors = new Map<string, Map<number, number>>();
  /** Since when an assigned supervisor has neither a record nor a worker that announces itself. */
  readonly #missingSince = new Map<string, number>();

  /** @param startedMs now, by the clock of every later `nowMs` */
  constructor(startedMs: number) {
    this.#startedMs = startedMs;
  }

  noteHeartbeats(heartbeats: readonly FoldedHeartbeat[], nowMs: number): void {
    for (const { supervisorId, pid, sequence, slots } of heartbeats) {
      if (!hear(this.#supervisors, supervisorId, `${pid} ${sequence}`, nowMs)) continue;
      for (const { heartbeat, workerId } of slots) {
        if (heartbeat !== null && heartbeat.workerId === workerId) this.#noteWorker(heartbeat, nowMs);
      }
    }
  }

  noteWorkers(workers: readonly WorkerHeartbeat[], nowMs: number): void {
    for (const worker of workers) this.#noteWorker(worker, nowMs);
  }

  /**
   * Supervisors that are assigned something and whose machine is gone: no record, and none of its workers has announced
   * itself within the grace.
   */
  goneSupervisors(
    assigned: ReadonlySet<string>,
    present: readonly SupervisorRecord[],
    announced: readonly WorkerHeartbeat[],
    graceMs: number,
    nowMs: number,
  ): { readonly gone: ReadonlySet<string>; readonly nextCheckMs: number | null } {
    const seen = new Set([
      ...present.map(({ id }) => id),
      ...announced.map(({ supervisorId }) => supervisorId),
    ]);
    const gone = new Set<string>();
    let nextCheckMs: number | null = null;
    for (const id of assigned) {
      if (seen.has(id)) {
        this.#missingSince.delete(id);
        continue;
      }
      const sinceMs = this.#missingSince.get(id) ?? nowMs;
      this.#missingSince.set(id, sinceMs);
      const endMs = sinceMs + graceMs;
      if (nowMs >= endMs) gone.add(id);
      else nextCheckMs = Math.min(nextCheckMs ?? endMs, endMs);
    }
    for (const id of this.#missingSince.keys()) if (!assigned.has(id)) this.#missingSince.delete(id);
    return { gone, nextCheckMs };
  }

  /**
   * When each executor, named by its first task, was last heard from in its present slot; undefined: never.
   *
   * While its supervisor reports, the supervisor deals with a silent worker; it has the time of a launch for that
   * before its executors count as silent here, so that both do not react to one hang.
   */
  lastHeartbeats(slot: SlotQuestion, nowMs: number): (firstTask: number) => number | undefined {
    const { supervisor, timeoutMs, launchTimeoutMs, startedMs } = slot;
    const heardMs = this.#executors.get(placeKey(slot));
    const supervisorHeardMs = this.#supervisors.get(supervisor)?.atMs;
    const isHandled = supervisorHeardMs !== undefined && nowMs - supervisorHeardMs < timeoutMs;
    return (firstTask) => {
      const ownMs = heardMs?.get(firstTask);
      const knownMs = startedMs < this.#startedMs ? Math.max(ownMs ?? 0, this.#startedMs) : ownMs;
      if (knownMs === undefined || nowMs - knownMs < timeoutMs) return knownMs;
      return isHandled && nowMs - knownMs < timeoutMs + launchTimeoutMs ? nowMs : knownMs;
    };
  }

  /** Forgets slots that no assignment names any more. */
  retain(assignments: readonly Assignment[]): void {
    const kept = new Set<string>();
    for (const { topologyId, slots } of assignments) {
      for (const { supervisor, port, executors } of slots) {
        const key = placeKey({ topologyId, supervisor, port });
        const heard = this.#executors.get(key);
        if (heard === undefined) continue;
        const named = new Set(executors.map(([firstTask]) => firstTask));
        for (const firstTask of heard.keys()) if (!named.has(firstTask)) heard.delete(firstTask);
        kept.add(key);
      }
    }
    for (const key of this.#executors.keys()) if (!kept.has(key)) this.#executors.delete(key);
  }

  #noteWorker(heartbeat: WorkerHeartbeat, nowMs: number): void {
    const { workerId, sequence, topologyId, supervisorId: supervisor, port } = heartbeat;
    if (!hear(this.#workers, `${supervisor}:${port}`, `${workerId} ${sequence}`, nowMs)) return;
    const key = placeKey({ topologyId, supervisor, port });
    const heard = this.#executors.get(key) ?? new Map<number, number>();
    this.#executors.set(key, heard);
    for (const { executors } of heartbeat.threads)
      for (const [firstTask] of executors) heard.set(firstTask, nowMs);
  }
}

function hear(into: Map<string, Heard>, id: string, mark: string, nowMs: number): boolean {
  if (into.get(id)?.mark === mark) return false;
  into.set(id, { mark, atMs: nowMs });
  return true;
}

function placeKey(place: { topologyId: string; supervisor: string; port: number }): string {
  return `${place.topologyId} ${place.supervisor} ${place.port}`;
}
