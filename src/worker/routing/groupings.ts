/**
 * Chooses the receiving tasks of a row: one router per sending task and subscription. Routers speak of targets by index
 * (0…n-1 among the receiving component's tasks) and know nothing of threads; who is near is told to `setLocal`.
 *
 * Invariants
 * R1  `chosen[0 … route()-1]` are whole numbers in 0…n-1; with no targets nothing is chosen.
 * R2  Equal keys go to the same target from every sender (fields), or to the same two (partial key).
 * R3  A shuffle's counts over the targets in use differ by at most one while the set in use does not change.
 */
import { IsobarError, toIsobarError } from '../../base/index.js';
import type { CustomGrouping, FieldDescription, GroupingDescription, Row } from '../../topology/index.js';
import { compileSignedFieldHash } from './field-hash.js';

export interface Router {
  /**
   * Writes the chosen targets into `chosen` and returns how many there are.
   *
   * @param direct Index that the emitter named, for direct groupings only.
   * @throws IsobarError `DIRECT_EMIT_MISMATCH`, `CUSTOM_GROUPING_ILLEGAL`, or `USER_CODE_FAILED` from a custom grouping.
   */
  route(row: Row, direct: number | undefined): number;
  /** Read after `route`: a custom grouping that chooses more than ever before gets a longer array. */
  readonly chosen: Int32Array;
}

/** A router whose sender may prefer near targets. */
export interface LocalRouter extends Router {
  /**
   * The targets to keep to from now on; null or none: all of them. Only shuffles listen. The caller decides whether
   * keeping to near targets leaves the load even.
   */
  setLocal(localTargets: Int32Array | null): void;
}

export interface RouterOptions {
  readonly grouping: GroupingDescription;
  /** Fields of the stream. */
  readonly fields: readonly FieldDescription[];
  /** Number of receiving tasks. */
  readonly targetCount: number;
  /** Index of the sending task in its component: senders start their rounds at different targets. */
  readonly sourceIndex: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly custom?: CustomGrouping;
  /** Component and stream that rows come from, for messages. */
  readonly source: string;
  readonly stream: string;
}

/** Builds the router of one subscription for one sending task. */
export function createRouter(options: RouterOptions): LocalRouter {
  const { grouping, targetCount } = options;
  if (targetCount === 0) return new AllRouter(options);
  switch (grouping.kind) {
    case 'shuffle':
    case 'local-or-shuffle':
      return new ShuffleRouter(options);
    case 'fields':
      return new FieldsRouter(options, compileKey(options, grouping.fields));
    case 'partial-key':
      return new PartialKeyRouter(options, compileKey(options, grouping.fields));
    case 'all':
      return new AllRouter(options);
    case 'global':
      return new GlobalRouter(options);
    case 'none':
      return new RandomRouter(options);
    case 'direct':
      return new DirectRouter(options);
    case 'custom':
      return new CustomRouter(options);
  }
}

/** What routers have in common. */
abstract class BaseRouter implements LocalRouter {
  chosen: Int32Array;
  protected readonly targetCount: number;
  protected readonly options: RouterOptions;

  constructor(options: RouterOptions, capacity: number) {
    this.options = options;
    this.targetCount = options.targetCount;
    this.chosen = new Int32Array(capacity);
  }

  abstract route(row: Row, direct: number | undefined): number;

  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- the parameter is the shuffles'
  setLocal(_localTargets: Int32Array | null): void {
    // Where a row goes does not depend on who is near.
  }

  protected refuseDirect(direct: number): IsobarError {
    const { source, stream, grouping } = this.options;
    return new IsobarError(
      'DIRECT_EMIT_MISMATCH',
      `"${source}" named a task (${direct}) for stream "${stream}", which has a ${grouping.kind} subscriber`,
      {
        expected: 'emit without a task, or subscribers with a direct grouping only',
        found: `task index ${direct} for a ${grouping.kind} grouping`,
        where: `stream "${stream}" of "${source}"`,
      },
    );
  }
}

/** Strict round robin, over all targets or over the near ones. */
class ShuffleRouter extends BaseRouter {
  #targets: Int32Array;
  #at: number;

  constructor(options: RouterOptions) {
    super(options, 1);
    this.#targets = Int32Array.from({ length: options.targetCount }, (_, index) => index);
    this.#at = options.sourceIndex % options.targetCount;
  }

  route(_row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    const targets = this.#targets;
    let at = this.#at;
    this.chosen[0] = targets[at]!;
    if (++at === targets.length) at = 0;
    this.#at = at;
    return 1;
  }

  override setLocal(localTargets: Int32Array | null): void {
    const targets =
      localTargets === null || localTargets.length === 0
        ? Int32Array.from({ length: this.targetCount }, (_, index) => index)
        : localTargets.slice();
    if (targets.length === this.#targets.length && targets.every((target, i) => target === this.#targets[i]))
      return;
    this.#targets = targets;
    this.#at = this.options.sourceIndex % targets.length;
  }
}

/** One target per key. */
class FieldsRouter extends BaseRouter {
  readonly #hash: (row: Row) => number;

  constructor(options: RouterOptions, hash: (row: Row) => number) {
    super(options, 1);
    this.#hash = hash;
  }

  route(row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    this.chosen[0] = (this.#hash(row) >>> 0) % this.targetCount;
    return 1;
  }
}

/**
 * Two candidates per key; the one that this sender has used less (the first if even) gets the row.
 * Source: Nasir et al., "The Power of Both Choices", ICDE 2015.
 */
class PartialKeyRouter extends BaseRouter {
  readonly #hash: (row: Row) => number;
  /** Rows sent per target: doubles, since these counts never start again. */
  readonly #sent: Float64Array;

