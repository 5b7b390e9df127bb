/**
 * Builds the router of a subscription from its grouping. Routers speak of targets by index (0…n-1 among the receiving
 * component's tasks) and know nothing of threads; who is near is told to `setLocal`.
 */
import { IsobarError, toIsobarError } from '../../base/index.js';
import type { CustomGrouping, FieldDescription, GroupingDescription } from '../../topology/index.js';
import { compileReader, compileSignedFieldHash } from './field-hash.js';
import { Router, type Choose, type Routing } from './router.js';

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
  /** Runs code of a custom grouping; default: as it is. */
  readonly inGrouping?: <T>(run: () => T) => T;
  /** Component and stream that rows come from, for messages. */
  readonly source: string;
  readonly stream: string;
}

/** Builds the router of one subscription for one sending task. */
export function createRouter(options: RouterOptions): Router {
  const { grouping, targetCount, sourceIndex, source, stream } = options;
  const routing: Routing = targetCount === 0 ? { kind: 'every' } : routingOf(options);
  return new Router({ routing, targetCount, sourceIndex, groupingKind: grouping.kind, source, stream });
}

function routingOf(options: RouterOptions): Routing {
  const { grouping } = options;
  switch (grouping.kind) {
    case 'shuffle':
    case 'local-or-shuffle':
      return { kind: 'round' };
    case 'fields': {
      const [only, ...more] = keyFields(options, grouping.fields);
      if (only !== undefined && more.length === 0) return { kind: 'key', read: compileReader(only.name) };
      return choosing(byKey(options, grouping.fields));
    }
    case 'partial-key':
      return choosing(byTwoKeys(options, grouping.fields));
    case 'all':
      return { kind: 'every' };
    case 'global':
      return choosing((_row, _direct, router) => one(router, 0));
    case 'none':
      return choosing((_row, _direct, router) =>
        one(router, Math.floor(options.random() * options.targetCount)),
      );
    case 'direct':
      return { kind: 'choose', choose: byName(options), takesDirect: true };
    case 'custom':
      return choosing(byUser(options));
  }
}

function choosing(choose: Choose): Routing {
  return { kind: 'choose', choose, takesDirect: false };
}

function one(router: Router, target: number): number {
  router.chosen[0] = target;
  return 1;
}

/** One target per key of several fields. */
function byKey(options: RouterOptions, names: readonly string[]): Choose {
  const { targetCount } = options;
  const hash = compileSignedFieldHash(keyFields(options, names));
  return (row, _direct, router) => one(router, (hash(row) >>> 0) % targetCount);
}

/**
 * Two candidates per key; the one that this sender has used less (the first if even) gets the row.
 * Source: Nasir et al., "The Power of Both Choices", ICDE 2015.
 */
function byTwoKeys(options: RouterOptions, names: readonly string[]): Choose {
  const { targetCount } = options;
  const hashOf = compileSignedFieldHash(keyFields(options, names));
  // Doubles, since these counts never start again.
  const sent = new Float64Array(targetCount);
  return (row, _direct, router) => {
    const hash = hashOf(row);
    const first = (hash >>> 0) % targetCount;
    let second = (rehash(hash) >>> 0) % targetCount;
    if (second === first) second = (first + 1) % targetCount;
    const target = sent[second]! < sent[first]! ? second : first;
    sent[target]!++;
    return one(router, target);
  };
}

/** The target that the emitter names. */
function byName(options: RouterOptions): Choose {
  const { source, stream, targetCount } = options;
  return (_row, direct, router) => {
    const target = targetOf(direct, targetCount);
    if (target >= 0) return one(router, target);
    throw new IsobarError(
      'DIRECT_EMIT_MISMATCH',
      `"${source}" emitted to the direct stream "${stream}" without a task that exists`,
      {
        expected: `the index of a receiving task, 0 to ${targetCount - 1}`,
        found: direct === undefined ? 'no task' : String(direct),
        where: `stream "${stream}" of "${source}"`,
      },
    );
  };
}

/** What user code chooses, checked. The same target twice means two rows, as in Storm. */
function byUser(options: RouterOptions): Choose {
  const { custom, source, stream, targetCount, inGrouping = runAsIs } = options;
  const where = `custom grouping of stream "${stream}" of "${source}"`;
  if (custom === undefined) throw new IsobarError('INTERNAL', `the ${where} has no implementation`);
  const check = (value: unknown): number => {
    const target = targetOf(value, targetCount);
    if (target >= 0) return target;
    const found = typeof value === 'number' ? String(value) : value === null ? 'null' : typeof value;
    throw new IsobarError(
      'CUSTOM_GROUPING_ILLEGAL',
      `the ${where} chose ${found}, which is no receiving task`,
      {
        expected: `a whole number from 0 to ${targetCount - 1}, or an array of such`,
        found,
        where,
      },
    );
  };
  asUserCode(where, () => inGrouping(() => custom.prepare?.(source, stream, targetCount)));
  return (row, _direct, router) => {
    const choice: unknown = asUserCode(where, () => inGrouping(() => custom.choose(row, targetCount)));
    if (!Array.isArray(choice)) return one(router, check(choice));
    if (choice.length > router.chosen.length) router.chosen = new Int32Array(choice.length);
    for (let i = 0; i < choice.length; i++) router.chosen[i] = check(choice[i]);
    return choice.length;
  };
}

function runAsIs<Result>(run: () => Result): Result {
  return run();
}

function asUserCode<Result>(where: string, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw toIsobarError(error, 'USER_CODE_FAILED', { where });
  }
}

/** The key's fields in the order in which the grouping names them. */
function keyFields(options: RouterOptions, names: readonly string[]): FieldDescription[] {
  return names.map((name) => {
    const field = options.fields.find((candidate) => candidate.name === name);
    if (field !== undefined) return field;
    throw new IsobarError(
      'FIELD_UNKNOWN',
      `stream "${options.stream}" of "${options.source}" has no field "${name}"`,
      {
        expected: `one of ${options.fields.map((known) => known.name).join(', ')}`,
        found: name,
        where: `grouping of stream "${options.stream}" of "${options.source}"`,
      },
    );
  });
}

/** A second hash whose remainders do not follow from those of the first. */
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
