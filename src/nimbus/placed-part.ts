/** The part of an assignment that the scheduler knows. */
import type { Assignment } from '../scheduling/index.js';

/** Without slots that have no executors: the scheduler knows none of these. */
export function placedPart(assignment: Assignment): Assignment {
  const { slots } = assignment;
  // The very list, where it can be: what is known of it needs not be found out again.
  if (slots.every(({ executors }) => executors.length > 0)) return assignment;
  return { ...assignment, slots: slots.filter(({ executors }) => executors.length > 0) };
}
