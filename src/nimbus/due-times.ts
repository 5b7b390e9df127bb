/** What is due when: one time for each key, and the next one of all at hand. Cost: O(log n) for each change. */
export class DueTimes {
  readonly #dueMs = new Map<string, number>();
  /** A binary heap, earliest first; entries that are not those of `#dueMs` any more are skipped. */
  readonly #heap: { readonly key: string; readonly dueMs: number }[] = [];

  set(key: string, dueMs: number): void {
    if (this.#dueMs.get(key) === dueMs) return;
    this.#dueMs.set(key, dueMs);
    this.#push({ key, dueMs });
  }

  delete(key: string): void {
    this.#dueMs.delete(key);
    if (this.#dueMs.size === 0) this.#heap.length = 0;
  }

  clear(): void {
    this.#dueMs.clear();
    this.#heap.length = 0;
  }

  /** When the next one is due. */
  get nextMs(): number | undefined {
    this.#dropOutdated();
    return this.#heap[0]?.dueMs;
  }

  /** Takes out whatever is due, earliest first. */
  takeDue(nowMs: number): readonly string[] {
    const due: string[] = [];
    for (;;) {
      this.#dropOutdated();
      const first = this.#heap[0];
      if (first === undefined || first.dueMs > nowMs) return due;
      due.push(first.key);
      this.#dueMs.delete(first.key);
    }
  }

  #dropOutdated(): void {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (this.#dueMs.get(first.key) === first.dueMs) return;
      this.#pop();
    }
  }

  #push(entry: { readonly key: string; readonly dueMs: number }): void {
    const heap = this.#heap;
    let place = heap.length;
    heap.push(entry);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (heap[parent]!.dueMs <= entry.dueMs) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.dueMs < heap[child]!.dueMs) child++;
      if (heap[child]!.dueMs >= last.dueMs) break;
      heap[place] = heap[child]!;
      place = child;
    }
    heap[place] = last;
  }
}
