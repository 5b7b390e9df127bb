/** A running cluster as a draft: exactly what its next scheduling round would start from. Pure. */
import type { SchedulingPicture } from '../../api/index.js';
import type { ClusterDraft, TopologyDraft } from './cluster-draft.js';

export function runningDraft({
  nowMs,
  settings,
  supervisors,
  blacklistedHosts,
  topologies,
}: SchedulingPicture): ClusterDraft {
  return {
    settings,
    supervisors,
    topologies: topologies.map((pictured): TopologyDraft => {
      const { id, name, description, desired, rebalance, stored, uptimeMs } = pictured;
      return {
        id,
        where: `the running cluster: ${id}`,
        topology: description,
        settings: pictured.settings,
        facts: { name, uptimeMs },
        ...(desired === null ? {} : { desired }),
        ...(rebalance === null ? {} : { rebalance }),
        ...(stored === null ? {} : { stored }),
        ...(pictured.measured === undefined ? {} : { measured: pictured.measured }),
      };
    }),
    notes: [],
    blacklistedHosts,
    atMs: nowMs,
    silentSlots: topologies.flatMap((one) => one.silentSlots),
  };
}
