/** A source that a test feeds by hand: pushes rows, pauses, fails at an exact row, ends. */
import {
  type EmitRow,
  type Fields,
  type NoNames,
  type Row,
  type RuntimeOut,
  type RuntimeSource,
  spout,
  type SpoutDefinition,
} from '../topology/index.js';

export class ControlledSource<E extends Fields> {
  /** The spout to put into a topology, by `b.spout` or as a replacement. All its tasks share one list of rows. */
  readonly definition: SpoutDefinition<E, NoNames>;
  readonly #rows: Row[] = [];
  readonly #acked: number[] = [];
  readonly #failed: { readonly row: Row; readonly reason: string }[] = [];
  readonly #faults = new Map<number, unknown>();
  #next = 0;
  #isPaused = false;
  #hasEnded = false;

  constructor(emits: E, options: { readonly replays?: boolean } = {}) {
    const replays = options.replays ?? true;
    // The parts are typed by `emits`, which is generic here; the source below is checked when rows are emitted.
    this.definition = spout({
      emits,
      open: () => this.#open(replays) as never,
    });
  }

  /** Rows to be emitted next, in this order. */
  push(...rows: readonly EmitRow<E>[]): this {
    for (const row of rows) this.#rows.push(row);
    return this;
  }

  /** There are no more rows: once all are emitted, the source has ended. */
  end(): this {
    this.#hasEnded = true;
    return this;
  }

  pause(): this {
    this.#isPaused = true;
    return this;
  }

  resume(): this {
    this.#isPaused = false;
    return this;
  }

  /** Instead of emitting its row `index` (from 0), the source throws once; then it goes on with that row. */
  failAt(index: number, error: unknown = new Error(`row ${index} cannot be read`)): this {
    this.#faults.set(index, error);
    return this;
  }

  /** Rows whose trees are complete, in the order of that. */
  get acked(): readonly Row[] {
    return this.#acked.map((index) => this.#rows[index]!);
  }

  /** Failures that the source was told of: only one that does not replay is. */
  get failed(): readonly { readonly row: Row; readonly reason: string }[] {
    return this.#failed;
  }

  /** Rows that were pushed and not emitted yet. */
  get waiting(): number {
    return this.#rows.length - this.#next;
  }

  #open(replays: boolean): RuntimeSource {
    return {
      next: (out) => this.#emitNext(out, replays),
      ack: (id) => this.#acked.push(id as number),
      // One with positions leaves its failures to the topology, which replays them.
      ...(replays
        ? {}
        : {
            fail: (id: unknown, reason: string) =>
              this.#failed.push({ row: this.#rows[id as number]!, reason }),
          }),
    };
  }

  #emitNext(out: unknown, replays: boolean): 'idle' | 'ended' | undefined {
    if (this.#isPaused) return 'idle';
    if (this.#next >= this.#rows.length) return this.#hasEnded ? 'ended' : 'idle';
    const index = this.#next;
    if (this.#faults.has(index)) {
      const error = this.#faults.get(index);
      this.#faults.delete(index);
      throw error;
    }
    this.#next++;
    // What `open` is given at run time is the typed `out` of the main stream.
    const { emit } = out as { emit: (row: Row, options: Parameters<RuntimeOut['emit']>[2]) => void };
    emit(this.#rows[index]!, { id: index, ...(replays ? { position: index + 1 } : {}) });
    return undefined;
  }
}

/**
 * A source for tests. `replays: false`: its rows have no position, so a failure is told to it and not replayed.
 *
 * @throws FIELD_NAME_ILLEGAL
 */
export function controlledSource<E extends Fields>(
  emits: E,
  options: { readonly replays?: boolean } = {},
): ControlledSource<E> {
  return new ControlledSource(emits, options);
}
