import { describe, expect, it } from 'vitest';
import { IsobarError, type ErrorCode } from '../base/index.js';
import { bolt, buildTopology, canonicalDescription, spout, t, topology } from './index.js';
import type { BuiltTopology, TopologyFault } from './index.js';

const lines = spout({ emits: { sentence: t.string }, read: () => [] });
const split = bolt({
  takes: { sentence: t.string },
  emits: { word: t.string },
  streams: { rejects: { sentence: t.string, reason: t.nullable(t.string) } },
  process: () => undefined,
});
const count = bolt({
  takes: { word: t.string },
  emits: { word: t.string, count: t.int64 },
  every: '1s',
  movable: true,
  prepare: () => ({ process: () => undefined, tick: () => undefined }),
});
const join = bolt({
  inputs: { word: { word: t.string }, reject: { reason: t.nullable(t.string) } },
  process: { word: () => undefined, reject: () => undefined },
});

/** The builder as JavaScript sees it: no type stands in the way of a mistake. */
type LooseGroupings = Record<
  'shuffle' | 'fields' | 'partialKey' | 'all' | 'direct' | 'custom',
  (source: unknown, argument?: unknown) => LooseHandle
>;
interface LooseHandle extends LooseGroupings {
  readonly streams: Readonly<Record<string, LooseHandle>>;
  readonly on: Readonly<Record<string, LooseGroupings>>;
}
interface LooseBuilder {
  spout(...values: unknown[]): LooseHandle;
  bolt(...values: unknown[]): LooseHandle;
}

function buildLoosely(build: (b: LooseBuilder) => unknown): BuiltTopology {
  return buildTopology(topology('loose', (b) => build(b as unknown as LooseBuilder) as undefined));
}

function failureOf(run: () => unknown): IsobarError {
  try {
    run();
  } catch (error) {
    return error as IsobarError;
  }
  throw new Error('nothing was thrown');
}

function faultsOf(build: (b: LooseBuilder) => unknown): readonly TopologyFault[] {
  return failureOf(() => buildLoosely(build)).details['faults'] as readonly TopologyFault[];
}

describe('topology', () => {
  it('builds a description that holds everything the file says', () => {
    const definition = topology(
      'word-count',
      { 'topology.workers': 2, 'topology.ackers': undefined },
      (b) => {
        const source = b.spout('lines', lines, { parallelism: 2 });
        const words = b.bolt('split', split, { parallelism: 4 }).localOrShuffle(source);
        b.bolt('count', count, { parallelism: 4, tasks: 8 }).fields(words, ['word']);
        b.bolt('join', join, { movable: false })
          .on.word.partialKey(words, ['word'])
          .on.reject.all(words.streams.rejects);
      },
    );
    const { description, components } = buildTopology(definition);
    expect(description).toMatchSnapshot();
    expect([...components].map(([id, { kind }]) => `${kind} ${id}`)).toEqual([
      'spout lines',
      'bolt split',
      'bolt count',
      'bolt join',
    ]);
    expect(Object.isFrozen(description.components[1]!.subscriptions)).toBe(true);
    expect(canonicalDescription(buildTopology(definition).description)).toBe(
      canonicalDescription(description),
    );
  });

  it('describes every grouping', () => {
    const { description, customGroupings } = topology('groupings', (b) => {
      const word = bolt({ takes: { sentence: t.string }, emits: { word: t.string }, process: () => 0 });
      const from = Array.from({ length: 9 }, (_, index) =>
        b.bolt(`from${index}`, word).shuffle(b.spout(`s${index}`, lines)),
      );
      b.bolt('to', bolt({ takes: { word: t.string }, process: () => 0 }))
        .shuffle(from[0]!)
        .localOrShuffle(from[1]!)
        .fields(from[2]!, ['word'])
        .partialKey(from[3]!, ['word'])
        .all(from[4]!)
        .global(from[5]!)
        .none(from[6]!)
        .direct(from[7]!)
        .custom(from[8]!, () => ({ choose: () => 0 }));
    }).build();
    expect(description.components.at(-1)!.subscriptions.map(({ grouping }) => grouping)).toEqual([
      { kind: 'shuffle' },
      { kind: 'local-or-shuffle' },
      { kind: 'fields', fields: ['word'] },
      { kind: 'partial-key', fields: ['word'] },
      { kind: 'all' },
      { kind: 'global' },
      { kind: 'none' },
      { kind: 'direct' },
      { kind: 'custom' },
    ]);
    expect([...customGroupings.keys()]).toEqual(['to#8']);
    expect(customGroupings.get('to#8')!().choose({}, 3)).toBe(0);
  });

  it('lets inputs be added later, so that cycles can be written, and warns of them', () => {
    const step = bolt({ takes: { word: t.string }, emits: { word: t.string }, process: () => undefined });
    const { description } = topology('cycle', (b) => {
      const first = b.bolt('first', step);
      const second = b.bolt('second', step).shuffle(first);
      first.shuffle(second).shuffle(b.bolt('split', split).shuffle(b.spout('lines', lines)));
    }).build();
    expect(description.warnings).toEqual([expect.stringContaining('cycle: "first", "second".')]);
  });

  it('runs the builder anew for each build and keeps builds apart', () => {
    let runs = 0;
    const definition = topology('twice', (b) => {
      runs++;
      b.spout('lines', lines);
    });
    expect(runs).toBe(0);
    definition.build();
    definition.build();
    expect(runs).toBe(2);
  });

  it.each(['', 'a/b', 'a.b', 'a:b', 'a\\b', 'x'.repeat(201), 'a\nb', 7, null])(
    'refuses the name %j',
    (name) => {
      expect(() => topology(name as string, () => undefined)).toThrow(
        expect.objectContaining({ code: 'TOPOLOGY_NAME_ILLEGAL' }),
      );
    },
  );

  it('refuses settings that are not plain data', () => {
    const settings = { 'topology.workers': () => 2, 'messaging.credit': Number.NaN, other: { a: 1 } };
    const failure = failureOf(() => topology('s', settings as never, (b) => b.spout('lines', lines)).build());
    expect(failure.code).toBe('SETTINGS_INVALID');
    expect(failure.details['faults']).toHaveLength(3);
  });
});

