/**
 * The router of one sending task and subscription, as the emit loop sees it.
 *
 * One class for all groupings: an emit walks over routers of several groupings, and with a class for each the call and
 * the read of `chosen` go through megamorphic caches (19 instead of 8 ns for a shuffle, 42 instead of 28 ns for a key
 * of one string). What is not worth a case of its own is a {@link Choose} function.
 *
 * Invariants
 * R1  `chosen[0 … route()-1]` are whole numbers in 0…n-1; with no targets nothing is chosen.
 * R2  Equal keys go to the same target from every sender (fields), or to the same two (partial key).
 * R3  A shuffle's counts over the targets in use differ by at most one while the set in use does not change.
 */
import { IsobarError } from '../../base/index.js';
import type { Row } from '../../topology/index.js';
import { hashKey } from './field-hash.js';

/** Chooses targets of a row into `router.chosen`; returns how many. */
export type Choose = (row: Row, direct: number | undefined, router: Router) => number;

export type Routing =
  /** Strict round robin over the targets in use. */
  | { readonly kind: 'round' }
  /** By the hash of one field. */
  | { readonly kind: 'key'; readonly read: (row: Row) => unknown }
  /** Every target. */
  | { readonly kind: 'every' }
  | { readonly kind: 'choose'; readonly choose: Choose; readonly takesDirect: boolean };

export interface RouterParts {
  readonly routing: Routing;
  readonly targetCount: number;
  /** Where the rounds start. */
  readonly sourceIndex: number;
  /** Grouping, stream and component, for messages. */
  readonly groupingKind: string;
  readonly source: string;
  readonly stream: string;
}

const ROUND = 0;
const KEY = 1;
const EVERY = 2;
const CHOOSE = 3;
const CODES = { round: ROUND, key: KEY, every: EVERY, choose: CHOOSE } as const;

export class Router {
  /** The targets chosen by the last `route`. Read it after the call: it may have been replaced by a longer one. */
  chosen: Int32Array;
  readonly #code: (typeof CODES)[keyof typeof CODES];
  readonly #targetCount: number;
  readonly #read: (row: Row) => unknown;
  readonly #choose: Choose;
  readonly #takesDirect: boolean;
  readonly #parts: RouterParts;
  /** Targets in use, and the next one's place: of rounds only. */
  #targets: Int32Array;
  #at = 0;

  constructor(parts: RouterParts) {
    const { routing, targetCount } = parts;
    this.#parts = parts;
    this.#targetCount = targetCount;
    this.#code = CODES[routing.kind];
    this.#read = routing.kind === 'key' ? routing.read : () => null;
    this.#choose = routing.kind === 'choose' ? routing.choose : () => 0;
    this.#takesDirect = routing.kind === 'choose' && routing.takesDirect;
    this.chosen = routing.kind === 'every' ? allTargets(targetCount) : new Int32Array(1);
    this.#targets = allTargets(targetCount);
    if (targetCount > 0) this.#at = parts.sourceIndex % targetCount;
  }

  /**
   * Writes the chosen targets into `chosen` and returns how many there are.
   *
   * @param direct Index that the emitter named, for direct groupings only.
   * @throws IsobarError `DIRECT_EMIT_MISMATCH`, `CUSTOM_GROUPING_ILLEGAL`, or `USER_CODE_FAILED` from a custom grouping.
   */
  route(row: Row, direct: number | undefined): number {
    if (direct !== undefined && !this.#takesDirect) throw this.#refuseDirect(direct);
    switch (this.#code) {
      case ROUND: {
        const targets = this.#targets;
        let at = this.#at;
        this.chosen[0] = targets[at]!;
        if (++at === targets.length) at = 0;
        this.#at = at;
        return 1;
      }
      case KEY:
        this.chosen[0] = (hashKey(this.#read(row)) >>> 0) % this.#targetCount;
        return 1;
      case EVERY:
        return this.#targetCount;
      case CHOOSE:
        return this.#choose(row, direct, this);
    }
  }

  /**
   * The targets to keep to from now on, not changed any more by the caller; null or none: all of them. Only shuffles listen. The
   * caller decides whether keeping to near targets leaves the load even.
   */
  setLocal(localTargets: Int32Array | null): void {
    const isAll = localTargets === null || localTargets.length === 0;
    const targets = isAll ? allTargets(this.#targetCount) : localTargets;
    const current = this.#targets;
    if (targets === current) return;
    if (targets.length === current.length && targets.every((target, i) => target === current[i])) return;
    this.#targets = targets;
    this.#at = this.#parts.sourceIndex % targets.length;
  }

  #refuseDirect(direct: number): IsobarError {
    const { source, stream, groupingKind } = this.#parts;
    return new IsobarError(
      'DIRECT_EMIT_MISMATCH',
      `"${source}" named a task (${direct}) for stream "${stream}", which has a ${groupingKind} subscriber`,
      {
        expected: 'emit without a task, or subscribers with a direct grouping only',
        found: `task index ${direct} for a ${groupingKind} grouping`,
        where: `stream "${stream}" of "${source}"`,
      },
    );
  }
}

const allByCount = new Map<number, WeakRef<Int32Array>>();

/** 0 … count-1, one list for all routers: thousands of senders may have thousands of receivers. Nobody writes into it. */
function allTargets(count: number): Int32Array {
  const known = allByCount.get(count)?.deref();
  if (known !== undefined) return known;
  const targets = Int32Array.from({ length: count }, (_, index) => index);
  allByCount.set(count, new WeakRef(targets));
  return targets;
}
