/** Clusters of equal machines and equal topologies. */
import type { ClusterSnapshot, ClusterTopology } from './library.js';

export interface SyntheticOptions {
  readonly machines: number;
  /** Of each machine. */
  readonly slots: number;
  readonly topologies: number;
  /** Of each topology, in five components. */
  readonly executors: number;
  /** Of each topology. */
  readonly workers: number;
}

export function syntheticCluster({
  machines,
  slots,
  topologies,
  executors,
  workers,
}: SyntheticOptions): ClusterSnapshot {
  return {
    supervisors: Array.from({ length: machines }, (_, index) => ({
      id: `s${String(index).padStart(4, '0')}`,
      host: `h${String(index).padStart(4, '0')}`,
      ports: Array.from({ length: slots }, (_unused, port) => 6700 + port),
    })),
    topologies: Array.from(
      { length: topologies },
      (_, index): ClusterTopology => ({
        id: `t${String(index).padStart(3, '0')}`,
        workers,
        executors: Array.from({ length: executors }, (_unused, executor) => ({
          range: [executor + 1, executor + 1] as const,
          component: `c${Math.floor(((executor + 1) * 5) / (executors + 1))}`,
        })),
      }),
    ),
    placement: new Map(),
  };
}
