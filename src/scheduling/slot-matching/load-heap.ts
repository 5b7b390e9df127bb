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
  readonly #keys: LoadKeys;

  /** `places`: an array of -1, by thing, that heaps without common things may share. */
  constructor(keys: LoadKeys, places?: Int32Array) {
    this.#keys = keys;
    this.#place = places ?? new Int32Array(keys.ties.length).fill(-1);
  }

  get size(): number {
    return this.#heap.length;
  }

  /** The thing with the least load; -1: none. */
  get first(): number {
    return this.#heap[0] ?? -1;
  }

  add(thing: number): void {
    this.#heap.push(thing);
    this.#up(thing, this.#heap.length - 1);
  }

  /** To be called after one of its keys has changed. */
  changed(thing: number): void {
    const place = this.#place[thing]!;
    if (place < 0) return;
    this.#up(thing, place);
    this.#down(thing, this.#place[thing]!);
  }

  remove(thing: number): void {
    const place = this.#place[thing]!;
    if (place < 0) return;
    this.#place[thing] = -1;
    const last = this.#heap.pop()!;
    if (last === thing) return;
    this.#up(last, place);
    this.#down(last, this.#place[last]!);
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
    const { loads, ownerOf, ties } = this.#keys;
    const difference =
      ownerOf === undefined ? loads[a]! - loads[b]! : loads[ownerOf[a]!]! - loads[ownerOf[b]!]!;
    return difference === 0 ? ties[a]! < ties[b]! : difference < 0;
  }

  #up(thing: number, from: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const other = this.#heap[parent]!;
      if (!this.#isBefore(thing, other)) break;
      this.#set(other, place);
      place = parent;
    }
    this.#set(thing, place);
  }

  #down(thing: number, from: number): void {
    let place = from;
    const size = this.#heap.length;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#isBefore(this.#heap[child + 1]!, this.#heap[child]!)) child++;
      const other = this.#heap[child]!;
      if (!this.#isBefore(other, thing)) break;
      this.#set(other, place);
      place = child;
    }
    this.#set(thing, place);
  }

  #set(thing: number, place: number): void {
    this.#heap[place] = thing;
    this.#place[thing] = place;
  }
}
