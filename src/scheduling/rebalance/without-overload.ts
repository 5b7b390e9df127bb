/**
 * What a rebalance would leave on supervisors beyond what they offer is taken off them again, so that a strategy that keeps to capacities
 * finds another place for it: requests may have grown, and dealing executors with few moves looks at no capacity.
 */
import { type ClusterSnapshot, type PlacedWorker, type Placement, slotKey } from '../cluster-snapshot.js';
import { isBeyond, useOfSupervisors, useOfWorkers } from '../resource-use.js';

/** The placement without workers of these topologies that are too many for their supervisor, or have too much heap. Others stay. */
export function withoutOverload(
  snapshot: ClusterSnapshot,
  placement: Placement,
  topologyIds: ReadonlySet<string>,
): Placement {
  if (topologyIds.size === 0) return placement;
  const left = new Map(placement);
  for (const topology of snapshot.topologies) {
    if (!topologyIds.has(topology.id)) continue;
    const mostMb = topology.rules?.workerMaxHeapMb ?? Infinity;
    const uses = useOfWorkers(topology, left.get(topology.id) ?? []);
    const sound = uses.filter(({ onHeapMb }) => !isBeyond(onHeapMb, mostMb)).map(({ worker }) => worker);
    if (sound.length < uses.length) left.set(topology.id, sound);
  }
  const concerned = new Set(
    [...topologyIds].flatMap((id) => (left.get(id) ?? []).map(({ supervisor }) => supervisor)),
  );
  for (const supervisor of concerned) {
    while (isOverfull(snapshot, left, supervisor)) {
      const taken = lastWorker(left, topologyIds, supervisor);
      if (taken === undefined) break;
      const [id, worker] = taken;
      left.set(
        id,
        left.get(id)!.filter((one) => one !== worker),
      );
    }
  }
  return left;
}

function isOverfull(snapshot: ClusterSnapshot, placement: Placement, supervisor: string): boolean {
  const use = useOfSupervisors(snapshot, placement, 0, new Set([supervisor])).get(supervisor);
  const offered = snapshot.supervisors.find(({ id }) => id === supervisor)?.resources;
  // One that is away offers nothing, and what runs there is left alone.
  if (use === undefined || offered === undefined) return false;
  if (isBeyond(use.cpuPercent, offered.cpuPercent) || isBeyond(use.memoryMb, offered.memoryMb)) return true;
  return [...use.generic].some(([name, amount]) => isBeyond(amount, offered.generic?.[name] ?? 0));
}

/** Of those that may go, the one in the slot that comes last. */
function lastWorker(
  placement: Placement,
  topologyIds: ReadonlySet<string>,
  supervisor: string,
): readonly [string, PlacedWorker] | undefined {
  const all = [...topologyIds].flatMap((id) =>
    (placement.get(id) ?? [])
      .filter((worker) => worker.supervisor === supervisor)
      .map((worker) => [id, worker] as const),
  );
  return all.sort(([, a], [, b]) => (slotKey(a) < slotKey(b) ? 1 : -1))[0];
}
