/** What the scheduler knows of topologies: which ones, and which part of their assignments. */
import { isTerminal } from '../coordination/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { KnownTopology } from './known-topology.js';

/** Without slots that have no executors: the scheduler knows none of these. */
export function placedPart(assignment: Assignment): Assignment {
  const { slots } = assignment;
  // The very list, where it can be: what is known of it needs not be found out again.
  if (slots.every(({ executors }) => executors.length > 0)) return assignment;
  return { ...assignment, slots: slots.filter(({ executors }) => executors.length > 0) };
}

/** Topologies that are placed: alive, and not killed, which keep what they have until they are removed. */
export function isPlaced({ record: { phase } }: KnownTopology): boolean {
  return !isTerminal(phase) && phase.kind !== 'killed';
}
