/** A binary heap of numbers, smallest first. Counts its moves, so that tests can assert how work grows. */
export class MinimumHeap {
  readonly #items: number[] = [];
  /** Elements moved or compared since the start. */
  steps = 0;

  push(value: number): void {
    const items = this.#items;
    let place = items.length;
    items.push(value);
    while (place > 0) {
      this.steps++;
      const parent = (place - 1) >> 1;
      if (items[parent]! <= value) break;
      items[place] = items[parent]!;
      place = parent;
    }
    items[place] = value;
  }

  pop(): number | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (top === undefined || last === undefined || items.length === 0) return top;
    let place = 0;
    for (;;) {
      this.steps++;
      let child = 2 * place + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && items[child + 1]! < items[child]!) child++;
      if (items[child]! >= last) break;
      items[place] = items[child]!;
      place = child;
    }
    items[place] = last;
    return top;
  }
}
