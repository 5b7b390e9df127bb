import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Arrangement, arrangeGroups } from './arrange-groups.js';
import { type Amounts, EvenAmounts } from './even-amounts.js';
import { type Ends, NearNeighbours } from './near-neighbours.js';

const seed = 20_266;

interface Case {
  readonly arrangement: Arrangement;
  readonly amounts: readonly Amounts[];
  readonly ends: readonly Ends[];
  readonly rackOf: Int32Array;
}

const anyAmounts = (kinds: number): fc.Arbitrary<Amounts> =>
  fc
    .dictionary(
      fc.nat(kinds - 1).map((kind) => String(kind)),
      fc.integer({ min: 1, max: 2 }),
    )
    .map((held) => Object.entries(held).map(([kind, amount]) => [Number(kind), amount] as const));

const anyCase: fc.Arbitrary<Case> = fc
  .record({
    places: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
    groups: fc.array(
      fc.record({
        load: fc.integer({ min: 1, max: 2 }),
        current: fc.integer({ min: -3, max: 3 }),
        assigned: fc.nat(3),
        amounts: anyAmounts(3),
        outgoing: anyAmounts(3),
        incoming: anyAmounts(3),
      }),
      { maxLength: 9 },
    ),
    racks: fc.array(fc.nat(1), { minLength: 4, maxLength: 4 }),
  })
  .map(({ places, groups, racks }) => {
    const machines = places.length;
    const free = Int32Array.from(places);
    const machineLoads = new Float64Array(machines);
    const assigned = Int32Array.from(groups, ({ assigned: wish, load }) => {
      const machine = wish % machines;
      if (free[machine] === 0) return -1;
      free[machine]!--;
      machineLoads[machine]! += load;
      return machine;
    });
    const loads = Float64Array.from(groups, ({ load }) => load);
    const current = Int32Array.from(groups, (one) =>
      one.current < machines ? Math.max(-1, one.current) : -1,
    );
    return {
      arrangement: { loads, assigned, current, free, machineLoads },
      amounts: groups.map(({ amounts }) => amounts),
      ends: groups.map(({ outgoing, incoming }) => ({ outgoing, incoming })),
      rackOf: Int32Array.from(racks.slice(0, machines)),
    };
  });

function arrange({ arrangement, amounts, ends, rackOf }: Case, spreads: boolean, keeps: boolean): Int32Array {
  const objectives = [
    ...(spreads ? [new EvenAmounts(rackOf.length, amounts, arrangement.assigned)] : []),
    ...(keeps ? [new NearNeighbours(rackOf, ends, arrangement.assigned)] : []),
  ];
  return arrangeGroups(arrangement, objectives).assigned;
}

const spreadOf = ({ amounts, rackOf }: Case, assigned: Int32Array): number =>
  new EvenAmounts(rackOf.length, amounts, assigned).value;
const distanceOf = ({ ends, rackOf }: Case, assigned: Int32Array): number =>
  new NearNeighbours(rackOf, ends, assigned).value;

function loadsOf({ arrangement: { loads, machineLoads } }: Case, assigned: Int32Array): readonly number[] {
  const result = [...machineLoads].map(() => 0);
  for (const [group, machine] of assigned.entries()) if (machine >= 0) result[machine]! += loads[group]!;
  return result;
}

function movesOf({ arrangement: { current } }: Case, assigned: Int32Array): number {
  return [...assigned].filter(
    (machine, group) => machine >= 0 && current[group]! >= 0 && current[group] !== machine,
  ).length;
}

