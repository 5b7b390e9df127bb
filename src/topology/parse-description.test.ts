import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IsobarError } from '../base/index.js';
import { bolt, canonicalDescription, spout, t, topology, validateDescription } from './index.js';
import type { TopologyDescription, TopologyFault } from './index.js';

const example = topology('example', { 'topology.workers': 2, 'topology.rack-names': ['a', 'b'] }, (b) => {
  const source = b.spout('lines', spout({ emits: { sentence: t.string }, read: () => [] }), { tasks: 3 });
  const split = bolt({
    takes: { sentence: t.string },
    emits: { word: t.string, json: t.nullable(t.json()) },
    streams: { rejects: { sentence: t.string } },
    process: () => undefined,
  });
  const words = b.bolt('split', split).shuffle(source);
  const join = bolt({
    inputs: { word: { word: t.string }, reject: { sentence: t.string } },
    every: '1s',
    prepare: () => ({ process: { word: () => 0, reject: () => 0 }, tick: () => 0 }),
  });
  b.bolt('join', join).on.word.fields(words, ['word']).on.reject.direct(words.streams.rejects);
}).build().description;

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function faultsOf(value: unknown): readonly TopologyFault[] {
  try {
    validateDescription(value);
  } catch (error) {
    if (!(error instanceof IsobarError)) throw error;
    expect(error.code).toBe('DESCRIPTION_INVALID');
    return error.details['faults'] as readonly TopologyFault[];
  }
  return [];
}

/** The example with the value at a path replaced, as a client could send it. */
function changed(path: readonly (string | number)[], value: unknown): unknown {
  const copy = asJson(example);
  let parent = copy as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) parent = parent[step] as Record<string | number, unknown>;
  parent[path.at(-1)!] = value;
  return copy;
}

