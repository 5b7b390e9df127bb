/** `spout(…)`: sources of rows, in generator style (`read`) and in low-level style (`open`). */
import { IsobarError } from '../base/index.js';
import { COMPONENT, Inspection, isPromiseLike, isRecord, type Definition } from './definition.js';
import { DEFAULT_STREAM } from './description.js';
import { show, throwFaults } from './faults.js';
import type { EmitRow, Fields, FieldsByName, NoNames } from './fields.js';
import { createOutBinder, type Out } from './out.js';
import type { RuntimeSource, RuntimeSpout, SourceRow, TaskContext } from './runtime.js';

declare const TYPES: unique symbol;

/** A spout without an id; give it one with `b.spout(id, definition)`. */
export interface SpoutDefinition<E extends Fields | undefined, S extends FieldsByName>
  extends Definition<RuntimeSpout> {
  /** Exists for the compiler only. */
  readonly [TYPES]?: () => readonly [E, S];
}

interface Positioned<P> {
  /** Where reading goes on *after* this row: plain data. A row that has one is replayed until it is acked. */
  readonly position?: P | undefined;
}

interface Lagging {
  /** Rows that the source has yet to give behind this one, if it knows; shown as its lag. */
  readonly lag?: number | undefined;
}

/** What `read` yields: a row of the main stream, or of the stream that it names. */
export type SpoutItem<E, S, P> =
  | ([E] extends [Fields]
      ? Positioned<P> &
          Lagging & { readonly row: EmitRow<E>; readonly stream?: typeof DEFAULT_STREAM | undefined }
      : never)
  | {
      [N in keyof S]: Positioned<P> & Lagging & { readonly row: EmitRow<S[N]>; readonly stream: N };
    }[keyof S];

type SpoutItems<E, S, P> = SpoutItem<E, S, P> | readonly SpoutItem<E, S, P>[];

export interface SpoutEmitOptions<P> extends Positioned<P> {
  /** Handed back to `ack` or `fail`. */
  readonly id?: unknown;
}

/** The source that `open` returns. All its methods are called on one thread, never two at a time. */
export interface SpoutSource<E, S, P> {
  /**
   * Called again and again, whenever rows may be sent: emits what there is (a bounded number of rows, without blocking)
   * and returns. `'idle'`: nothing now, ask again in a moment (1 ms at first, and later each time up to
   * `spout.idle-backoff-max`; soon again after an `ack` or a `fail`). `'ended'`: there will never be more; not called again.
   * While a returned promise is pending, `next` is not called again and `out` stays valid.
   */
  next(out: Out<E, S, SpoutEmitOptions<P>>): SpoutAnswer | Promise<SpoutAnswer>;
  /**
   * How many rows the source has yet to give, if it knows. Asked a few times a second, for people and metrics: answer from
   * what you know already, and do not wait.
   */
  lag?(): number | undefined;
  /**
   * The tree of the row emitted with this id is complete. Not called for rows without an id. A returned promise is not
   * waited for; its rejection is reported.
   */
  ack?(id: unknown): unknown;
  /** The tree failed; a row without a position is gone unless you emit it again. */
  fail?(id: unknown, reason: string): unknown;
  /** Called before the first `next`, and when the topology reads again after it was deactivated. */
  activate?(): unknown;
  /** The topology has been deactivated, or will be rebalanced, drained or killed: `next` is not called until `activate`. */
  deactivate?(): unknown;
  /** The last call. */
  close?(): unknown;
}

export type SpoutAnswer = 'ended' | 'idle' | void;

/** The parts of a spout. */
export type SpoutParts<E, S, P> = {
  /** Fields of the main stream. */
  readonly emits?: E;
  /** Fields of further streams, by name. */
  readonly streams?: S;
  /** Every row has a position, so tasks may be moved: reading goes on elsewhere behind the stored position. */
  readonly movable?: boolean;
} & (
  | {
      readonly open?: undefined;
      read(
        context: TaskContext,
        from: P | undefined,
      ):
        | Iterable<SpoutItems<E, S, P>, unknown, undefined>
        | AsyncIterable<SpoutItems<E, S, P>, unknown, undefined>;
    }
  | {
      readonly read?: undefined;
      open(context: TaskContext, from: P | undefined): SpoutSource<E, S, P> | Promise<SpoutSource<E, S, P>>;
    }
);

/**
 * Defines a spout.
 *
 * **`read(context, from)`** — called once at the start of each task, on its executor thread. It returns what can be
 * iterated; mostly it is a generator, plain or `async`. Rows are asked for only when they can be sent, so there is no
 * need to slow down. Yield `{ row, position?, stream?, lag? }` or an array of them; arrays are fast, as are plain generators.
 * The iteration's end is the end of this task's rows: when all spouts have ended, the topology ends. A throw is reported,
 * and after a pause `read` is called again behind the last row it gave. When the task stops, the generator's `return` is
 * called, so `finally` runs; `context.signal` is aborted for what waits inside.
 *
 * **`position`** says where reading goes on after a row. All rows up to the stored position have been acked; after a
 * restart or a move, `read` and `open` get it as `from` (undefined: from the start). Rows with a position are kept and
 * replayed by Isobar. Positions are numbers unless `from` is annotated with another type of plain data.
 *
 * **`open(context, from)`** — the low-level style: called once, may return a promise; then `next(out)` for ever, with
 * `ack` and `fail` between its calls; `close` last. See {@link SpoutSource}.
 *
 * **How long a call may run:** each step of a plain generator, and `next`, hold up the other executors of the thread: stay
 * in the order of a millisecond, or be asynchronous. Waiting in a promise holds up nobody.
 *
 * @throws DEFINITION_ILLEGAL, FIELD_NAME_ILLEGAL or STREAM_ID_ILLEGAL, with every fault in `details.faults`
 */
