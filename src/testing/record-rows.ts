/** Keeps what the components of a topology emit, in order. */
import {
  type EmitOptions,
  type Row,
  type RuntimeOut,
  type RuntimeSource,
  type RuntimeSpout,
  type SourceRow,
  isPromiseLike,
} from '../topology/index.js';

/** Called for each row that a component emits, once: replays are not told again. */
export type OnEmit = (stream: string, row: Row) => void;

export function recordedSpout(spout: RuntimeSpout, onEmit: OnEmit): RuntimeSpout {
  const { read, open } = spout;
  if (read !== undefined)
    return { kind: 'spout', read: (context, from) => recordedItems(read(context, from), onEmit) };
  const wrap = recorder(onEmit);
  const wrapSource = (source: RuntimeSource): RuntimeSource => ({
    next: (out) => source.next(wrap(out)),
    ack: (id) => source.ack?.(id),
    ...(source.fail === undefined ? {} : { fail: (id, reason) => source.fail?.(id, reason) }),
    activate: () => source.activate?.(),
    deactivate: () => source.deactivate?.(),
    close: () => source.close?.(),
  });
  return {
    kind: 'spout',
    open(context, from) {
      const opened = open!(context, from);
      return isPromiseLike(opened) ? Promise.resolve(opened).then(wrapSource) : wrapSource(opened);
    },
  };
}

type Items = ReturnType<NonNullable<RuntimeSpout['read']>>;

function recordedItems(items: Items, onEmit: OnEmit): Items {
  const note = (item: SourceRow | readonly SourceRow[]): void => {
    const list = Array.isArray(item) ? (item as readonly SourceRow[]) : [item as SourceRow];
    for (const { stream = 'default', row } of list) onEmit(stream, row);
  };
  return Symbol.asyncIterator in items ? notedLater(items, note) : noted(items, note);
}

function* noted<T>(items: Iterable<T>, note: (item: T) => void): Generator<T> {
  for (const item of items) {
    note(item);
    yield item;
  }
}

async function* notedLater<T>(items: AsyncIterable<T>, note: (item: T) => void): AsyncGenerator<T> {
  for await (const item of items) {
    note(item);
    yield item;
  }
}

/** Collectors that tell of what is emitted; the same collector gives the same wrapper, as typed `out`s are found by it. */
export function recorder(onEmit: OnEmit): (out: RuntimeOut) => RuntimeOut {
  const wrapped = new WeakMap<RuntimeOut, RuntimeOut>();
  return (out) => {
    const known = wrapped.get(out);
    if (known !== undefined) return known;
    const recording: RuntimeOut = {
      emit(stream: string, row: Row, options?: EmitOptions, direct?: number) {
        // Afterwards: a row that is refused has not been emitted.
        out.emit(stream, row, options, direct);
        onEmit(stream, row);
      },
    };
    wrapped.set(out, recording);
    return recording;
  };
}
