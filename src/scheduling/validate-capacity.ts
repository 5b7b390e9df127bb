/**
 * The check of resources, for what a strategy returned that heeds them.
 *
 * V5: a supervisor is not used beyond what it offers; V6: a new worker's heap stays within its topology's limit. Where a
 * supervisor was used beyond its offer before, it may be, but not more.
 */
import { type ClusterSnapshot, type PlacedWorker, type Placement, slotKey } from './cluster-snapshot.js';
import { sameRanges } from './order.js';
import { useOfSupervisors, useOfWorkers } from './resource-use.js';

/** Amounts are added up in another order than the strategy did. */
const TOLERANCE = 1e-3;

/** Sentences on what is wrong, by topology id: that of everybody who has something new on an overfull supervisor. */
export function validateCapacity(
  snapshot: ClusterSnapshot,
  placement: Placement,
  minimumCpuPercent = 0,
): ReadonlyMap<string, readonly string[]> {
  const faults = new Map<string, string[]>();
  const overfull = overfullSupervisors(snapshot, placement, minimumCpuPercent);
  for (const topology of snapshot.topologies) {
    const before = new Map(
      (snapshot.placement.get(topology.id) ?? []).map((worker) => [slotKey(worker), worker]),
    );
    const fresh = (placement.get(topology.id) ?? []).filter((worker) => !isKept(worker, before));
    const sentences: string[] = [];
    for (const supervisor of new Set(fresh.map((worker) => worker.supervisor))) {
      const fault = overfull.get(supervisor);
      if (fault !== undefined) sentences.push(fault);
    }
    const mostHeapMb = topology.rules?.workerMaxHeapMb ?? Infinity;
    for (const { worker, onHeapMb } of useOfWorkers(topology, fresh)) {
      if (onHeapMb <= mostHeapMb + TOLERANCE) continue;
      sentences.push(
        `the worker in slot ${slotKey(worker)} needs ${onHeapMb} MB of heap; ${mostHeapMb} MB are allowed`,
      );
    }
    if (sentences.length > 0) faults.set(topology.id, sentences);
  }
  return faults;
}

function isKept(worker: PlacedWorker, before: ReadonlyMap<string, PlacedWorker>): boolean {
  const old = before.get(slotKey(worker));
  return old !== undefined && sameRanges(old.executors, worker.executors);
}

function overfullSupervisors(
  snapshot: ClusterSnapshot,
  placement: Placement,
  minimumCpuPercent: number,
): ReadonlyMap<string, string> {
  const now = useOfSupervisors(snapshot, placement, minimumCpuPercent);
  const before = useOfSupervisors(snapshot, snapshot.placement, minimumCpuPercent);
  const faults = new Map<string, string>();
  for (const { id, resources } of snapshot.supervisors) {
    const use = now.get(id);
    if (use === undefined) continue;
    const old = before.get(id);
    const check = (what: string, used: number, usedBefore: number, offered: number): void => {
      if (used <= Math.max(offered, usedBefore) + TOLERANCE) return;
      faults.set(id, `supervisor ${id} offers ${offered} ${what}, of which ${used} are used`);
    };
    check('% of a core', use.cpuPercent, old?.cpuPercent ?? 0, resources?.cpuPercent ?? 0);
    check('MB', use.memoryMb, old?.memoryMb ?? 0, resources?.memoryMb ?? 0);
    for (const [name, used] of use.generic) {
      check(name, used, old?.generic.get(name) ?? 0, resources?.generic?.[name] ?? 0);
    }
  }
  return faults;
}
