import { describe, expect, it } from 'vitest';
import { compileSettings, silentLogger, VirtualClock, type IsobarError } from '../base/index.js';
import { bolt, spout, t } from './index.js';
import type { Anchor, BoltTask, EmitOptions, Row, RuntimeOut, RuntimeSource, TaskContext } from './index.js';

const context: TaskContext = {
  topology: 'topology',
  component: 'component',
  task: 3,
  index: 0,
  count: 1,
  generation: 1,
  settings: compileSettings(),
  logger: silentLogger,
  metrics: { count: () => undefined },
  clock: new VirtualClock(),
  signal: new AbortController().signal,
};

type Emitted = readonly [
  stream: string,
  row: Row,
  options: EmitOptions | undefined,
  direct: number | undefined,
];

/** Remembers what was emitted, as the worker would get it. */
class RecordingOut implements RuntimeOut {
  readonly emitted: Emitted[] = [];

  emit(stream: string, row: Row, options?: EmitOptions, direct?: number): void {
    this.emitted.push([stream, row, options, direct]);
  }
}

const work = (): void => undefined;

async function failureOf(run: () => unknown): Promise<IsobarError> {
  try {
    await run();
  } catch (error) {
    return error as IsobarError;
  }
  throw new Error('nothing was thrown');
}

const create = (
  definition: { runtime: { create(context: TaskContext, saved: unknown): unknown } },
  saved?: unknown,
) => definition.runtime.create(context, saved) as BoltTask; // the definitions below prepare at once

