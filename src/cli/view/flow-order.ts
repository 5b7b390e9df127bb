/** Components in the direction in which rows flow: spouts, then the bolts by stage. Pure. */
import type { ClusterStatus } from '../../api/index.js';

/**
 * The statuses with their components put in order, for all that is shown of them.
 *
 * @param bolts all bolts of the topology by stage, see `graphStages`; what is not named (spouts) comes first, as declared
 */
export function inFlowOrder(
  cluster: ClusterStatus,
  topologyId: string,
  bolts: readonly string[],
): ClusterStatus {
  const places = new Map(bolts.map((bolt, place) => [bolt, place]));
  const placeOf = (component: string): number => places.get(component) ?? -1;
  return {
    ...cluster,
    topologies: cluster.topologies.map((topology) =>
      topology.id !== topologyId
        ? topology
        : {
            ...topology,
            components: topology.components.toSorted((a, b) => placeOf(a.component) - placeOf(b.component)),
          },
    ),
  };
}
