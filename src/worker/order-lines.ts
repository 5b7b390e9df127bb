/**
 * Keeps the rows of one asynchronous task in order by key: one row of a key is under way, later ones wait behind it.
 *
 * Starting the next row is left to the outermost call: many rows that are done within one call (they returned no promise,
 * or their promises settled together) would otherwise nest as deep as there are rows.
 */

/** A row that waits, with the tree that it belongs to. */
export interface WaitingRow {
  readonly rootTask: number;
  readonly rootSequence: number;
  /** Roots of a row with several anchors; null otherwise. */
  readonly several: Int32Array | null;
  start(): void;
}

interface Line {
  readonly rows: WaitingRow[];
  /** Rows before this place have started. */
  at: number;
}

/** Rows that have started are dropped from a line when they are as many. */
const COMPACT_ROWS = 1024;

export class OrderLines {
  readonly #lines = new Map<number, Line>();
  readonly #ready: WaitingRow[] = [];
  #isStarting = false;

  /** Starts a row at once if no other of its key is under way, or else after those before it. */
  enter(key: number, row: WaitingRow): void {
    const line = this.#lines.get(key);
    if (line !== undefined) {
      line.rows.push(row);
      return;
    }
    this.hold(key);
    row.start();
  }

  /** A row of this key is under way that did not come through `enter`. */
  hold(key: number): void {
    if (!this.#lines.has(key)) this.#lines.set(key, { rows: [], at: 0 });
  }

  /** The row of this key that was under way is done: starts the next. */
  leave(key: number): void {
    const line = this.#lines.get(key);
    if (line === undefined) return;
    const next = line.rows[line.at];
    if (next === undefined) {
      this.#lines.delete(key);
      return;
    }
    line.at++;
    if (line.at >= COMPACT_ROWS && line.at * 2 >= line.rows.length) {
      line.rows.splice(0, line.at);
      line.at = 0;
    }
    this.#start(next);
  }

  /** Visits every row that waits; `visit` returns true to stop. */
  some(visit: (row: WaitingRow) => boolean): boolean {
    for (const { rows, at } of this.#lines.values())
      for (let i = at; i < rows.length; i++) if (visit(rows[i]!)) return true;
    return false;
  }

  #start(row: WaitingRow): void {
    this.#ready.push(row);
    if (this.#isStarting) return;
    this.#isStarting = true;
    try {
      for (let next = this.#ready.shift(); next !== undefined; next = this.#ready.shift()) next.start();
    } finally {
      this.#isStarting = false;
    }
  }
}
