/**
 * Which workers give up their slots for topologies that have none, where slots are short: one slot for each, from topologies that have
 * more than their share, and only what may move. Pure; nothing is taken here.
 *
 * G1  Who gives keeps at least its share, and at least one worker. G2  Nobody gives more than it takes to let each topology that has a
 * share have one slot, counting those that are free or about to be. So a round after this one finds nothing to do.
 */
import type { WorkingCluster } from '../../cluster.js';
import type { PlacedWorker } from '../../cluster-snapshot.js';
import { fairShares } from '../../fair-shares.js';
import { sharingGroupsOf } from './join-workers.js';
import type { GroupableTopology } from './slot-groups.js';

/** A topology that takes part, in order of id. */
export interface Sharer {
  readonly id: string;
  readonly own: GroupableTopology;
  /** Slots that it can use. */
  readonly wanted: number;
}

export interface GivenSlot {
  readonly topologyId: string;
  readonly worker: PlacedWorker;
}

export interface SlotsToGive {
  readonly given: readonly GivenSlot[];
  /** Topologies without a slot for which nobody can give one. */
  readonly lacking: number;
}

interface Donor extends Sharer {
  readonly share: number;
  workers: PlacedWorker[];
}

/**
 * @param free slots that are free, or are about to be
 * @param most slots that may be given up now
 */
export function slotsToGive(
  cluster: WorkingCluster,
  sharers: readonly Sharer[],
  free: number,
  most: number,
): SlotsToGive {
  const none: SlotsToGive = { given: [], lacking: 0 };
  if (!sharers.some(({ id }) => cluster.assignedWorkers(id) === 0)) return none;
  const all = free + sharers.reduce((sum, { id }) => sum + cluster.assignedWorkers(id), 0);
  const shares = fairShares(
    sharers.map(({ id, wanted }) => [id, wanted]),
    all,
  );
  const starving = sharers.filter(
    ({ id }) => cluster.assignedWorkers(id) === 0 && cluster.hasUnassigned(id) && shares.get(id)! > 0,
  );
  const missing = starving.length - free;
  if (missing <= 0) return none;
  const donors = sharers.flatMap((sharer): Donor[] => {
    const share = Math.max(1, shares.get(sharer.id)!);
    if (cluster.assignedWorkers(sharer.id) <= share) return [];
    return [{ ...sharer, share, workers: [...cluster.workersOf(sharer.id)] }];
  });
  const given: GivenSlot[] = [];
  let lacking = 0;
  while (given.length < Math.min(missing, most)) {
    const [first, ...rest] = donors
      .filter(({ workers, share }) => workers.length > share)
      .sort((a, b) => b.workers.length - b.share - (a.workers.length - a.share));
    if (first === undefined) {
      lacking = missing - given.length;
      break;
    }
    const worker = lightest(cluster, first);
    if (worker === undefined) {
      donors.splice(0, donors.length, ...rest);
      continue;
    }
    first.workers = first.workers.filter((one) => one !== worker);
    given.push({ topologyId: first.id, worker });
  }
  return { given, lacking };
}

/** The worker that weighs least of those that may move, and whose executors others of its topology can take. */
function lightest(cluster: WorkingCluster, { own, workers }: Donor): PlacedWorker | undefined {
  const usable = workers.filter((worker) => cluster.isAssignable(worker));
  const groupsOf = new Map(usable.map((worker) => [worker, sharingGroupsOf(own, worker.executors)]));
  let best: { readonly worker: PlacedWorker; readonly load: number } | undefined;
  for (const worker of usable) {
    const { load, isMovable } = own.weigh(worker.executors);
    if (!isMovable || (best !== undefined && load >= best.load)) continue;
    const canJoin = [...groupsOf.get(worker)!].every((group) =>
      usable.some((other) => other !== worker && groupsOf.get(other)!.has(group)),
    );
    if (canJoin && usable.length > 1) best = { worker, load };
  }
  return best?.worker;
}
