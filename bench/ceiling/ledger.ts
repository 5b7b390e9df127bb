/**
 * The at-least-once ledger of one spout, hand-written: a tree is a slot (sequence number modulo the limit of pending
 * trees) with the XOR of the ids that are out, in two 32-bit halves. A tree is complete when both are zero.
 *
 * The spout waits for the oldest slot, so a slot is never reused while its tree is out.
 */
import { bucketOf } from '../histogram.js';

export class Ledger {
  readonly #high: Int32Array;
  readonly #low: Int32Array;
  readonly #openedMs: Float64Array;
  readonly #mask: number;
  readonly #histogram: Int32Array;
  pending = 0;
  acked = 0;

  /** @param pendingLimit a power of two */
  constructor(pendingLimit: number, histogram: Int32Array) {
    this.#high = new Int32Array(pendingLimit);
    this.#low = new Int32Array(pendingLimit);
    this.#openedMs = new Float64Array(pendingLimit);
    this.#mask = pendingLimit - 1;
    this.#histogram = histogram;
  }

  isFree(sequence: number): boolean {
    const slot = sequence & this.#mask;
    return (this.#high[slot]! | this.#low[slot]!) === 0;
  }

  /** Opens a tree; `openedMs` 0: its latency is not measured. */
  open(sequence: number, high: number, low: number, openedMs: number): void {
    const slot = sequence & this.#mask;
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#openedMs[slot] = openedMs;
    this.pending++;
  }

  xor(sequence: number, high: number, low: number): void {
    const slot = sequence & this.#mask;
    const left = (this.#high[slot]! ^= high) | (this.#low[slot]! ^= low);
    if (left === 0) this.#complete(slot);
  }

  #complete(slot: number): void {
    this.pending--;
    this.acked++;
    const openedMs = this.#openedMs[slot]!;
    if (openedMs !== 0) this.#histogram[bucketOf(performance.now() - openedMs)]!++;
  }
}