describe('buildTopology', () => {
  it('tells a missing default export from a wrong one, and says what it found', () => {
    expect(failureOf(() => buildTopology(undefined)).code).toBe('NO_DEFAULT_EXPORT');
    for (const [value, found] of [
      [null, 'null'],
      [7, '7'],
      [{ name: 'x', build: () => undefined }, 'an object'],
      [() => undefined, 'a function; export what topology(…) returns'],
      [Promise.resolve(), 'a promise; await it before exporting'],
      [split, 'a bolt definition; put it into a topology'],
    ]) {
      const failure = failureOf(() => buildTopology(value));
      expect(failure.code).toBe('NOT_A_TOPOLOGY');
      expect(failure.details.found).toBe(found);
    }
  });

  it('recognises a topology that another copy of this module made', () => {
    const definition = topology('copy', (b) => b.spout('lines', lines));
    const copy = { [Symbol.for('isobar.topology')]: 1, name: 'copy', build: () => definition.build() };
    expect(buildTopology(copy).description.name).toBe('copy');
  });

  it('adopts the error of another copy, with its code, details, stack and cause', () => {
    const cause = new Error('cause');
    const foreign = Object.assign(new Error('two', { cause }), {
      name: 'IsobarError',
      code: 'COMPONENT_ID_DUPLICATE',
      details: { where: 'x' },
    });
    const build = (): never => {
      throw foreign;
    };
    const copy = { [Symbol.for('isobar.topology')]: 1, name: 'copy', build };
    const failure = failureOf(() => buildTopology(copy));
    expect(failure).toBeInstanceOf(IsobarError);
    expect(failure).toMatchObject({
      code: 'COMPONENT_ID_DUPLICATE',
      details: { where: 'x' },
      stack: foreign.stack,
      cause,
    });
    foreign.code = 'NEWER_CODE';
    expect(failureOf(() => buildTopology(copy))).toBe(foreign);
  });

  it('reports what the builder threw, as the cause, with the faults found until then', () => {
    const cause = new TypeError('boom');
    const failure = failureOf(() =>
      buildLoosely((b) => {
        b.bolt('count', count).shuffle(undefined);
        throw cause;
      }),
    );
    expect(failure.code).toBe('BUILDER_THREW');
    expect(failure.cause).toBe(cause);
    expect(failure.message).toContain('boom');
    expect(failure.details['faults']).toHaveLength(1);
  });

  it('refuses what cannot be looked at with a code of its own, whoever throws', () => {
    const trap = (): never => {
      throw new Error('trap');
    };
    const hostile = new Proxy(new Error('x'), { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap });
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const getters = {
      get 'topology.workers'(): number {
        return trap();
      },
    };
    for (const settings of [getters, hostile, revoked.proxy]) {
      const failure = failureOf(() =>
        topology('s', settings as never, (b) => b.spout('lines', lines)).build(),
      );
      expect(failure.code).toBe('SETTINGS_INVALID');
    }
    for (const thrown of [hostile, revoked.proxy, { toString: trap }, Object.create(null) as unknown]) {
      const failure = failureOf(() =>
        topology('s', () => {
          throw thrown;
        }).build(),
      );
      expect(failure.code).toBe('BUILDER_THREW');
    }
    for (const value of [hostile, revoked.proxy]) {
      expect(failureOf(() => buildTopology(value)).code).toBe('NOT_A_TOPOLOGY');
    }
  });

  it('refuses settings behind the function, which would be ignored', () => {
    const swapped = topology as unknown as (...values: unknown[]) => unknown;
    const failure = failureOf(() => swapped('x', () => undefined, { 'topology.workers': 2 }));
    expect(failure.code).toBe('DEFINITION_ILLEGAL');
    expect(failure.details['expected']).toContain("topology('name', settings,");
  });

  it('refuses a builder that returns a promise, and one that is used later', () => {
    expect(
      failureOf(() =>
        buildLoosely(async (b) => {
          b.spout('lines', lines);
          throw new Error('never seen');
        }),
      ).code,
    ).toBe('DEFINITION_ILLEGAL');
    let kept: LooseBuilder | undefined;
    let handle: LooseHandle | undefined;
    buildLoosely((b) => {
      kept = b;
      const source = b.spout('lines', lines);
      handle = b.bolt('split', split).shuffle(source);
    });
    expect(failureOf(() => kept!.spout('late', lines)).message).toContain('had returned');
    expect(failureOf(() => handle!.shuffle(undefined)).message).toContain('had returned');
  });
});

