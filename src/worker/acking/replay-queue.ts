/**
 * Rows of one spout task that wait to be emitted again, oldest first. Those that must go alone go before the others, and while
 * one is out, nothing else of this task is (invariant S3 of spout-task.ts).
 */
export class ReplayQueue<R> {
  #rows: R[] = [];
  #next = 0;
  readonly #alone: R[] = [];
  #aloneIsOut = false;

  get size(): number {
    return this.#rows.length - this.#next + this.#alone.length;
  }

  add(row: R): void {
    this.#rows.push(row);
  }

  addAlone(row: R): void {
    this.#alone.push(row);
  }

  /** All that wait, as a list of its own. */
  rows(): R[] {
    return [...this.#alone, ...this.#rows.slice(this.#next)];
  }

  /**
   * The row to emit now; undefined: none waits; 'wait': a row is out alone, or waits to be.
   *
   * @param isCalm no tree of the task is pending
   * @param mayGoAlone asked once, when it is the turn of a row that must go alone
   */
  next(isCalm: boolean, mayGoAlone: () => boolean): R | 'wait' | undefined {
    if (this.#aloneIsOut) {
      if (!isCalm) return 'wait';
      this.#aloneIsOut = false;
    }
    if (this.#alone.length > 0) {
      if (!mayGoAlone()) return 'wait';
      this.#aloneIsOut = true;
      return this.#alone.shift();
    }
    if (this.#next === this.#rows.length) return undefined;
    const row = this.#rows[this.#next++]!;
    if (this.#next === this.#rows.length) {
      this.#rows = [];
      this.#next = 0;
    }
    return row;
  }
}
