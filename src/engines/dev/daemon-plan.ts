/** Which daemons a cluster consists of, and which parts share a process. Pure. */
import type { ClusterFile, SupervisorFile, SupervisorSpec } from './dev-directory.js';

export interface DaemonPlan {
  /** Names its files: `local`, `coordinator`, `nimbus`, `supervisor-NAME`. */
  readonly id: string;
  readonly coordinator: boolean;
  readonly nimbus: boolean;
  readonly supervisor: SupervisorSpec | null;
}

/**
 * The daemons that are to run, those first that others need. A cluster with one supervisor has one process; one with
 * several, or one over a coordinator of its own, has a process for each daemon.
 */
export function planDaemons(
  cluster: ClusterFile,
  supervisors: readonly SupervisorFile[],
): readonly DaemonPlan[] {
  const isEmbedded = cluster.coordinator === null;
  const wanted = supervisors.filter(({ isWanted }) => isWanted).map(({ spec }) => spec);
  const apart = wanted
    .filter(({ name }) => name !== cluster.together)
    .map(
      (spec): DaemonPlan => ({
        id: supervisorId(spec.name),
        coordinator: false,
        nimbus: false,
        supervisor: spec,
      }),
    );
  if (cluster.together !== null) {
    const supervisor = wanted.find(({ name }) => name === cluster.together) ?? null;
    return [{ id: 'local', coordinator: isEmbedded, nimbus: true, supervisor }, ...apart];
  }
  return [
    ...(isEmbedded ? [{ id: 'coordinator', coordinator: true, nimbus: false, supervisor: null }] : []),
    { id: 'nimbus', coordinator: false, nimbus: true, supervisor: null },
    ...apart,
  ];
}

/** The id of the daemon of a supervisor that has its own process. */
export function supervisorId(name: string): string {
  return `supervisor-${name}`;
}
