/**
 * The executors of a topology in order of first task, and the place of each in that order by its range. It follows from the list of
 * executors alone, so it is made once for a list that is handed from round to round.
 */
import type { ExecutorRange } from './assignment.js';
import type { PlannedExecutor } from './executors.js';
import { compareRanges, inOrder } from './order.js';

/** Most unused entries of a table by task number that are worth its speed. */
const SPARSE_ENTRIES_PER_EXECUTOR = 8;

/** What `indexOf` answers for an executor that the topology does not have. */
export const NO_EXECUTOR = -1;

export class ExecutorIndex {
  /** In order of first task. */
  readonly executors: readonly PlannedExecutor[];
  /** Last task by place. */
  readonly #last: Float64Array;
  readonly #lowest: number;
  /** Place by first task less the lowest; undefined: tasks are too far apart for a table. */
  readonly #table: Int32Array | undefined;
  readonly #map: ReadonlyMap<number, number> | undefined;

  /** Cost: O(E) for executors in order, else O(E log E). */
  constructor(unordered: readonly PlannedExecutor[]) {
    const executors = inOrder(unordered, (a, b) => compareRanges(a.range, b.range));
    this.executors = executors;
    this.#last = Float64Array.from(executors, ({ range }) => range[1]);
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

  /** The place of the executor that begins with this task; NO_EXECUTOR if there is none. */
  placeOfFirst(first: number): number {
    return (
      (this.#table === undefined ? this.#map!.get(first) : this.#table[first - this.#lowest]) ?? NO_EXECUTOR
    );
  }

  /** The place of the executor that has this task, first or not; NO_EXECUTOR if there is none. Cost: O(log E) where it is not the first. */
  placeOfTask(task: number): number {
    const exact = this.placeOfFirst(task);
    if (exact !== NO_EXECUTOR) return exact;
    let [low, high] = [0, this.executors.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.executors[middle]!.range[0] <= task) low = middle + 1;
      else high = middle;
    }
    return low > 0 && task <= this.#last[low - 1]! ? low - 1 : NO_EXECUTOR;
  }

  /** The place of exactly this executor; NO_EXECUTOR if there is none. */
  indexOf(range: ExecutorRange): number {
    const place = this.placeOfFirst(range[0]);
    return place !== NO_EXECUTOR && this.#last[place] === range[1] ? place : NO_EXECUTOR;
  }
}

const KNOWN = new WeakMap<readonly PlannedExecutor[], ExecutorIndex>();

/** The index of a list that nobody changes any more. */
export function indexExecutors(executors: readonly PlannedExecutor[]): ExecutorIndex {
  let index = KNOWN.get(executors);
  if (index === undefined) KNOWN.set(executors, (index = new ExecutorIndex(executors)));
  return index;
}