describe('arranging groups that weigh the same', () => {
  it('puts what is of one kind on different machines', () => {
    const assigned = Int32Array.of(0, 0, 1, 1);
    const kinds: readonly Amounts[] = [[[0, 1]], [[0, 1]], [[1, 1]], [[1, 1]]];
    const arranged = arrangeGroups(
      {
        loads: new Float64Array(4).fill(1),
        assigned,
        current: new Int32Array(4).fill(-1),
        free: new Int32Array(2),
        machineLoads: Float64Array.of(2, 2),
      },
      [new EvenAmounts(2, kinds, assigned)],
    );
    expect(new Set(arranged.assigned.slice(0, 2))).toEqual(new Set([0, 1]));
    expect(arranged.exchanges).toBe(1);
  });

  it('costs neither load nor moves nor an objective that comes first, whatever the case', () => {
    fc.assert(
      fc.property(anyCase, (one) => {
        const { assigned, free } = one.arrangement;
        const [spread, both, near] = [
          arrange(one, true, false),
          arrange(one, true, true),
          arrange(one, false, true),
        ];
        const before = loadsOf(one, assigned);
        for (const result of [spread, both, near]) {
          const loads = loadsOf(one, result);
          expect(Math.max(...loads)).toBeLessThanOrEqual(Math.max(...before));
          expect(Math.min(...loads)).toBeGreaterThanOrEqual(Math.min(...before));
          expect(movesOf(one, result)).toBeLessThanOrEqual(movesOf(one, assigned));
          for (const machine of free.keys()) {
            const held = (list: Int32Array): number => list.filter((where) => where === machine).length;
            expect(held(result)).toBeLessThanOrEqual(held(assigned) + free[machine]!);
          }
          expect([...result].map((machine) => machine < 0)).toEqual(
            [...assigned].map((machine) => machine < 0),
          );
        }
        expect(spreadOf(one, spread)).toBeLessThanOrEqual(spreadOf(one, assigned));
        expect(spreadOf(one, both)).toBeLessThanOrEqual(spreadOf(one, spread));
        expect(distanceOf(one, near)).toBeLessThanOrEqual(distanceOf(one, assigned) + 1e-9);
      }),
      { seed, numRuns: 2000 },
    );
  });

  it('ends where no exchange of two new groups of equal load would make it better', () => {
    fc.assert(
      fc.property(anyCase, (one) => {
        const { loads, current } = one.arrangement;
        const result = arrange(one, true, true);
        const [spread, distance] = [spreadOf(one, result), distanceOf(one, result)];
        for (const [a, onA] of result.entries()) {
          for (const [b, onB] of result.entries()) {
            const isAllowed =
              onA >= 0 && onB >= 0 && current[a]! < 0 && current[b]! < 0 && loads[a] === loads[b];
            if (!isAllowed || a >= b) continue;
            const other = Int32Array.from(result);
            [other[a], other[b]] = [onB, onA];
            const isBetter =
              spreadOf(one, other) < spread ||
              (spreadOf(one, other) === spread && distanceOf(one, other) < distance - 1e-9);
            expect(isBetter).toBe(false);
          }
        }
      }),
      { seed, numRuns: 500 },
    );
  });

  it('says the change of an exchange before it is made', () => {
    fc.assert(
      fc.property(
        anyCase,
        fc.nat(8),
        fc.nat(8),
        fc.nat(3),
        ({ arrangement, amounts, ends, rackOf }, a, b, free) => {
          const { assigned } = arrangement;
          const from = assigned[a] ?? -1;
          const other = b < assigned.length && assigned[b]! >= 0 && assigned[b] !== from ? b : -1;
          const to = other < 0 ? free % rackOf.length : assigned[other]!;
          fc.pre(from >= 0 && from !== to);
          for (const objective of [
            new EvenAmounts(rackOf.length, amounts, assigned),
            new NearNeighbours(rackOf, ends, assigned),
          ]) {
            const [before, change] = [objective.value, objective.changeBy(a, from, to, other)];
            objective.move(a, from, to);
            if (other >= 0) objective.move(other, to, from);
            expect(objective.value - before).toBeCloseTo(change, 9);
          }
        },
      ),
      { seed, numRuns: 1000 },
    );
  });

  it('takes a moved group home for another one of the same load', () => {
    // Two of a kind would meet on machine 1: instead the other group of machine 0 goes there.
    const kinds: readonly Amounts[] = [[[0, 1]], [[1, 1]], [[0, 1]]];
    const assigned = Int32Array.of(1, 0, 1);
    const { assigned: arranged } = arrangeGroups(
      {
        loads: new Float64Array(3).fill(1),
        assigned,
        current: Int32Array.of(0, 0, 1),
        free: new Int32Array(2),
        machineLoads: Float64Array.of(1, 2),
      },
      [new EvenAmounts(2, kinds, assigned)],
    );
    expect([...arranged]).toEqual([0, 1, 1]);
  });
});

describe('the work of an arrangement', () => {
  function judgedBy(effort: number): number {
    const count = 20;
    let judged = 0;
    arrangeGroups(
      {
        loads: new Float64Array(count).fill(1),
        assigned: Int32Array.from({ length: count }, (_, group) => group),
        current: new Int32Array(count).fill(-1),
        free: new Int32Array(count),
        machineLoads: new Float64Array(count).fill(1),
      },
      [
        {
          changeBy: () => {
            judged++;
            return 0;
          },
          move: () => undefined,
          effortOf: () => effort,
        },
      ],
    );
    return judged;
  }

  it('is bounded where groups exchange very much with each other, too', () => {
    expect(judgedBy(1)).toBe(20 * 19);
    expect(judgedBy(256_000)).toBe(40);
  });
});
