/* eslint-disable @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-member-access, @typescript-eslint/no-unsafe-return --
   lines that must not compile have no types */
import ts from 'typescript';
import { expect, expectTypeOf, it } from 'vitest';
import {
  bolt,
  spout,
  t,
  topology,
  type BoltDefinition,
  type NoNames,
  type SpoutDefinition,
} from './index.js';

/**
 * What the compiler says. The `@ts-expect-error` lines prove that a mistake is refused whenever this file is
 * type-checked; the snippets prove in which words.
 */

const lines = spout({
  emits: { sentence: t.string },
  async *read(context, from) {
    expectTypeOf(context.index).toEqualTypeOf<number>();
    expectTypeOf(from).toEqualTypeOf<number | undefined>();
    yield { row: { sentence: 'a b' }, position: (from ?? 0) + 1 };
  },
});
const split = bolt({
  takes: { sentence: t.string },
  emits: { word: t.string },
  streams: { rejects: { sentence: t.string, reason: t.nullable(t.string) } },
  process({ sentence }, out) {
    expectTypeOf(sentence).toEqualTypeOf<string>();
    if (sentence.length > 10_000) {
      out.to.rejects({ sentence, reason: 'too long' });
      out.to.rejects({ sentence });
      out.to.rejects({ sentence, reason: null });
      return;
    }
    for (const word of sentence.split(' ')) out.emit({ word });
    out.direct(1, { word: sentence });
    out.directTo.rejects(1, { sentence });
  },
});
const count = bolt({
  takes: { word: t.string },
  emits: { word: t.string, count: t.int64 },
  every: '1s',
  prepare(context, saved?: Map<string, number>) {
    const counts = saved ?? new Map<string, number>();
    return {
      process({ word }, out) {
        expectTypeOf(word).toEqualTypeOf<string>();
        out.emit({ word, count: context.task });
      },
      tick(out) {
        out.emit({ word: 'x', count: counts.size });
      },
      end(out) {
        out.emit({ word: 'x', count: 1 });
      },
      save: () => counts,
    };
  },
});
const orders = spout({
  emits: { id: t.string, amount: t.float64 },
  streams: { payments: { id: t.string, at: t.timestamp } },
  *read() {
    yield [
      { row: { id: 'a', amount: 1.5 } },
      { row: { id: 'a', at: 1 }, stream: 'payments' as const, position: 'x' },
    ];
  },
});
const join = bolt({
  inputs: { order: { id: t.string, amount: t.float64 }, payment: { id: t.string, at: t.timestamp } },
  emits: { id: t.string, amount: t.float64 },
  prepare() {
    return {
      process: {
        order(row, out) {
          out.emit({ id: row.id, amount: row.amount });
        },
        payment({ id, at }, out) {
          out.emit({ id, amount: at });
        },
      },
    };
  },
});
const takesInt32Amount = bolt({ takes: { amount: t.int32 }, process: ({ amount }) => amount });
const takesNullable = bolt({ takes: { word: t.nullable(t.string) }, process: ({ word }) => word });
const emitsNullable = bolt({
  takes: { word: t.string },
  emits: { word: t.nullable(t.string) },
  process: (_row, out) => {
    out.emit({});
  },
});

it('accepts what the specification shows, and infers every row', () => {
  expectTypeOf(lines).toExtend<SpoutDefinition<{ sentence: typeof t.string }, NoNames>>();
  expectTypeOf(count).toExtend<
    BoltDefinition<
      { word: typeof t.string },
      undefined,
      { word: typeof t.string; count: typeof t.int64 },
      NoNames
    >
  >();
  const built = topology('all', (b) => {
    const source = b.spout('lines', lines, { parallelism: 2 });
    const words = b.bolt('split', split, { parallelism: 4 }).shuffle(source);
    b.bolt('count', count, { parallelism: 4, tasks: 8 }).fields(words, ['word']);
    const money = b.spout('orders', orders);
    b.bolt('join', join)
      .on.order.fields(money, ['id'])
      .on.payment.fields(money.streams.payments, ['id', 'at']);
    b.bolt('nullable', takesNullable).shuffle(words);
    b.bolt('custom', count).custom(words, () => ({
      choose(row, taskCount) {
        expectTypeOf(row).toEqualTypeOf<{ readonly word: string }>();
        return row.word.length % taskCount;
      },
    }));
  }).build();
  expect(built.description.components).toHaveLength(7);
});

