import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heaviestFirst } from './heaviest-first.js';
import { leastLoaded } from './least-loaded.js';

const seed = 20_263;

/** Small whole loads, as task counts are; whole ones that lie far apart; fractions, and nothing at all. */
const kinds = {
  'task counts': fc.integer({ min: 1, max: 9 }),
  'large whole loads': fc.oneof(fc.integer({ min: 1, max: 3000 }), fc.constant(2 ** 52)),
  fractions: fc.oneof(
    fc.integer({ min: 0, max: 20 }).map((load) => load / 4),
    fc.constant(1e-20),
  ),
};

describe('the least loaded machine', () => {
  for (const [name, load] of Object.entries(kinds)) {
    it(`is found at each pick, by its tie among equals: ${name}`, () => {
      const machine = fc.record({
        load: fc.oneof(fc.constant(0), load),
        places: fc.integer({ min: 1, max: 6 }),
      });
      const problem = fc.record({
        machines: fc.array(machine, { maxLength: 8 }),
        added: fc.array(load, { maxLength: 40 }),
        turn: fc.integer({ min: 1, max: 7 }),
      });
      fc.assert(
        fc.property(problem, ({ machines, added, turn }) => {
          const loads = Float64Array.from(machines, (one) => one.load);
          const left = machines.map(({ places }) => places);
          // Ties grow with what a machine got, in steps that mix their order.
          const ties = Float64Array.from(machines, (_, index) => ((index * turn) % 11) + index / 100);
          const queue = leastLoaded(loads, ties, [...machines.keys()], Float64Array.from(added));
          for (const amount of added) {
            const open = [...left.keys()].filter((index) => left[index]! > 0);
            const expected = open.sort((a, b) => loads[a]! - loads[b]! || ties[a]! - ties[b]!)[0] ?? -1;
            expect(queue.first).toBe(expected);
            if (expected < 0) return;
            loads[expected]! += amount;
            ties[expected]! += turn;
            if (--left[expected]! === 0) queue.shift();
            else queue.grown();
          }
        }),
        { seed, numRuns: 400 },
      );
    });
  }
});

describe('the order by load', () => {
  it('has the heaviest first and equal loads as listed', () => {
    const load = fc.oneof(fc.integer({ min: 0, max: 5 }), fc.double({ min: 0, max: 1e9, noNaN: true }));
    fc.assert(
      fc.property(fc.array(load, { maxLength: 60 }), (loads) => {
        const expected = [...loads.keys()].sort((a, b) => loads[b]! - loads[a]! || a - b);
        expect([...heaviestFirst(Float64Array.from(loads))]).toEqual(expected);
      }),
      { seed, numRuns: 500 },
    );
  });
});
