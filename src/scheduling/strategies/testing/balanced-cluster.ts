/** What tests of the strategy `balanced` begin with. */
import type { ClusterSnapshot, ClusterTopology, Placement } from '../../cluster-snapshot.js';
import type { BalancedOptions } from '../balanced/balanced.js';

/** Everything that the strategy can do, with as many moves as it likes. */
export const ALL_BY_TASKS: BalancedOptions = {
  mode: 'tasks',
  improves: true,
  fairShares: true,
  classes: ['sources', 'stateful', 'stateless'],
  spreadsComponents: true,
  seesAllTopologies: true,
  keepsNeighbours: true,
  moveBudget: Infinity,
};

/** Machines m0, m1, … with these numbers of slots; -1: the machine is gone. */
export function clusterOf(
  slots: readonly number[],
  topologies: readonly ClusterTopology[],
  placement: Placement = new Map(),
): ClusterSnapshot {
  return {
    supervisors: slots.flatMap((count, index) =>
      count < 0
        ? []
        : [{ id: `m${index}`, host: `m${index}`, ports: Array.from({ length: count }, (_, port) => port) }],
    ),
    topologies,
    placement,
  };
}