it('refuses wrong graphs when it is type-checked', () => {
  const refused = topology('refused', (b) => {
    const source = b.spout('lines', lines);
    const words = b.bolt('split', split).shuffle(source);
    const money = b.spout('orders', orders);
    const sink = b.bolt('sink', takesNullable).shuffle(words);
    const maybe = b.bolt('maybe', emitsNullable).shuffle(words);
    // @ts-expect-error no such field
    b.bolt('wrong', count).fields(words, ['wrd']);
    // @ts-expect-error no such field
    b.bolt('wrong', count).partialKey(words, ['word', 'wrd']);
    // @ts-expect-error at least one key
    b.bolt('wrong', count).fields(words, []);
    // @ts-expect-error at least one key
    b.bolt('wrong', count).partialKey(words, []);
    // @ts-expect-error field "word" is missing in this stream
    b.bolt('wrong', count).shuffle(source);
    // @ts-expect-error no such stream
    b.bolt('wrong', count).shuffle(words.streams.nope);
    // @ts-expect-error field "amount" is float64 here, the bolt takes int32
    b.bolt('wrong', takesInt32Amount).shuffle(money);
    // @ts-expect-error a nullable field does not fit
    b.bolt('wrong', count).shuffle(maybe);
    // @ts-expect-error a sink has no main stream
    b.bolt('wrong', count).shuffle(sink);
    // @ts-expect-error a name is not a handle
    b.bolt('wrong', count).shuffle('lines');
    // @ts-expect-error a spout has no inputs
    source.shuffle(words);
    // @ts-expect-error no such input
    b.bolt('wrong', join).on.nope.shuffle(words);
    // @ts-expect-error a bolt with named inputs needs the name
    b.bolt('wrong', join).shuffle(words);
    // @ts-expect-error no such option
    b.bolt('wrong', count, { paralelism: 3 }).shuffle(words);
    // @ts-expect-error a spout is not a bolt
    b.bolt('wrong', lines);
  });
  expect(() => refused.build()).toThrow();
});

it('refuses wrong definitions when they are type-checked', () => {
  const attempts = [
    // @ts-expect-error neither process nor prepare
    () => bolt({ takes: { a: t.string } }),
    // @ts-expect-error neither takes nor inputs
    () => bolt({ process: () => undefined }),
    // @ts-expect-error a field type is a value of t
    () => bolt({ takes: { a: 'string' }, process: () => undefined }),
    // @ts-expect-error neither read nor open
    () => spout({ emits: { a: t.string } }),
    // @ts-expect-error an input without a handler
    () => bolt({ inputs: { a: { x: t.string }, b: { x: t.string } }, process: { a: () => undefined } }),
    // @ts-expect-error a period needs its unit
    () => bolt({ takes: {}, every: '1 fortnight', process: () => 0, tick: () => 0 }),
  ];
  for (const attempt of attempts)
    expect(attempt).toThrow(expect.objectContaining({ code: 'DEFINITION_ILLEGAL' }));
  // These are caught by the worker when rows are emitted.
  bolt({
    takes: { a: t.string },
    emits: { a: t.string },
    process(row, out) {
      // @ts-expect-error wrong type
      out.emit({ a: 1 });
      // @ts-expect-error unknown field
      out.emit({ a: 'x', b: 1 });
      // @ts-expect-error missing field
      out.emit({});
      // @ts-expect-error not a manual bolt
      out.emit({ a: 'x' }, { anchors: [] });
      // @ts-expect-error rows are read-only
      row.a = 'x';
      // @ts-expect-error the bolt does not take it
      return row.b;
    },
  });
  bolt({
    takes: { a: t.string },
    process(_row, out) {
      // @ts-expect-error a sink has no out.emit
      out.emit({ a: 1 });
    },
  });
  bolt({
    takes: { a: t.string },
    emits: { a: t.string },
    manual: true,
    process({ a }, out, anchor) {
      out.emit({ a }, { anchors: [anchor] });
      anchor.ack();
    },
  });
  bolt({
    takes: {},
    // @ts-expect-error what save gives is not what saved takes
    prepare: (_, saved?: Map<string, 1>) => ({ process: () => saved, save: () => new Set() }),
  });
  // @ts-expect-error the row of another stream
  spout({ emits: { a: t.string }, streams: { b: { x: t.string } }, read: () => [{ row: { x: 'x' } }] });
  // @ts-expect-error positions are of one type
  spout({ emits: { a: t.string }, read: (_, from?: number) => [{ row: { a: 'x' }, position: `${from}` }] });
});

