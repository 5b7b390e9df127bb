/**
 * Splitting tasks into executors: as evenly as can be, larger parts first.
 * Source: Storm's `Utils.integerDivided`, `Utils.partitionFixed` and Nimbus's computation of executors.
 */
import type { ComponentTasks, ExecutorRange } from './assignment.js';

/** An executor with the component whose tasks it holds. */
export interface PlannedExecutor {
  readonly range: ExecutorRange;
  readonly component: string;
}

/** Splits `sum` into `pieces` that differ by one at most: size → how many pieces have it. No pieces: an empty map. */
export function integerDivided(sum: number, pieces: number): ReadonlyMap<number, number> {
  if (pieces <= 0) return new Map();
  const base = Math.floor(sum / pieces);
  const larger = sum - base * pieces;
  return new Map(
    larger > 0
      ? [
          [base, pieces - larger],
          [base + 1, larger],
        ]
      : [[base, pieces]],
  );
}

/** Sizes of the chunks of `count` items in at most `maxChunks`: larger ones first, none empty. */
function chunkSizes(count: number, maxChunks: number): number[] {
  const sizes = [...integerDivided(count, maxChunks)].sort(([a], [b]) => b - a);
  return sizes.flatMap(([size, times]) => (size > 0 ? Array.from({ length: times }, () => size) : []));
}

/** Cuts a list, keeping its order, into at most `maxChunks` chunks: larger ones first, none empty. */
export function partitionFixed<T>(maxChunks: number, items: readonly T[]): T[][] {
  let from = 0;
  return chunkSizes(items.length, maxChunks).map((size) => items.slice(from, (from += size)));
}

/**
 * The executors of numbered components: a component with T tasks and E executors gets min(T, E), the first T mod E of
 * them with one task more. A component without a count has no executors, so its tasks never run.
 */
export function computeExecutors(
  tasks: readonly ComponentTasks[],
  counts: ReadonlyMap<string, number>,
): PlannedExecutor[] {
  const executors: PlannedExecutor[] = [];
  for (const { component, first, last } of tasks) {
    let next = first;
    for (const size of chunkSizes(last - first + 1, counts.get(component) ?? 0)) {
      executors.push({ range: [next, next + size - 1], component });
      next += size;
    }
  }
  return executors;
}