describe('rules at run time', () => {
  const single: readonly (readonly [string, ErrorCode, (b: LooseBuilder) => unknown])[] = [
    [
      'a key that the stream does not have',
      'FIELD_UNKNOWN',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        b.bolt('count', count).fields(words, ['wrd']);
      },
    ],
    [
      'a fields grouping without keys',
      'FIELDS_GROUPING_EMPTY',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        b.bolt('count', count).fields(words, []);
      },
    ],
    [
      'keys that are not a list',
      'DEFINITION_ILLEGAL',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        b.bolt('count', count).fields(words, 'word');
      },
    ],
    [
      'a key named twice',
      'DEFINITION_ILLEGAL',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        b.bolt('count', count).partialKey(words, ['word', 'word']);
      },
    ],
    [
      'a field that the stream lacks',
      'FIELD_MISSING',
      (b) => {
        b.bolt('count', count).shuffle(b.spout('lines', lines));
      },
    ],
    [
      'a field of another kind',
      'FIELD_KIND_MISMATCH',
      (b) => {
        const orders = spout({ emits: { amount: t.float64 }, read: () => [] });
        const takes = bolt({ takes: { amount: t.int32 }, process: () => undefined });
        b.bolt('wrong', takes).shuffle(b.spout('orders', orders));
      },
    ],
    [
      'a nullable field for a bolt that takes no null',
      'FIELD_KIND_MISMATCH',
      (b) => {
        const orders = spout({ emits: { amount: t.nullable(t.int32) }, read: () => [] });
        const takes = bolt({ takes: { amount: t.int32 }, process: () => undefined });
        b.bolt('wrong', takes).shuffle(b.spout('orders', orders));
      },
    ],
    [
      'a stream that is not declared',
      'STREAM_UNKNOWN',
      (b) => {
        b.bolt('split', split).shuffle(b.spout('lines', lines).streams['nope']);
      },
    ],
    [
      'the main stream of a sink',
      'STREAM_UNKNOWN',
      (b) => {
        const sink = b
          .bolt('sink', bolt({ takes: {}, process: () => undefined }))
          .shuffle(b.spout('lines', lines));
        b.bolt('wrong', split).shuffle(sink);
      },
    ],
    [
      'a handle of another builder',
      'COMPONENT_UNKNOWN',
      (b) => {
        b.spout('lines', lines);
        let foreign: LooseHandle | undefined;
        buildLoosely((other) => (foreign = other.spout('lines', lines)));
        b.bolt('split', split).shuffle(foreign);
      },
    ],
    [
      'a name instead of a handle',
      'COMPONENT_UNKNOWN',
      (b) => {
        b.spout('lines', lines);
        b.bolt('split', split).shuffle('lines');
      },
    ],
    [
      'an id twice',
      'COMPONENT_ID_DUPLICATE',
      (b) => {
        b.spout('lines', lines);
        b.spout('lines', lines);
      },
    ],
    ['a reserved id', 'COMPONENT_ID_ILLEGAL', (b) => b.spout('__mine', lines)],
    ['an empty id', 'COMPONENT_ID_ILLEGAL', (b) => b.spout('', lines)],
    ['no spout', 'TOPOLOGY_WITHOUT_SPOUT', () => undefined],
    [
      'a spout with an input',
      'SPOUT_HAS_INPUT',
      (b) => {
        b.spout('a', lines).shuffle(b.spout('b', lines));
      },
    ],
    [
      'a bolt without input',
      'BOLT_WITHOUT_INPUT',
      (b) => {
        b.spout('lines', lines);
        b.bolt('split', split);
      },
    ],
    [
      'a named input without subscription',
      'BOLT_WITHOUT_INPUT',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        b.bolt('join', join).on['word']!.shuffle(words);
      },
    ],
    [
      'an input that is not declared',
      'DEFINITION_ILLEGAL',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        const joined = b.bolt('join', join);
        joined.on['word']!.shuffle(words);
        joined.on['reject']!.shuffle(words.streams['rejects']);
        joined.on['nope']!.shuffle(words);
      },
    ],
    [
      'a grouping without the name of the input',
      'DEFINITION_ILLEGAL',
      (b) => {
        const words = b.bolt('split', split).shuffle(b.spout('lines', lines));
        const joined = b.bolt('join', join);
        joined.on['word']!.shuffle(words);
        joined.on['reject']!.shuffle(words.streams['rejects']);
        joined.shuffle(words);
      },
    ],
    [
      'direct and other subscribers of one stream',
      'DIRECT_EMIT_MISMATCH',
      (b) => {
        const source = b.spout('lines', lines);
        b.bolt('a', split).shuffle(source);
        b.bolt('b', split).direct(source);
      },
    ],
    [
      'the same stream twice',
      'SUBSCRIPTION_DUPLICATE',
      (b) => {
        const source = b.spout('lines', lines);
        b.bolt('split', split).shuffle(source).all(source);
      },
    ],
    [
      'a custom grouping that is no function',
      'DEFINITION_ILLEGAL',
      (b) => {
        b.bolt('split', split).custom(b.spout('lines', lines), { choose: () => 0 });
      },
    ],
    [
      'a definition of the other kind',
      'DEFINITION_ILLEGAL',
      (b) => {
        b.spout('lines', lines);
        b.spout('split', split);
      },
    ],
    [
      'no definition',
      'DEFINITION_ILLEGAL',
      (b) => {
        b.spout('lines', lines);
        b.bolt('split');
      },
    ],
    ['an unknown option', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, { paralelism: 2 })],
    ['options that are no object', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, 4)],
    ['a load below zero', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, { load: -1 })],
    ['a load that is no number', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, { load: '2' })],
    ['a load that is NaN', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, { load: Number.NaN })],
    ['an infinite load', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, { load: Infinity })],
    [
      'a slot sharing group without a name',
      'DEFINITION_ILLEGAL',
      (b) => b.spout('lines', lines, { slotSharingGroup: '' }),
    ],
    [
      'co-located components of unequal parallelism',
      'DEFINITION_ILLEGAL',
      (b) =>
        b
          .bolt('split', split, { coLocationGroup: 'x', parallelism: 3 })
          .shuffle(b.spout('lines', lines, { coLocationGroup: 'x', parallelism: 2 })),
    ],
    [
      'co-located components of two slot sharing groups',
      'DEFINITION_ILLEGAL',
      (b) =>
        b
          .bolt('split', split, { coLocationGroup: 'x', slotSharingGroup: 'other' })
          .shuffle(b.spout('lines', lines, { coLocationGroup: 'x' })),
    ],
    ['movable that is no boolean', 'DEFINITION_ILLEGAL', (b) => b.spout('lines', lines, { movable: 1 })],
    ...[0, -1, 1.5, 1_000_001, Number.NaN, Infinity, '2', null].flatMap((value) => [
      [
        `parallelism ${String(value)}`,
        'PARALLELISM_ILLEGAL',
        (b: LooseBuilder) => b.spout('lines', lines, { parallelism: value }),
      ] as const,
      [
        `tasks ${String(value)}`,
        'PARALLELISM_ILLEGAL',
        (b: LooseBuilder) => b.spout('lines', lines, { tasks: value }),
      ] as const,
    ]),
  ];

  it.each(single)('refuses %s, and nothing else with it', (_what, code, build) => {
    const failure = failureOf(() => buildLoosely(build));
    expect([failure.code, (failure.details['faults'] as TopologyFault[]).map((fault) => fault.code)]).toEqual(
      [code, [code]],
    );
    expect(failure.details.where).toBeTruthy();
    expect(failure.details.expected).toBeTruthy();
  });

  it('says the same at run time as the compiler does', () => {
    const orders = spout({ emits: { amount: t.float64, note: t.nullable(t.string) }, read: () => [] });
    const takes = bolt({
      takes: { amount: t.int32, word: t.string, note: t.string },
      process: () => undefined,
    });
    const messages = faultsOf((b) => b.bolt('wrong', takes).shuffle(b.spout('orders', orders)));
    expect(messages.map(({ message }) => message)).toEqual([
      'field "amount" is float64 here, the bolt takes int32',
      'field "word" is missing in this stream',
      'field "note" is nullable string here, the bolt takes string',
    ]);
    expect(messages[0]!.where).toBe('bolt "wrong", subscription to "orders"');
  });

  it('reports all faults of a graph at once, with the first one’s code', () => {
    const failure = failureOf(() =>
      buildLoosely((b) => {
        const source = b.spout('__lines', lines, { parallelism: 0 });
        const words = b.bolt('split', split).shuffle(source);
        b.bolt('split', count).fields(words, ['wrd']);
        b.bolt('alone', split);
        b.bolt('foreign', split).shuffle('x');
      }),
    );
    expect((failure.details['faults'] as TopologyFault[]).map(({ code }) => code)).toEqual([
      'PARALLELISM_ILLEGAL',
      'COMPONENT_UNKNOWN',
      'COMPONENT_ID_ILLEGAL',
      'COMPONENT_ID_DUPLICATE',
      'FIELD_UNKNOWN',
      'BOLT_WITHOUT_INPUT',
    ]);
    expect(failure.code).toBe('PARALLELISM_ILLEGAL');
    expect(failure.message).toContain('6 faults');
  });

  it('does not report what follows from a component that is faulty itself', () => {
    expect(
      faultsOf((b) => {
        b.spout('ok', lines);
        const broken = b.bolt('broken', {});
        b.bolt('split', split).shuffle(broken).all(broken.streams['x']);
      }).map(({ code }) => code),
    ).toEqual(['DEFINITION_ILLEGAL']);
  });

  it('says of each fault what was expected and found, where these differ', () => {
    const { message } = failureOf(() =>
      buildLoosely((b) => {
        const source = b.spout('s', lines);
        b.bolt('__x', split).shuffle(source);
        b.bolt('y', split).fields(source, []);
      }),
    );
    expect(message).toMatch(
      /"__x" is not a component id; expected a text of .* that does not start with __/u,
    );
    expect(message).toContain('the fields grouping names no field; expected at least one field, found none');
    const alike = failureOf(() =>
      buildLoosely((b) => {
        b.spout('__s', lines);
        b.spout('__t', lines);
      }),
    );
    expect(alike.message).not.toContain('expected');
  });

  it('reports at most a hundred faults and counts the rest', () => {
    const failure = failureOf(() =>
      buildLoosely((b) => {
        for (let index = 0; index < 150; index++) b.bolt(`b${index}`, split);
      }),
    );
    expect(failure.details['faults']).toHaveLength(100);
    expect(failure.message).toContain('and 51 more');
  });
});