const PRELUDE = `
import { bolt, spout, t, topology } from './index.js';
const lines = spout({ emits: { sentence: t.string }, read: () => [{ row: { sentence: 'x' } }] });
const orders = spout({
  emits: { amount: t.float64, note: t.nullable(t.string), data: t.json<{ a: string }>() },
  read: () => [{ row: { amount: 1.5, data: { a: 'x' } } }],
});
const split = bolt({
  takes: { sentence: t.string }, emits: { word: t.string }, streams: { rejects: { reason: t.string } },
  process() {},
});
const count = bolt({ takes: { word: t.string }, process() {} });
const takesInt32Amount = bolt({ takes: { amount: t.int32 }, process() {} });
const takesNote = bolt({ takes: { note: t.string }, process() {} });
const takesAll = bolt({ takes: { amount: t.int32, word: t.string, note: t.string }, process() {} });
const takesData = bolt({ takes: { data: t.json<{ a: number }>() }, process() {} });
const join = bolt({ inputs: { left: { word: t.string } }, process: { left() {} } });
export default topology('snippet', (b) => {
  const source = b.spout('lines', lines);
  const money = b.spout('orders', orders);
  const words = b.bolt('split', split).shuffle(source);
  const sink = b.bolt('sink', count).shuffle(words);
  b.bolt('join', join).on.left.shuffle(words);
  b.bolt('data', bolt({ takes: { data: t.json<{ a: string }>() }, process() {} })).shuffle(money);
  void [takesInt32Amount, takesNote, takesAll, takesData, sink];
`;

const SNIPPETS: readonly (readonly [line: string, ...sentences: string[]])[] = [
  [`b.bolt('x', count).fields(words, ['word']);`],
  [`b.bolt('x', count).fields(words, ['wrd']);`, `Type '"wrd"' is not assignable to type '"word"'`],
  [
    `b.bolt('x', count).fields(words, []);`,
    'name at least one field, or use global to send all rows to one task',
  ],
  [`b.bolt('x', count).shuffle(source);`, 'field \\"word\\" is missing in this stream'],
  [`b.bolt('x', join).on.left.all(source);`, 'field \\"word\\" is missing in this stream'],
  [
    `b.bolt('x', count).shuffle(words.streams.nope);`,
    `Property 'nope' does not exist on type '{ readonly rejects:`,
  ],
  [
    `b.bolt('x', takesInt32Amount).shuffle(money);`,
    'field \\"amount\\" is float64 here, the bolt takes int32',
  ],
  [
    `b.bolt('x', takesNote).global(money);`,
    'field \\"note\\" is nullable string here, the bolt takes string',
  ],
  [
    `b.bolt('x', takesData).none(money);`,
    'field \\"data\\" is json of another type here than the bolt takes',
  ],
  [
    `b.bolt('x', takesAll).direct(money);`,
    'field \\"amount\\" is float64 here, the bolt takes int32',
    'field \\"word\\" is missing in this stream',
    'field \\"note\\" is nullable string here, the bolt takes string',
  ],
  [`b.bolt('x', count).shuffle(sink);`, 'this component has no main stream; subscribe to one of its streams'],
  [`b.bolt('x', count).shuffle('lines');`, `'string' is not assignable to parameter of type 'StreamSource'`],
];

it('says in the compiler’s output what is wrong with a graph', () => {
  const directory = import.meta.dirname;
  const files = new Map(
    SNIPPETS.map(([line], index) => [`${directory}/snippet-${index}.ts`, `${PRELUDE}${line}\n});\n`]),
  );
  const configPath = `${directory}/../../tsconfig.base.json`;
  const { config } = ts.readConfigFile(configPath, (path) => ts.sys.readFile(path)) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, `${directory}/../..`, { noEmit: true });
  const host = ts.createCompilerHost(options);
  const original = { ...host };
  host.readFile = (path) => files.get(path) ?? original.readFile(path);
  host.fileExists = (path) => files.has(path) || original.fileExists(path);
  host.getSourceFile = (path, ...rest) => {
    const text = files.get(path);
    return text === undefined
      ? original.getSourceFile(path, ...rest)
      : ts.createSourceFile(path, text, ts.ScriptTarget.ES2022);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  for (const [index, [line, ...sentences]] of SNIPPETS.entries()) {
    const source = program.getSourceFile(`${directory}/snippet-${index}.ts`);
    const said = program
      .getSemanticDiagnostics(source)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
      .join('\n');
    if (sentences.length === 0) expect(said, line).toBe('');
    for (const sentence of sentences) expect(said, line).toContain(sentence);
  }
});