describe('validateDescription', () => {
  it('gives an equal, frozen copy of a valid description', () => {
    const sent = asJson(example);
    const received = validateDescription(sent);
    expect(received).toEqual(example);
    expect(received).not.toBe(sent);
    expect(Object.isFrozen(received.components[0]!.streams[0]!.fields)).toBe(true);
    expect(canonicalDescription(received)).toBe(canonicalDescription(example));
  });

  it.each([
    ['description.format', ['format'], 2],
    ['description.name', ['name'], 7],
    ['components', ['components'], {}],
    ['components[1].kind', ['components', 1, 'kind'], 'acker'],
    ['components[1].parallelism', ['components', 1, 'parallelism'], '2'],
    ['components[1].tasks', ['components', 1, 'tasks'], undefined],
    ['components[1].stateful', ['components', 1, 'stateful'], 1],
    ['components[1]', ['components', 1, 'resources'], {}],
    [
      'components[1].streams[0].fields[0].kind',
      ['components', 1, 'streams', 0, 'fields', 0, 'kind'],
      'int16',
    ],
    [
      'components[1].streams[0].fields[0].nullable',
      ['components', 1, 'streams', 0, 'fields', 0, 'nullable'],
      null,
    ],
    ['components[1].subscriptions[0]', ['components', 1, 'subscriptions', 0], 'lines'],
    [
      'components[1].subscriptions[0].grouping.kind',
      ['components', 1, 'subscriptions', 0, 'grouping'],
      { kind: 'random' },
    ],
    [
      'components[1].subscriptions[0].grouping',
      ['components', 1, 'subscriptions', 0, 'grouping'],
      { kind: 'all', fields: [] },
    ],
    [
      'components[2].subscriptions[0].grouping.fields',
      ['components', 2, 'subscriptions', 0, 'grouping', 'fields'],
      'word',
    ],
    ['components[2].tickMs', ['components', 2, 'tickMs'], '1s'],
    ['settings', ['settings'], { a: { b: 1 } }],
    ['settings', ['settings'], []],
    ['warnings[0]', ['warnings', 0], 7],
  ] as const)('refuses a wrong shape at %s', (where, path, value) => {
    expect(faultsOf(changed(path, value)).map((fault) => fault.where)).toEqual([where]);
  });

  it.each([
    ['TOPOLOGY_NAME_ILLEGAL', ['name'], 'a/b'],
    ['COMPONENT_ID_ILLEGAL', ['components', 2, 'id'], '__acker'],
    ['COMPONENT_ID_ILLEGAL', ['components', 2, 'id'], '__proto__'],
    ['COMPONENT_ID_DUPLICATE', ['components', 2, 'id'], 'split'],
    ['PARALLELISM_ILLEGAL', ['components', 2, 'parallelism'], 0],
    ['PARALLELISM_ILLEGAL', ['components', 0, 'tasks'], 1e9],
    ['STREAM_UNKNOWN', ['components', 1, 'subscriptions', 0, 'stream'], 'other'],
    ['COMPONENT_UNKNOWN', ['components', 1, 'subscriptions', 0, 'source'], 'other'],
    ['COMPONENT_UNKNOWN', ['components', 1, 'subscriptions', 0, 'source'], '__proto__'],
    ['FIELD_UNKNOWN', ['components', 2, 'subscriptions', 0, 'grouping', 'fields', 0], 'other'],
    ['FIELDS_GROUPING_EMPTY', ['components', 2, 'subscriptions', 0, 'grouping', 'fields'], []],
    ['FIELD_KIND_MISMATCH', ['components', 1, 'inputs', 0, 'fields', 0, 'kind'], 'bytes'],
    ['FIELD_MISSING', ['components', 1, 'inputs', 0, 'fields', 0, 'name'], 'other'],
    ['FIELD_NAME_ILLEGAL', ['components', 1, 'streams', 0, 'fields', 1, 'name'], '__proto__'],
    ['FIELD_NAME_ILLEGAL', ['components', 1, 'streams', 0, 'fields', 1, 'name'], 'word'],
    ['STREAM_ID_ILLEGAL', ['components', 0, 'streams', 1], { name: '__ack_init', fields: [] }],
    ['STREAM_ID_ILLEGAL', ['components', 0, 'streams', 1], { name: 'default', fields: [] }],
    ['BOLT_WITHOUT_INPUT', ['components', 1, 'subscriptions'], []],
    ['SPOUT_HAS_INPUT', ['components', 0, 'inputs'], [{ name: 'default', fields: [] }]],
    ['DEFINITION_ILLEGAL', ['components', 0, 'stateful'], true],
    ['DEFINITION_ILLEGAL', ['components', 2, 'tickMs'], -1],
    ['DEFINITION_ILLEGAL', ['components', 0, 'streams', 0, 'name'], ''],
  ] as const)('refuses a broken rule: %s at %j', (code, path, value) => {
    expect(faultsOf(changed(path, value)).map((fault) => fault.code)).toContain(
      code === 'DEFINITION_ILLEGAL' && value === '' ? 'STREAM_ID_ILLEGAL' : code,
    );
  });

  it('applies every rule to a name that comes as the key __proto__', () => {
    expect(
      faultsOf(JSON.parse(JSON.stringify(example).replace('"topology.workers"', '"__proto__"'))),
    ).toEqual([expect.objectContaining({ code: 'SETTINGS_INVALID' })]);
  });

  it('bounds what it reads and what it reports', () => {
    const components = asJson(example.components) as unknown[];
    const huge = { ...example, components: Array.from({ length: 10_001 }, () => components[0]) };
    expect(faultsOf(huge)).toHaveLength(1);
    expect(faultsOf({ ...example, components: Array.from({ length: 10_000 }, () => 7) })).toHaveLength(100);
    expect(faultsOf(changed(['name'], 'x'.repeat(1_000_000)))).toHaveLength(1);
    const many = Array.from({ length: 5 }, (_, index) => ({
      ...example.components[0]!,
      id: `s${index}`,
      tasks: 1_000_000,
    }));
    expect(faultsOf({ ...example, components: [...example.components, ...many] })).toEqual([]);
    const fields = Array.from({ length: 1_000 }, (_, index) => ({
      name: `f${index}`,
      kind: 'int32',
      nullable: false,
    }));
    expect(faultsOf(changed(['components', 0, 'streams', 1], { name: 'wide', fields }))).toEqual([]);
  });

  it('throws nothing but DESCRIPTION_INVALID, whatever it is given', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(faultsOf(value).length).toBeGreaterThan(0);
      }),
      { seed: 3, numRuns: 300 },
    );
    const paths: (readonly (string | number)[])[] = [];
    collectPaths(asJson(example), [], paths);
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) => {
        faultsOf(changed(path, value));
      }),
      { seed: 5, numRuns: 2000 },
    );
  });
});

function collectPaths(
  value: unknown,
  path: readonly (string | number)[],
  paths: (readonly (string | number)[])[],
): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const step = Array.isArray(value) ? Number(key) : key;
    paths.push([...path, step]);
    collectPaths(inner, [...path, step], paths);
  }
}

describe('canonicalDescription', () => {
  it('is the same whatever order keys were set in, and leaves out warnings only', () => {
    const reversed = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value;
      if (Array.isArray(value)) return value.map(reversed);
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, inner]) => [key, reversed(inner)]),
      );
    };
    const other = reversed({ ...example, warnings: ['one'] }) as TopologyDescription;
    expect(canonicalDescription(other)).toBe(canonicalDescription(example));
    const renamed = { ...example, name: 'other' };
    expect(canonicalDescription(renamed)).not.toBe(canonicalDescription(example));
    const resettled = { ...example, settings: {} };
    expect(canonicalDescription(resettled)).not.toBe(canonicalDescription(example));
  });

  it('tells descriptions apart by the order of fields and components', () => {
    const [first, ...rest] = example.components;
    expect(canonicalDescription({ ...example, components: [...rest, first!] })).not.toBe(
      canonicalDescription(example),
    );
  });
});