  constructor(options: RouterOptions, hash: (row: Row) => number) {
    super(options, 1);
    this.#hash = hash;
    this.#sent = new Float64Array(options.targetCount);
  }

  route(row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    const hash = this.#hash(row);
    const first = (hash >>> 0) % this.targetCount;
    let second = (rehash(hash) >>> 0) % this.targetCount;
    if (second === first) second = (first + 1) % this.targetCount;
    const target = this.#sent[second]! < this.#sent[first]! ? second : first;
    this.#sent[target]!++;
    this.chosen[0] = target;
    return 1;
  }
}

class AllRouter extends BaseRouter {
  constructor(options: RouterOptions) {
    super(options, options.targetCount);
    for (let target = 0; target < options.targetCount; target++) this.chosen[target] = target;
  }

  route(_row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    return this.targetCount;
  }
}

class GlobalRouter extends BaseRouter {
  constructor(options: RouterOptions) {
    super(options, 1);
  }

  route(_row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    return 1;
  }
}

/** A target by chance, each as likely as the others. */
class RandomRouter extends BaseRouter {
  constructor(options: RouterOptions) {
    super(options, 1);
  }

  route(_row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    this.chosen[0] = Math.floor(this.options.random() * this.targetCount);
    return 1;
  }
}

class DirectRouter extends BaseRouter {
  constructor(options: RouterOptions) {
    super(options, 1);
  }

  route(_row: Row, direct: number | undefined): number {
    const target = targetOf(direct, this.targetCount);
    if (target < 0) {
      const { source, stream } = this.options;
      throw new IsobarError(
        'DIRECT_EMIT_MISMATCH',
        `"${source}" emitted to the direct stream "${stream}" without a task that exists`,
        {
          expected: `the index of a receiving task, 0 to ${this.targetCount - 1}`,
          found: direct === undefined ? 'no task' : String(direct),
          where: `stream "${stream}" of "${source}"`,
        },
      );
    }
    this.chosen[0] = target;
    return 1;
  }
}

/** What user code chooses, checked. The same target twice means two rows, as in Storm. */
class CustomRouter extends BaseRouter {
  readonly #custom: CustomGrouping;

  constructor(options: RouterOptions) {
    super(options, options.targetCount);
    const { custom, source, stream } = options;
    if (custom === undefined) {
      throw new IsobarError(
        'INTERNAL',
        `the custom grouping of stream "${stream}" of "${source}" has no implementation`,
      );
    }
    this.#custom = custom;
    this.#call(() => {
      custom.prepare?.(source, stream, options.targetCount);
    });
  }

  route(row: Row, direct: number | undefined): number {
    if (direct !== undefined) throw this.refuseDirect(direct);
    const choice: unknown = this.#call(() => this.#custom.choose(row, this.targetCount));
    if (!Array.isArray(choice)) {
      const target = targetOf(choice, this.targetCount);
      if (target < 0) throw this.#illegal(choice);
      this.chosen[0] = target;
      return 1;
    }
    if (choice.length > this.chosen.length) this.chosen = new Int32Array(choice.length);
    for (let i = 0; i < choice.length; i++) {
      const target = targetOf(choice[i], this.targetCount);
      if (target < 0) throw this.#illegal(choice[i]);
      this.chosen[i] = target;
    }
    return choice.length;
  }

  #call<Result>(run: () => Result): Result {
    try {
      return run();
    } catch (error) {
      const { source, stream } = this.options;
      throw toIsobarError(error, 'USER_CODE_FAILED', {
        where: `custom grouping of stream "${stream}" of "${source}"`,
      });
    }
  }

  #illegal(found: unknown): IsobarError {
    const { source, stream } = this.options;
    const shown = typeof found === 'number' ? String(found) : found === null ? 'null' : typeof found;
    return new IsobarError(
      'CUSTOM_GROUPING_ILLEGAL',
      `the custom grouping of stream "${stream}" of "${source}" chose ${shown}, which is no receiving task`,
      {
        expected: `a whole number from 0 to ${this.targetCount - 1}, or an array of such`,
        found: shown,
        where: `stream "${stream}" of "${source}"`,
      },
    );
  }
}

/** The hash of the key fields, in the order in which the grouping names them. */
function compileKey(options: RouterOptions, names: readonly string[]): (row: Row) => number {
  return compileSignedFieldHash(
    names.map((name) => {
      const field = options.fields.find((candidate) => candidate.name === name);
      if (field === undefined) {
        throw new IsobarError(
          'FIELD_UNKNOWN',
          `stream "${options.stream}" of "${options.source}" has no field "${name}"`,
          {
            expected: `one of ${options.fields.map((known) => known.name).join(', ')}`,
            found: name,
            where: `grouping of stream "${options.stream}" of "${options.source}"`,
          },
        );
      }
      return field;
    }),
  );
}

/** A second hash, independent of the first in its remainders. */
function rehash(hash: number): number {
  let state = Math.imul(hash ^ 0x5bd1e995, 0x9e3779b1);
  state ^= state >>> 15;
  state = Math.imul(state, 0x846ca68b);
  return state ^ (state >>> 16);
}

/** The value if it is the index of a target, else -1. */
function targetOf(value: unknown, targetCount: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < targetCount
    ? value
    : -1;
}
