/** How many slots each slot sharing group gets: the one rule for Storm's and Flink's way of counting. */
import { sharingGroups, type SharingGraph, type SlotCounts } from './sharing-graph.js';

/**
 * `max-parallelism`: each group its largest parallelism (Flink). A number of workers is divided in proportion to these,
 * by largest remainder, at least one each; so there are more slots than workers only if there are more groups.
 */
export function slotCounts(graph: SharingGraph, workers: number | 'max-parallelism'): SlotCounts {
  const groups = sharingGroups(graph);
  if (workers === 'max-parallelism') return new Map(groups.map(({ name, slots }) => [name, slots]));
  const total = groups.reduce((sum, { slots }) => sum + slots, 0);
  const shares = groups.map(({ name, slots }, index) => {
    const exact = (workers * slots) / total;
    return { name, index, slots: Math.max(1, Math.floor(exact)), rest: exact - Math.floor(exact), exact };
  });
  let left = workers - shares.reduce((sum, { slots }) => sum + slots, 0);
  const byRest = [...shares].sort((a, b) => b.rest - a.rest || a.index - b.index);
  for (const share of byRest) {
    if (left <= 0) break;
    if (share.slots > share.exact) continue;
    share.slots++;
    left--;
  }
  // Groups that were raised to one slot are paid for by the largest ones.
  while (left < 0) {
    const largest = shares.reduce((best, one) => (one.slots > best.slots ? one : best));
    if (largest.slots === 1) break;
    largest.slots--;
    left++;
  }
  return new Map(shares.map(({ name, slots }) => [name, slots]));
}