describe('a bolt at work', () => {
  it('hands rows to process and emits to the declared streams', () => {
    const task = create(
      bolt({
        takes: { word: t.string },
        emits: { word: t.string },
        streams: { toString: { word: t.string } },
        process({ word }, { emit, direct, to, directTo }) {
          emit({ word });
          direct(2, { word });
          to.toString({ word });
          directTo.toString(3, { word });
          return 'kept';
        },
      }),
    );
    const out = new RecordingOut();
    const row = { word: 'a' };
    expect(task.process['default']!(row, out)).toBe('kept');
    expect(out.emitted).toEqual([
      ['default', row, undefined, undefined],
      ['default', row, undefined, 2],
      ['toString', row, undefined, undefined],
      ['toString', row, undefined, 3],
    ]);
  });

  it('gives the same out as long as the worker’s is the same, and another for another', () => {
    const seen: unknown[] = [];
    const task = create(
      bolt({
        takes: {},
        every: 10,
        process: (_row, out) => seen.push(out),
        tick: (out) => seen.push(out),
        end: (out) => seen.push(out),
      }),
    );
    const [first, second] = [new RecordingOut(), new RecordingOut()];
    task.process['default']!({}, first);
    task.tick!(first);
    task.end!(first);
    task.process['default']!({}, second);
    expect(new Set(seen.slice(0, 3)).size).toBe(1);
    expect(seen[3]).not.toBe(seen[0]);
  });

  it('keeps outs of tasks apart that are made by one definition', () => {
    const definition = bolt({
      takes: {},
      emits: { a: t.int32 },
      process: (_row, out) => {
        out.emit({ a: 1 });
      },
    });
    const [one, two] = [create(definition), create(definition)];
    const [first, second] = [new RecordingOut(), new RecordingOut()];
    one.process['default']!({}, first);
    two.process['default']!({}, second);
    one.process['default']!({}, first);
    expect([first.emitted.length, second.emitted.length]).toEqual([2, 1]);
  });

  it('gives prepare what save gave, and calls methods on the object they belong to', async () => {
    class Counter {
      readonly #counts: Map<string, number>;
      isClosed = false;

      constructor(saved: Map<string, number> | undefined) {
        this.#counts = new Map(saved);
      }

      process({ word }: { readonly word: string }): void {
        this.#counts.set(word, (this.#counts.get(word) ?? 0) + 1);
      }

      save(): Map<string, number> {
        return this.#counts;
      }

      close(): void {
        this.isClosed = true;
      }
    }
    const made: Counter[] = [];
    const definition = bolt({
      takes: { word: t.string },
      prepare: async (_context, saved?: Map<string, number>) => {
        const counter = new Counter(saved);
        made.push(counter);
        return counter;
      },
    });
    expect(definition.shape.stateful).toBe(true);
    const first = await definition.runtime.create(context, undefined);
    first.process['default']!({ word: 'a' }, new RecordingOut());
    const second = await definition.runtime.create(context, first.save!());
    second.process['default']!({ word: 'a' }, new RecordingOut());
    expect(second.save!()).toEqual(new Map([['a', 2]]));
    expect([first.tick, first.end]).toEqual([undefined, undefined]);
    await first.close!();
    expect(made.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  });

  it('has one function per named input', () => {
    const task = create(
      bolt({
        inputs: { left: { a: t.int32 }, right: { a: t.int32 } },
        emits: { side: t.string },
        process: {
          left(_row, out) {
            out.emit({ side: 'left' });
          },
          right(_row, out) {
            out.emit({ side: 'right' });
          },
        },
      }),
    );
    const out = new RecordingOut();
    task.process['right']!({ a: 1 }, out);
    task.process['left']!({ a: 1 }, out);
    expect(out.emitted.map(([, row]) => row)).toEqual([{ side: 'right' }, { side: 'left' }]);
  });

  it('passes anchors through in a manual bolt', () => {
    const definition = bolt({
      takes: { a: t.int32 },
      emits: { a: t.int32 },
      manual: true,
      process(row, out, anchor) {
        out.emit(row, { anchors: [anchor] });
        anchor.fail('reason');
      },
    });
    expect(definition.shape.manual).toBe(true);
    const failures: unknown[] = [];
    const anchor: Anchor = { ack: () => undefined, fail: (error) => failures.push(error) };
    const out = new RecordingOut();
    create(definition).process['default']!({ a: 1 }, out, anchor);
    expect(out.emitted).toEqual([['default', { a: 1 }, { anchors: [anchor] }, undefined]]);
    expect(failures).toEqual(['reason']);
  });

  it.each([
    ['nothing', undefined],
    ['no process', {}],
    ['process of another type', { process: 7 }],
    ['tick without every', { process: work, tick: work }],
    ['save that is no function', { process: work, save: new Map() }],
  ])('refuses %s as what prepare returned', async (_what, prepared) => {
    const definition = bolt({ takes: {}, prepare: () => prepared as { process: () => void } });
    const failure = await failureOf(() => definition.runtime.create(context, undefined));
    expect(failure.code).toBe('DEFINITION_ILLEGAL');
    expect(failure.details.where).toBe('bolt "component", what prepare returned');
  });

  it('refuses every without tick, and handlers that are not those of the inputs, also from a promise', async () => {
    const ticking = bolt({ takes: {}, every: '1s', prepare: async () => ({ process: () => undefined }) });
    expect((await failureOf(() => ticking.runtime.create(context, undefined))).message).toContain('no tick');
    const joining = bolt({
      inputs: { a: {}, b: {} },
      prepare: () => ({ process: { a: () => undefined, c: () => undefined } as never }),
    });
    const failure = await failureOf(() => joining.runtime.create(context, undefined));
    expect(failure.details['faults']).toHaveLength(2);
  });
});

describe('a spout at work', () => {
  it('hands on what read gives, with its context and position', () => {
    const definition = spout({
      emits: { a: t.int32 },
      *read({ task }, from) {
        yield { row: { a: task }, position: (from ?? 0) + 1 };
      },
    });
    const rows = [...(definition.runtime.read!(context, 41) as Iterable<unknown>)];
    expect(rows).toEqual([{ row: { a: 3 }, position: 42 }]);
    expect(definition.runtime.open).toBeUndefined();
  });

  it.each([
    ['nothing', undefined, 'undefined'],
    ['a promise', Promise.resolve([]), 'a promise; is it an async function without the *?'],
  ])('refuses %s as what read returned', async (_what, returned, found) => {
    const definition = spout({ emits: { a: t.int32 }, read: () => returned as never });
    const failure = await failureOf(() => definition.runtime.read!(context, undefined));
    expect([failure.code, failure.details.found]).toEqual(['DEFINITION_ILLEGAL', found]);
  });

  it('binds a low-level source to out, ids and positions', async () => {
    const calls: unknown[] = [];
    const definition = spout({
      emits: { a: t.int32 },
      streams: { other: { b: t.string } },
      async open(_context, from?: string) {
        let count = 0;
        return {
          next({ emit, to }) {
            count++;
            emit({ a: count }, { id: count, position: `${from}${count}` });
            to.other({ b: 'x' });
            return count === 2 ? 'ended' : 'idle';
          },
          ack: (id: unknown) => calls.push(['ack', id]),
          fail: (id: unknown, reason: string) => calls.push(['fail', id, reason]),
        };
      },
    });
    const source = await definition.runtime.open!(context, 'p');
    const out = new RecordingOut();
    expect([source.next(out), source.next(out)]).toEqual(['idle', 'ended']);
    source.ack!(1);
    source.fail!(2, 'timeout');
    expect('close' in source).toBe(false);
    expect(calls).toEqual([
      ['ack', 1],
      ['fail', 2, 'timeout'],
    ]);
    expect(out.emitted).toEqual([
      ['default', { a: 1 }, { id: 1, position: 'p1' }, undefined],
      ['other', { b: 'x' }, undefined, undefined],
      ['default', { a: 2 }, { id: 2, position: 'p2' }, undefined],
      ['other', { b: 'x' }, undefined, undefined],
    ]);
  });

  it.each([
    ['nothing', undefined],
    ['a source without next', {}],
    ['ack of another type', { next: () => undefined, ack: 7 }],
  ])('refuses %s as what open returned', async (_what, opened) => {
    const definition = spout({ emits: { a: t.int32 }, open: () => opened as RuntimeSource as never });
    const failure = await failureOf(() => definition.runtime.open!(context, undefined));
    expect(failure.code).toBe('DEFINITION_ILLEGAL');
  });
});

describe('definitions', () => {
  const loosely: Record<'bolt' | 'spout', (parts: unknown) => unknown> = { bolt, spout } as never;

  it.each([
    ['bolt', 'is not an object', null],
    ['bolt', 'neither of takes and inputs', { process: work }],
    ['bolt', 'both of takes and inputs', { takes: {}, inputs: { a: {} }, process: work }],
    ['bolt', 'inputs names no input', { inputs: {}, process: {} }],
    ['bolt', '"default" is not an input name', { inputs: { default: {} }, process: { default: work } }],
    ['bolt', 'inputs is not an object', { inputs: 7, process: {} }],
    ['bolt', 'neither of process and prepare', { takes: {} }],
    ['bolt', 'both of process and prepare', { takes: {}, process: work, prepare: work }],
    ['bolt', 'process is not a function', { takes: {}, process: { a: work } }],
    ['bolt', 'process is not an object of functions', { inputs: { a: {} }, process: work }],
    ['bolt', 'no function for input "b"', { inputs: { a: {}, b: {} }, process: { a: work } }],
    ['bolt', 'for "c", which is not an input', { inputs: { a: {} }, process: { a: work, c: work } }],
    ['bolt', 'prepare is not a function', { takes: {}, prepare: {} }],
    ['bolt', 'end stands beside prepare', { takes: {}, prepare: work, end: work }],
    ['bolt', 'there is tick, but no every', { takes: {}, process: work, tick: work }],
    ['bolt', 'there is every, but no tick', { takes: {}, process: work, every: '1s' }],
    ['bolt', 'every is not a period', { takes: {}, process: work, tick: work, every: '1 year' }],
    ['bolt', 'every is not a period', { takes: {}, process: work, tick: work, every: 0 }],
    ['bolt', 'every is not a period', { takes: {}, process: work, tick: work, every: '25d' }],
    ['bolt', 'manual is not a boolean', { takes: {}, process: work, manual: 'yes' }],
    ['bolt', 'the part "proces" is unknown', { takes: {}, process: work, proces: work }],
    ['bolt', 'the part "save" is unknown', { takes: {}, process: work, save: work }],
    ['bolt', 'field "a" has no field type', { takes: { a: 'string' }, process: work }],
    ['bolt', 'field "a" has no field type', { takes: { a: t.json }, process: work }],
    ['bolt', 'the fields are not an object', { takes: ['a'], process: work }],
    ['spout', 'the spout has no stream', { read: work }],
    ['spout', 'neither read nor open', { emits: {} }],
    ['spout', 'read and open', { emits: {}, read: work, open: work }],
    ['spout', 'read is not a function', { emits: {}, read: [] }],
    ['spout', 'streams is not an object', { emits: {}, streams: [], read: work }],
    ['spout', 'movable is not a boolean', { emits: {}, movable: 1, read: work }],
  ] as const)('of a %s: refuses that %s', async (kind, message, parts) => {
    const failure = await failureOf(() => loosely[kind](parts));
    expect(failure.code).toBe('DEFINITION_ILLEGAL');
    expect(failure.message).toContain(message);
  });

  it('have codes of their own for names, and report all faults at once', async () => {
    const fields = JSON.parse('{"__proto__": 1, "": 1}') as unknown;
    const named = await failureOf(() => loosely.bolt({ takes: fields, process: work }));
    expect([named.code, named.details['faults']]).toEqual([
      'FIELD_NAME_ILLEGAL',
      expect.objectContaining({ length: 2 }),
    ]);
    for (const name of ['', '__ack', 'default']) {
      const failure = await failureOf(() => loosely.spout({ streams: { [name]: {} }, read: work }));
      expect([failure.code, failure.details.where]).toEqual(['STREAM_ID_ILLEGAL', 'spout({ … }), streams']);
    }
    const many = await failureOf(() =>
      loosely.bolt({ takes: { a: 1 }, streams: { __a: { b: 2 } }, manual: 1, x: 1 }),
    );
    expect(many.details['faults']).toHaveLength(6);
  });

  it('read a period as people write it', () => {
    for (const [every, tickMs] of [
      ['1s', 1000],
      ['250ms', 250],
      [40, 40],
      ['1.5m', 90_000],
    ] as const) {
      expect(bolt({ takes: {}, every, process: work, tick: work }).shape.tickMs).toBe(tickMs);
    }
  });

  it('may have fields and streams named like properties of every object', () => {
    const definition = spout({ emits: { constructor: t.string, toString: t.int32 }, read: () => [] });
    expect(definition.shape.streams[0]!.fields.map(({ name }) => name)).toEqual(['constructor', 'toString']);
  });
});
