/**
 * The pass that moves a few workers onto supervisors that came back empty. Off unless asked for.
 * Source: the idle-supervisor pass of Storm's `EvenScheduler` (development head).
 */
import type { WorkingCluster } from '../../cluster.js';
import type { PlacedWorker, Slot } from '../../cluster-snapshot.js';

export interface IdleSupervisorRules {
  /** Most workers of one topology that move in one round; 0: no limit. */
  readonly maxMovesPerTopology: number;
  /** A supervisor counts as idle only when it has been up for so long. */
  readonly minimumUptimeMs: number;
}

/**
 * Moves workers, one of each topology in turn, from the supervisor that holds most of it (at least two) to the next
 * slot of an idle supervisor. A topology may move floor(workers / supervisors) workers per idle supervisor.
 */
export function fillIdleSupervisors(
  cluster: WorkingCluster,
  topologyIds: readonly string[],
  rules: IdleSupervisorRules,
): void {
  const usable = cluster.supervisorIds().filter((id) => cluster.assignablePorts(id).length > 0);
  const idle = usable.filter(
    (id) => cluster.usedPorts(id).length === 0 && cluster.uptimeMs(id) >= rules.minimumUptimeMs,
  );
  if (idle.length === 0) return;
  const targets = idle.flatMap((supervisor) =>
    cluster.assignablePorts(supervisor).map((port): Slot => ({ supervisor, port })),
  );
  let nextTarget = 0;
  let movers = topologyIds
    .map((id) => ({ id, budget: budgetOf(cluster, id, usable.length, idle.length, rules) }))
    .filter(({ budget }) => budget > 0);
  while (movers.length > 0 && nextTarget < targets.length) {
    for (const mover of movers) {
      const target = targets[nextTarget];
      if (target === undefined) break;
      if (moveOne(cluster, mover.id, target)) {
        nextTarget++;
        mover.budget--;
      } else {
        mover.budget = 0;
      }
    }
    movers = movers.filter(({ budget }) => budget > 0);
  }
}

function budgetOf(
  cluster: WorkingCluster,
  topologyId: string,
  usable: number,
  idle: number,
  { maxMovesPerTopology }: IdleSupervisorRules,
): number {
  const budget = Math.floor(cluster.wantedWorkers(topologyId) / usable) * idle;
  return maxMovesPerTopology > 0 ? Math.min(maxMovesPerTopology, budget) : budget;
}

/** Moves the worker with the highest port of the fullest supervisor; false if none has two workers of the topology. */
function moveOne(cluster: WorkingCluster, topologyId: string, target: Slot): boolean {
  // Workers come in order of supervisor and port: the first of equals has the lowest id, the last of one the highest port.
  const bySupervisor = new Map<string, PlacedWorker[]>();
  for (const worker of cluster.workersOf(topologyId)) {
    const workers = bySupervisor.get(worker.supervisor);
    if (workers === undefined) bySupervisor.set(worker.supervisor, [worker]);
    else workers.push(worker);
  }
  let donor: readonly PlacedWorker[] = [];
  for (const workers of bySupervisor.values()) if (workers.length > donor.length) donor = workers;
  const victim = donor.at(-1);
  if (victim === undefined || donor.length < 2) return false;
  cluster.freeSlot(victim);
  cluster.assign(target, topologyId, victim.executors);
  return true;
}
