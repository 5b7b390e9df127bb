/**
 * The check of resources, for what a strategy returned that keeps to capacities, or has to.
 *
 * V5: a supervisor is not used beyond what it offers; V6: a new worker's heap stays within its topology's limit. Where a
 * supervisor was used beyond its offer before, it may be, but not more.
 */
import {
  type ClusterSnapshot,
  type ClusterTopology,
  type PlacedWorker,
  type Placement,
  slotKey,
} from './cluster-snapshot.js';
import { sameRanges } from './order.js';
import { isBeyond, useOfSupervisors, useOfWorkers } from './resource-use.js';

export interface CapacityRules {
  /** Processor share that every worker takes at least, percent of a core. Default: 0. */
  readonly minimumCpuPercent?: number;
  /** Are new workers checked against their topology's limit of heap? Default: yes. */
  readonly limitsHeap?: boolean;
}

/**
 * Sentences on what is wrong, by topology id: that of everybody who has something new on an overfull supervisor. Cost: O(1) for each
 * list of workers that is the one from before; else O(W), and O(E) of what is new or beside it on a supervisor.
 */
export function validateCapacity(
  snapshot: ClusterSnapshot,
  placement: Placement,
  { minimumCpuPercent = 0, limitsHeap = true }: CapacityRules = {},
): ReadonlyMap<string, readonly string[]> {
  const faults = new Map<string, string[]>();
  const changed = snapshot.topologies
    .map((topology) => ({ topology, workers: newWorkers(topology, snapshot.placement, placement) }))
    .filter(({ workers }) => workers.length > 0);
  if (changed.length === 0) return faults;
  const touched = new Set(changed.flatMap(({ workers }) => workers.map(({ supervisor }) => supervisor)));
  const overfull = overfullSupervisors(snapshot, placement, touched, minimumCpuPercent);
  for (const { topology, workers } of changed) {
    const sentences: string[] = [];
    for (const supervisor of new Set(workers.map((worker) => worker.supervisor))) {
      const fault = overfull.get(supervisor);
      if (fault !== undefined) sentences.push(fault);
    }
    const mostHeapMb = topology.rules?.workerMaxHeapMb;
    if (limitsHeap && mostHeapMb !== undefined) sentences.push(...heapFaults(topology, workers, mostHeapMb));
    if (sentences.length > 0) faults.set(topology.id, sentences);
  }
  return faults;
}

function heapFaults(
  topology: ClusterTopology,
  workers: readonly PlacedWorker[],
  mostHeapMb: number,
): readonly string[] {
  return useOfWorkers(topology, workers)
    .filter(({ onHeapMb }) => isBeyond(onHeapMb, mostHeapMb))
    .map(
      ({ worker, onHeapMb }) =>
        `the worker in slot ${slotKey(worker)} needs ${onHeapMb} MB of heap; ${mostHeapMb} MB are allowed`,
    );
}

/** Workers whose slot, or whose executors, the topology did not have before. */
function newWorkers({ id }: ClusterTopology, before: Placement, after: Placement): readonly PlacedWorker[] {
  const [old, now = []] = [before.get(id), after.get(id)];
  if (old === now) return [];
  const known = new Map((old ?? []).map((worker) => [slotKey(worker), worker]));
  return now.filter((worker) => {
    const same = known.get(slotKey(worker));
    return same === undefined || !sameRanges(same.executors, worker.executors);
  });
}

function overfullSupervisors(
  snapshot: ClusterSnapshot,
  placement: Placement,
  touched: ReadonlySet<string>,
  minimumCpuPercent: number,
): ReadonlyMap<string, string> {
  const now = useOfSupervisors(snapshot, placement, minimumCpuPercent, touched);
  const before = useOfSupervisors(snapshot, snapshot.placement, minimumCpuPercent, touched);
  const faults = new Map<string, string>();
  for (const { id, resources } of snapshot.supervisors) {
    const use = now.get(id);
    if (use === undefined) continue;
    const old = before.get(id);
    const check = (what: string, used: number, usedBefore: number, offered: number): void => {
      if (!isBeyond(used, Math.max(offered, usedBefore))) return;
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