export function spout<E extends Fields | undefined = undefined, S extends FieldsByName = NoNames, P = number>(
  parts: SpoutParts<E, S, P>,
): SpoutDefinition<E, S> {
  return defineSpout(parts);
}

const PARTS = ['emits', 'streams', 'movable', 'read', 'open'];

type Read = NonNullable<RuntimeSpout['read']>;
type Open = (context: TaskContext, from: unknown) => unknown;

function defineSpout(definition: unknown): Definition<RuntimeSpout> {
  const inspection = new Inspection('spout({ … })');
  const parts = inspection.parts(definition, PARTS);
  const streams = inspection.streams(parts);
  if (streams.length === 0) inspection.illegal('the spout has no stream', 'emits or streams', undefined);
  const [read, open] = [parts.get('read'), parts.get('open')];
  inspection.optionalFunction(read, 'read');
  inspection.optionalFunction(open, 'open');
  if ((read === undefined) === (open === undefined)) {
    inspection.illegal(
      read === undefined ? 'the spout has neither read nor open' : 'the spout has read and open',
      'exactly one of read and open',
      read === undefined ? 'neither' : 'both',
    );
  }
  const movable = inspection.flag(parts, 'movable');
  throwFaults(inspection.faults);
  return Object.freeze({
    [COMPONENT]: 1 as const,
    shape: {
      kind: 'spout',
      streams,
      inputs: [],
      stateful: false,
      movable,
      tickMs: null,
      manual: false,
      unordered: false,
    } as const,
    runtime:
      read === undefined
        ? {
            kind: 'spout' as const,
            open: openSource(
              definition,
              open as Open,
              streams.map(({ name }) => name),
            ),
          }
        : { kind: 'spout' as const, read: readRows(definition, read as Read) },
  });
}

function readRows(owner: unknown, read: Read): Read {
  return (context, from) => {
    const rows: unknown = read.call(owner, context, from);
    if (
      typeof rows === 'object' &&
      rows !== null &&
      (Symbol.iterator in rows || Symbol.asyncIterator in rows)
    ) {
      return rows as Iterable<SourceRow>;
    }
    throw new IsobarError(
      'DEFINITION_ILLEGAL',
      `read of "${context.component}" returned nothing that can be iterated`,
      {
        expected: 'a generator or another iterable',
        found: isPromiseLike(rows) ? 'a promise; is it an async function without the *?' : show(rows),
        where: `spout "${context.component}", read`,
      },
    );
  };
}

function openSource(
  owner: unknown,
  open: Open,
  streams: readonly string[],
): NonNullable<RuntimeSpout['open']> {
  return (context, from) => {
    const opened = open.call(owner, context, from);
    return isPromiseLike(opened)
      ? Promise.resolve(opened).then((source) => bindSource(source, context, streams))
      : bindSource(opened, context, streams);
  };
}

function bindSource(source: unknown, context: TaskContext, streams: readonly string[]): RuntimeSource {
  const where = `spout "${context.component}", what open returned`;
  const method = (name: string): ((...values: unknown[]) => unknown) | undefined => {
    const value = isRecord(source) ? source[name] : undefined;
    if (value === undefined && name !== 'next') return undefined;
    if (typeof value === 'function') return (...values) => value.call(source, ...values) as unknown;
    throw new IsobarError(
      'DEFINITION_ILLEGAL',
      `the source of "${context.component}" has no function ${name}`,
      {
        expected: `an object with a function ${name}`,
        found: isRecord(source) ? show(value) : show(source),
        where,
      },
    );
  };
  const bindOut = createOutBinder(streams.filter((name) => name !== DEFAULT_STREAM));
  const next = method('next')!; // `next` is there, or method() has thrown
  const [ack, fail, close] = [method('ack'), method('fail'), method('close')];
  const [activate, deactivate] = [method('activate'), method('deactivate')];
  const lag = method('lag');
  return {
    next: (out) => next(bindOut(out)),
    ...(ack === undefined ? {} : { ack: (id) => ack(id) }),
    ...(fail === undefined ? {} : { fail: (id, reason) => fail(id, reason) }),
    ...(activate === undefined ? {} : { activate: () => activate() }),
    ...(deactivate === undefined ? {} : { deactivate: () => deactivate() }),
    ...(close === undefined ? {} : { close: () => close() }),
    ...(lag === undefined ? {} : { lag: () => lag() }),
  };
}
