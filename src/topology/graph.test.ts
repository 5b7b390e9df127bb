import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ComponentDescription } from './description.js';
import {
  cycleComponents,
  graphStages,
  graphWarnings,
  listSubscriptions,
  unreachableComponents,
} from './graph.js';

function component(id: string, kind: 'spout' | 'bolt', sources: readonly string[]): ComponentDescription {
  return {
    id,
    kind,
    parallelism: 1,
    tasks: null,
    streams: [{ name: 'default', fields: [] }],
    inputs: kind === 'spout' ? [] : [{ name: 'default', fields: [] }],
    subscriptions: sources.map((source) => ({
      input: 'default',
      source,
      stream: 'default',
      grouping: { kind: 'shuffle' },
    })),
    stateful: false,
    movable: false,
    tickMs: null,
    manual: false,
    unordered: false,
  };
}

/** `{ b: 'a c' }`: bolt b gets rows from a and c; a component without sources is a spout. */
function graph(sources: Readonly<Record<string, string>>): { components: ComponentDescription[] } {
  return {
    components: Object.entries(sources).map(([id, names]) =>
      component(
        id,
        names === '' ? 'spout' : 'bolt',
        names.split(' ').filter((name) => name !== ''),
      ),
    ),
  };
}

describe('graphStages', () => {
  it('puts each bolt behind all bolts it gets rows from, and spouts nowhere', () => {
    expect(
      graphStages(graph({ last: 'first second', s: '', second: 'first', first: 's', alone: 's' })),
    ).toEqual([['first', 'alone'], ['second'], ['last']]);
  });

  it('puts the bolts of a cycle into one stage', () => {
    expect(graphStages(graph({ s: '', a: 's c', b: 'a', c: 'b', after: 'b', self: 'after self' }))).toEqual([
      ['a', 'b', 'c'],
      ['after'],
      ['self'],
    ]);
  });

  it('gives no stage where there is no bolt', () => {
    expect(graphStages(graph({ s: '' }))).toEqual([]);
  });

  it('is a topological order of every random graph', () => {
    const anyGraph = fc.integer({ min: 1, max: 14 }).chain((size) =>
      fc.record({
        spouts: fc.integer({ min: 1, max: size }),
        edges: fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 30 }),
        size: fc.constant(size),
      }),
    );
    fc.assert(
      fc.property(anyGraph, ({ size, spouts, edges }) => {
        const components = Array.from({ length: size }, (_, target) =>
          component(
            `c${target}`,
            target < spouts ? 'spout' : 'bolt',
            target < spouts ? [] : edges.filter(([, to]) => to === target).map(([from]) => `c${from}`),
          ),
        );
        const stages = graphStages({ components });
        const cycles = cycleComponents({ components });
        const stageOf = new Map(stages.flatMap((stage, index) => stage.map((id) => [id, index] as const)));
        expect([...stageOf.keys()].sort()).toEqual(
          components
            .filter(({ kind }) => kind === 'bolt')
            .map(({ id }) => id)
            .sort(),
        );
        expect(stages.every((stage) => stage.length > 0)).toBe(true);
        const reaches = reachability(components);
        for (const { id, subscriptions } of components) {
          const isOnCycle = reaches(id, id);
          expect(cycles.has(id)).toBe(isOnCycle);
          for (const { source } of subscriptions) {
            const sameCycle = reaches(id, source);
            if (sameCycle) expect(cycles.get(source)).toBe(cycles.get(id));
            const [from, to] = [stageOf.get(source) ?? -1, stageOf.get(id)!];
            expect(sameCycle ? from === to : from < to).toBe(true);
          }
        }
      }),
      { seed: 7, numRuns: 500 },
    );
  });

  it('does not run out of stack on a chain of 100,000 bolts, nor on a ring of them', () => {
    const chain = Array.from({ length: 100_000 }, (_, index) =>
      component(`c${index}`, index === 0 ? 'spout' : 'bolt', index === 0 ? [] : [`c${index - 1}`]),
    );
    expect(graphStages({ components: chain })).toHaveLength(99_999);
    expect(cycleComponents({ components: chain }).size).toBe(0);
    const ring = chain.map(({ id }, index) => component(id, 'bolt', [`c${(index + 99_999) % 100_000}`]));
    expect(graphStages({ components: ring })).toHaveLength(1);
    expect(cycleComponents({ components: ring }).size).toBe(100_000);
  });
});

/** Reachability by at least one edge, by plain search: the reference for the clever way. */
function reachability(components: readonly ComponentDescription[]): (from: string, to: string) => boolean {
  return (from, to) => {
    const seen = new Set<string>();
    const toVisit = [from];
    for (let id = toVisit.pop(); id !== undefined; id = toVisit.pop()) {
      for (const target of components) {
        if (seen.has(target.id) || !target.subscriptions.some(({ source }) => source === id)) continue;
        seen.add(target.id);
        toVisit.push(target.id);
      }
    }
    return seen.has(to);
  };
}

describe('cycleComponents', () => {
  it('numbers cycles in declared order, a bolt that feeds itself included', () => {
    const cycles = cycleComponents(
      graph({ s: '', self: 's self', b: 's c', c: 'b', tail: 'c', x: 'tail y', y: 'x z', z: 'y' }),
    );
    expect([...cycles]).toEqual([
      ['self', 0],
      ['b', 1],
      ['c', 1],
      ['x', 2],
      ['y', 2],
      ['z', 2],
    ]);
  });
});

describe('unreachableComponents', () => {
  it('finds bolts that no spout feeds, directly or not', () => {
    expect(
      unreachableComponents(graph({ s: '', a: 's', ring: 'ring', behind: 'ring', mixed: 'ring a' })),
    ).toEqual(['ring', 'behind']);
  });
});

describe('graphWarnings', () => {
  it('names what cannot be reached, and cycles', () => {
    expect(graphWarnings(graph({ s: '', ring: 'ring', a: 's' }))).toEqual([
      'No row of any spout can reach "ring".',
      expect.stringContaining('cycle: "ring".'),
    ]);
  });

  it('stays short for a huge cycle', () => {
    const ids = Array.from({ length: 1000 }, (_, index) => `c${index}`);
    const components = ids.map((id, index) => component(id, 'bolt', [ids[(index + 1) % 1000]!]));
    expect(graphWarnings({ components }).at(-1)!.length).toBeLessThan(500);
  });
});

describe('listSubscriptions', () => {
  it('numbers subscriptions in declared order and says their place in their bolt', () => {
    const listed = listSubscriptions(graph({ s: '', a: 's', join: 'a s' }));
    expect(listed.map(({ index, target, place, source }) => [index, target, place, source])).toEqual([
      [0, 'a', 0, 's'],
      [1, 'join', 0, 'a'],
      [2, 'join', 1, 's'],
    ]);
  });
});
