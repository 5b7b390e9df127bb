/** What a topology asks for that no machine of this cluster could give it: said when it is submitted, and not when it has waited in vain. */
import type { Settings } from '../base/index.js';
import type { SupervisorRecord } from '../coordination/index.js';
import {
  clusterTopologyOf,
  installedStrategies,
  neverFits,
  type RoundTopology,
} from '../scheduling/index.js';
import { machineResources } from './machine-resources.js';

export function unsatisfiableNotes(
  topology: Pick<RoundTopology, 'id' | 'plan' | 'settings'>,
  supervisors: readonly SupervisorRecord[],
  cluster: Settings,
): readonly string[] {
  // A strategy of the operator's own knows what it can satisfy.
  if (installedStrategies(cluster).has(topology.settings['topology.scheduler-strategy'])) return [];
  const machines = supervisors.map((machine) => ({
    ports: machine.ports,
    resources: machineResources(machine),
  }));
  const sentences = neverFits(clusterTopologyOf(topology), machines, cluster['scheduling.strategy']);
  return sentences.map((text) => `Topology "${topology.id}" ${text}`);
}
