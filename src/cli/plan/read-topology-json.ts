/** A topology as JSON, in the form in which it is submitted. Pure. */
import { toIsobarError } from '../../base/index.js';
import { type TopologyDescription, validateDescription } from '../../topology/index.js';
import type { ClusterDraft } from './cluster-draft.js';
import { type InputFaults, Words } from './input-faults.js';

/** Is it meant to be a topology, not a cluster? */
export function isTopologyDescription(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'components' in value && !('supervisors' in value);
}

/** A topology that would be submitted now. */
export function topologyDraftOf(description: TopologyDescription, where: string): ClusterDraft {
  const { name, settings } = description;
  const topology = { id: name, where, topology: description, settings, facts: { name } };
  return { settings: {}, supervisors: [], topologies: [topology], notes: [] };
}

export function readTopologyJson(
  value: unknown,
  file: string,
  faults: InputFaults,
): ClusterDraft | undefined {
  try {
    return topologyDraftOf(validateDescription(value), file);
  } catch (error) {
    for (const line of toIsobarError(error)
      .message.split('\n')
      .filter((one) => !/^\d+ faults:$/.test(one)))
      faults.add(file, 'a topology as it is submitted', new Words(line.trim()));
    return undefined;
  }
}
