/**
 * Which machine carries least, while one after the other gets something: a heap, or levels where loads are small whole
 * numbers, as task counts are. Both give the same answers; levels cost a few steps a request, whatever the number of machines.
 */
import { LoadHeap } from './load-heap.js';

export interface LeastLoaded {
  /** The one with the least load, by its tie among equals; -1: none is left. */
  readonly first: number;
  /** To be called after the load of the first one has grown. */
  grown(): void;
  /** Takes the first one out. */
  shift(): void;
}

/** Levels at once, a power of two. Between two of them nothing may lie for long: empty ones are passed one by one. */
const MOST_LEVELS = 1024;

/**
 * `loads` and `ties` by machine, `machines` those that take part. `added` has all that machines will get, in any order.
 * Whoever gives the first machine something changes its load, and may change its tie.
 */
export function leastLoaded(
  loads: Float64Array,
  ties: Float64Array,
  machines: ArrayLike<number>,
  added: Float64Array,
): LeastLoaded {
  const levels = levelsNeeded(loads, machines, added);
  const queue = levels <= MOST_LEVELS ? new LoadLevels(loads, ties, levels) : new LoadHeap({ loads, ties });
  for (let index = 0; index < machines.length; index++) queue.add(machines[index]!);
  return queue;
}

/** How many loads from the least one on there are at a time; Infinity: they are no whole numbers, or do not grow. */
function levelsNeeded(loads: Float64Array, machines: ArrayLike<number>, added: Float64Array): number {
  let largestAdded = 0;
  let sum = 0;
  for (let index = 0; index < added.length; index++) {
    const load = added[index]!;
    if (load < 1 || !Number.isInteger(load)) return Infinity;
    if (load > largestAdded) largestAdded = load;
    sum += load;
  }
  let smallest = Infinity;
  let largest = -Infinity;
  for (let index = 0; index < machines.length; index++) {
    const load = loads[machines[index]!]!;
    if (!Number.isSafeInteger(load)) return Infinity;
    if (load < smallest) smallest = load;
    if (load > largest) largest = load;
  }
  if (largest + sum > Number.MAX_SAFE_INTEGER) return Infinity;
  return Math.max(largestAdded, largest - smallest) + 1;
}

/** Machines by their load: all loads lie close enough to the least one that their low bits tell them apart. */
class LoadLevels implements LeastLoaded {
  readonly #loads: Float64Array;
  readonly #ties: Float64Array;
  readonly #levels: number[][];
  readonly #mask: number;
  #size = 0;
  /** The level that is being emptied, in order of ties, and how far. */
  #open: number[] = [];
  #at = 0;
  /** The load of that level; before the first one: the least. */
  #load = Infinity;

  constructor(loads: Float64Array, ties: Float64Array, levels: number) {
    this.#loads = loads;
    this.#ties = ties;
    const count = 2 ** Math.ceil(Math.log2(levels));
    this.#levels = Array.from({ length: count }, () => []);
    this.#mask = count - 1;
  }

  /** Only before the first one is asked for. */
  add(machine: number): void {
    const load = this.#loads[machine]!;
    if (load < this.#load) this.#load = load;
    this.#levels[load & this.#mask]!.push(machine);
    this.#size++;
  }

  get first(): number {
    if (this.#at < this.#open.length) return this.#open[this.#at]!;
    return this.#size === 0 ? -1 : this.#openNext();
  }

  grown(): void {
    const machine = this.#open[this.#at++]!;
    this.#levels[this.#loads[machine]! & this.#mask]!.push(machine);
  }

  shift(): void {
    this.#at++;
    this.#size--;
  }

  #openNext(): number {
    while (this.#levels[this.#load & this.#mask]!.length === 0) this.#load++;
    const level = this.#load & this.#mask;
    const open = this.#levels[level]!;
    this.#levels[level] = [];
    this.#sortByTies(open);
    this.#open = open;
    this.#at = 0;
    return open[0]!;
  }

  #sortByTies(machines: number[]): void {
    const ties = this.#ties;
    for (let index = 1; index < machines.length; index++) {
      if (ties[machines[index - 1]!]! < ties[machines[index]!]!) continue;
      // It has a few pieces in order, one for each level that it was filled from.
      machines.sort((a, b) => ties[a]! - ties[b]!);
      return;
    }
  }
}
