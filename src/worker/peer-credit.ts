/**
 * What peers have under way to one executor thread of this worker, counted as credit is: rows that were passed on, less what
 * the thread has granted for them since. Senders count for themselves (link.ts); this finds one that does not, before its rows
 * fill the memory of a thread that does not get to them. Used by the main thread, once a frame.
 */
import {
  CREDIT_WORDS,
  H_BLOB_BYTES,
  H_COUNT,
  HEADER_WORDS,
  R_BLOB_BYTES,
  ROW_WORDS,
} from '../messaging/index.js';
import { rowCost } from './link.js';

/** Bytes from which a row costs more than one. */
const COSTLY_BYTES = 4096;

/**
 * How much an honest sender may have under way: its credit with every class, and the row that used up the last of it.
 * Twice, since what it had sent in a session that broke may still be here when it begins anew.
 */
export function mostUnderWay(creditClasses: number, credit: number, maxRowBytes: number): number {
  return 2 * creditClasses * (credit + rowCost(maxRowBytes));
}

export class PeerCredit {
  /** By endpoint id. */
  readonly #underWay = new Map<number, number>();

  /** A DATA frame is passed on. Returns what its sender has under way now. */
  take(endpoint: number, words: Int32Array, at: number): number {
    const underWay = (this.#underWay.get(endpoint) ?? 0) + costOfRows(words, at);
    this.#underWay.set(endpoint, underWay);
    return underWay;
  }

  /** The thread has granted what this CREDIT frame says. */
  giveBack(endpoint: number, words: Int32Array, at: number): void {
    let underWay = this.#underWay.get(endpoint);
    if (underWay === undefined) return;
    const first = at + HEADER_WORDS;
    for (let i = 0; i < words[at + H_COUNT]!; i++) underWay -= words[first + i * CREDIT_WORDS + 1]!;
    this.#underWay.set(endpoint, Math.max(0, underWay));
  }
}

function costOfRows(words: Int32Array, at: number): number {
  const count = words[at + H_COUNT]!;
  if (words[at + H_BLOB_BYTES]! < COSTLY_BYTES) return count;
  let cost = 0;
  let row = at + HEADER_WORDS + R_BLOB_BYTES;
  for (let i = 0; i < count; i++, row += ROW_WORDS) cost += rowCost(words[row]!);
  return cost;
}
