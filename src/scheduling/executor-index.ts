/**
 * The executors of a topology in order of first task, and the place of each in that order by its range. It follows from the list of
 * executors alone, so it is made once for a list that is handed from round to round.
 */
import type { ExecutorRange } from './assignment.js';
import type { PlannedExecutor } from './executors.js';
import { compareRanges } from './order.js';

/** Most unused entries of a table by task number that are worth its speed. */
const SPARSE_ENTRIES_PER_EXECUTOR = 8;

/** What `indexOf` answers for an executor that the topology does not have. */
export const NO_EXECUTOR = -1;

export class ExecutorIndex {
  /** In order of first task. */
  readonly executors: readonly PlannedExecutor[];
  readonly #lowest: number;
  /** Place by first task less the lowest; undefined: tasks are too far apart for a table. */
  readonly #table: Int32Array | undefined;
  readonly #map: ReadonlyMap<number, number> | undefined;

  /** Cost: O(E) for executors in order, else O(E log E). */
  constructor(unordered: readonly PlannedExecutor[]) {
    const executors = isInOrder(unordered)
      ? unordered
      : [...unordered].sort((a, b) => compareRanges(a.range, b.range));
    this.executors = executors;
    this.#lowest = executors[0]?.range[0] ?? 0;
    const spread = executors.length === 0 ? 0 : executors.at(-1)!.range[0] - this.#lowest + 1;
    const isDense =
      Number.isInteger(spread) && spread <= 1024 + SPARSE_ENTRIES_PER_EXECUTOR * executors.length;
    if (isDense) {
      const table = new Int32Array(spread).fill(NO_EXECUTOR);
      for (let index = 0; index < executors.length; index++)
        table[executors[index]!.range[0] - this.#lowest] = index;
      this.#table = table;
    } else {
      this.#map = new Map(executors.map(({ range: [first] }, index) => [first, index]));
    }
  }

  /** The place of exactly this executor; NO_EXECUTOR if there is none. */
  indexOf(range: ExecutorRange): number {
    const index =
      (this.#table === undefined ? this.#map!.get(range[0]) : this.#table[range[0] - this.#lowest]) ??
      NO_EXECUTOR;
    return index !== NO_EXECUTOR && this.executors[index]!.range[1] === range[1] ? index : NO_EXECUTOR;
  }
}

const KNOWN = new WeakMap<readonly PlannedExecutor[], ExecutorIndex>();

/** The index of a list that nobody changes any more. */
export function indexExecutors(executors: readonly PlannedExecutor[]): ExecutorIndex {
  let index = KNOWN.get(executors);
  if (index === undefined) KNOWN.set(executors, (index = new ExecutorIndex(executors)));
  return index;
}

function isInOrder(executors: readonly PlannedExecutor[]): boolean {
  for (let index = 1; index < executors.length; index++) {
    if (compareRanges(executors[index - 1]!.range, executors[index]!.range) > 0) return false;
  }
  return true;
}
