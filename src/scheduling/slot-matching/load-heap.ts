/**
 * Numbered things, least load first; equal loads by a second key. An indexed binary heap over numbers, so that a changed
 * load costs one move and nothing is taken out to be put back.
 */

export interface LoadKeys {
  /** By owner: the load that orders. */
  readonly loads: Float64Array;
  /** By thing: its owner; not given: itself. */
  readonly ownerOf?: Int32Array;
  /** By thing: the smaller one wins among equal loads. */
  readonly ties: Float64Array;
}

export class LoadHeap {
  readonly #heap: number[] = [];
  /** By thing: where it stands; -1: not in this heap. */
  readonly #place: Int32Array;
  readonly #loads: Float64Array;
  readonly #ownerOf: Int32Array;
  readonly #ties: Float64Array;

  /** `places`: an array of -1, by thing, that heaps without common things may share. */
  constructor({ loads, ownerOf, ties }: LoadKeys, places?: Int32Array) {
    this.#loads = loads;
    this.#ownerOf = ownerOf ?? numbersTo(ties.length);
    this.#ties = ties;
    this.#place = places ?? new Int32Array(ties.length).fill(-1);
  }

  get size(): number {
    return this.#heap.length;
  }

  /** The thing with the least load; -1: none. */
  get first(): number {
    return this.#heap.length > 0 ? this.#heap[0]! : -1;
  }

  add(thing: number): void {
    this.#heap.push(thing);
    this.#up(thing, this.#heap.length - 1);
  }

  /** To be called after one of its keys has changed. */
  changed(thing: number): void {
    const place = this.#place[thing]!;
    if (place < 0) return;
    if (!this.#up(thing, place)) this.#down(thing, place);
  }

  /** To be called after the load of the first one has grown. */
  grown(): void {
    this.#down(this.#heap[0]!, 0);
  }

  /** Takes the first one out. */
  shift(): void {
    this.remove(this.#heap[0]!);
  }

  remove(thing: number): void {
    const place = this.#place[thing]!;
    if (place < 0) return;
    this.#place[thing] = -1;
    const last = this.#heap.pop()!;
    if (last === thing) return;
    if (!this.#up(last, place)) this.#down(last, place);
  }

  /** The `count` least ones in order. Cost: O(count²), for small counts. */
  least(count: number): number[] {
    const heap = this.#heap;
    const result: number[] = [];
    // Places whose parents were taken already; the least of them is next.
    const open = heap.length > 0 ? [0] : [];
    while (result.length < count && open.length > 0) {
      let least = 0;
      for (let index = 1; index < open.length; index++) {
        if (this.#isBefore(heap[open[index]!]!, heap[open[least]!]!)) least = index;
      }
      const [place] = open.splice(least, 1) as [number];
      result.push(heap[place]!);
      for (const child of [2 * place + 1, 2 * place + 2]) if (child < heap.length) open.push(child);
    }
    return result;
  }

  #isBefore(a: number, b: number): boolean {
    const difference = this.#loads[this.#ownerOf[a]!]! - this.#loads[this.#ownerOf[b]!]!;
    return difference === 0 ? this.#ties[a]! < this.#ties[b]! : difference < 0;
  }

  /** Puts the thing at `from` or above; true: above. */
  #up(thing: number, from: number): boolean {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const other = this.#heap[parent]!;
      if (!this.#isBefore(thing, other)) break;
      this.#set(other, place);
      place = parent;
    }
    this.#set(thing, place);
    return place < from;
  }

  /** Puts the thing at `from` or below. A machine that got something sinks: most of the work of matching is here. */
  #down(thing: number, from: number): void {
    const heap = this.#heap;
    const loads = this.#loads;
    const ownerOf = this.#ownerOf;
    const ties = this.#ties;
    const size = heap.length;
    const load = loads[ownerOf[thing]!]!;
    const tie = ties[thing]!;
    let place = from;
    for (let child = 2 * place + 1; child < size; child = 2 * place + 1) {
      let least = heap[child]!;
      let leastLoad = loads[ownerOf[least]!]!;
      if (child + 1 < size) {
        const right = heap[child + 1]!;
        const rightLoad = loads[ownerOf[right]!]!;
        if (rightLoad < leastLoad || (rightLoad === leastLoad && ties[right]! < ties[least]!)) {
          child++;
          least = right;
          leastLoad = rightLoad;
        }
      }
      if (leastLoad > load || (leastLoad === load && ties[least]! >= tie)) break;
      this.#set(least, place);
      place = child;
    }
    this.#set(thing, place);
  }

  #set(thing: number, place: number): void {
    this.#heap[place] = thing;
    this.#place[thing] = place;
  }
}

/** 0 to `count` - 1. */
export function numbersTo(count: number): Int32Array {
  const numbers = new Int32Array(count);
  for (let index = 0; index < count; index++) numbers[index] = index;
  return numbers;
}
