import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CustomGrouping, FieldDescription, GroupingDescription, Row } from '../../topology/index.js';
import { hashFields } from './field-hash.js';
import { createRouter } from './groupings.js';
import type { Router } from './router.js';

const SEED = 20_260_705;
const FIELDS: FieldDescription[] = [
  { name: 'word', kind: 'string', nullable: false },
  { name: 'count', kind: 'int64', nullable: false },
  { name: 'at', kind: 'timestamp', nullable: true },
];
const ROW: Row = { word: 'apple', count: 7, at: null };

function router(
  grouping: GroupingDescription,
  options: {
    targetCount?: number;
    sourceIndex?: number;
    random?: () => number;
    custom?: CustomGrouping;
  } = {},
): Router {
  return createRouter({
    grouping,
    fields: FIELDS,
    targetCount: 4,
    sourceIndex: 0,
    random: () => 0,
    source: 'lines',
    stream: 'default',
    ...options,
  });
}

/** A small generator of chance with a fixed start (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function chosenBy(own: Router, row: Row = ROW, direct?: number): number[] {
  const count = own.route(row, direct);
  return [...own.chosen.subarray(0, count)];
}

function countsOf(own: Router, targetCount: number, rows: readonly Row[]): number[] {
  const counts = new Array<number>(targetCount).fill(0);
  for (const row of rows) for (const target of chosenBy(own, row)) counts[target]!++;
  return counts;
}

const words = (count: number, distinct: number): Row[] =>
  Array.from({ length: count }, (_, i) => ({ word: `w${(i * 7919) % distinct}`, count: i, at: null }));

function codeOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
  return 'nothing thrown';
}

describe('every grouping', () => {
  it('chooses existing targets only (R1), as many as its kind says', () => {
    const kind = fc.constantFrom<GroupingDescription>(
      { kind: 'shuffle' },
      { kind: 'local-or-shuffle' },
      { kind: 'fields', fields: ['word'] },
      { kind: 'fields', fields: ['count', 'at'] },
      { kind: 'partial-key', fields: ['word'] },
      { kind: 'all' },
      { kind: 'global' },
      { kind: 'none' },
    );
    fc.assert(
      fc.property(
        kind,
        fc.integer({ min: 1, max: 40 }),
        fc.nat(100),
        fc.array(fc.string(), { minLength: 1 }),
        (grouping, targetCount, sourceIndex, texts) => {
          const own = router(grouping, { targetCount, sourceIndex, random: seeded(sourceIndex) });
          for (const [i, word] of texts.entries()) {
            const chosen = chosenBy(own, { word, count: i, at: null });
            expect(chosen).toHaveLength(grouping.kind === 'all' ? targetCount : 1);
            expect(
              chosen.every((target) => Number.isInteger(target) && target >= 0 && target < targetCount),
            ).toBe(true);
          }
        },
      ),
      { seed: SEED },
    );
  });

  it('chooses nothing where there are no targets, and refuses a named task unless it is direct', () => {
    for (const kind of ['shuffle', 'local-or-shuffle', 'all', 'global', 'none'] as const) {
      expect(chosenBy(router({ kind }, { targetCount: 0 }))).toEqual([]);
      expect(codeOf(() => router({ kind }).route(ROW, 0))).toBe('DIRECT_EMIT_MISMATCH');
    }
    expect(chosenBy(router({ kind: 'fields', fields: ['word'] }, { targetCount: 0 }))).toEqual([]);
    expect(codeOf(() => router({ kind: 'fields', fields: ['word'] }).route(ROW, 1))).toBe(
      'DIRECT_EMIT_MISMATCH',
    );
  });
});

describe('shuffle', () => {
  it('goes round, and senders start at different targets', () => {
    const own = router({ kind: 'shuffle' }, { targetCount: 3, sourceIndex: 1 });
    expect(Array.from({ length: 7 }, () => chosenBy(own)[0])).toEqual([1, 2, 0, 1, 2, 0, 1]);
    const firsts = Array.from(
      { length: 6 },
      (_, sourceIndex) => chosenBy(router({ kind: 'shuffle' }, { targetCount: 3, sourceIndex }))[0],
    );
    expect(firsts).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it('keeps to near targets as long as they are set, evenly, and returns to all (R3)', () => {
    for (const kind of ['shuffle', 'local-or-shuffle'] as const) {
      const own = router({ kind }, { targetCount: 5, sourceIndex: 3 });
      own.setLocal(Int32Array.of(1, 4));
      expect(countsOf(own, 5, words(101, 5))).toEqual([0, 50, 0, 0, 51]);
      own.setLocal(null);
      expect(countsOf(own, 5, words(100, 5))).toEqual([20, 20, 20, 20, 20]);
      own.setLocal(Int32Array.of(2));
      expect(countsOf(own, 5, words(10, 5))).toEqual([0, 0, 10, 0, 0]);
      own.setLocal(new Int32Array(0));
      expect(countsOf(own, 5, words(50, 5))).toEqual([10, 10, 10, 10, 10]);
    }
  });

  it('goes on where it was when the same near targets are set again', () => {
    const own = router({ kind: 'shuffle' }, { targetCount: 4 });
    const near = Int32Array.of(0, 1, 2);
    own.setLocal(near);
    expect([chosenBy(own)[0], chosenBy(own)[0]]).toEqual([0, 1]);
    own.setLocal(Int32Array.of(0, 1, 2));
    expect([chosenBy(own)[0], chosenBy(own)[0]]).toEqual([2, 0]);
  });
});

describe('fields', () => {
  it('sends equal keys from every sender to the target that the published hash names (R2)', () => {
    for (const names of [['word'], ['count'], ['count', 'word'], ['at', 'word']]) {
      const a = router({ kind: 'fields', fields: names }, { targetCount: 7, sourceIndex: 0 });
      const b = router({ kind: 'fields', fields: names }, { targetCount: 7, sourceIndex: 5 });
      b.setLocal(Int32Array.of(3));
      for (const row of words(500, 60)) {
        const expected = hashFields(row, names) % 7;
        expect(chosenBy(a, row)).toEqual([expected]);
        expect(chosenBy(b, row)).toEqual([expected]);
      }
    }
  });

  it('spreads many keys evenly', () => {
    const counts = countsOf(
      router({ kind: 'fields', fields: ['word'] }, { targetCount: 8 }),
      8,
      words(40_000, 40_000),
    );
    // Five standard deviations of a fair draw.
    for (const count of counts) expect(Math.abs(count - 5000)).toBeLessThan(5 * Math.sqrt(5000));
  });

  it('is refused for a field that the stream does not have', () => {
    expect(codeOf(() => router({ kind: 'fields', fields: ['wrd'] }))).toBe('FIELD_UNKNOWN');
  });
});

describe('partial key', () => {
  it('sends a key to two targets at most, the same from every sender, and halves a hot key (R2)', () => {
    const targetCount = 9;
    const rows = words(6000, 200);
    const targets = new Map<unknown, Set<number>>();
    for (const sourceIndex of [0, 1, 2]) {
      const own = router({ kind: 'partial-key', fields: ['word'] }, { targetCount, sourceIndex });
      for (const row of rows) {
        const [target] = chosenBy(own, row);
        targets.set(row['word'], (targets.get(row['word']) ?? new Set()).add(target!));
      }
    }
    for (const own of targets.values()) expect(own.size).toBeLessThanOrEqual(2);
    const hot = router({ kind: 'partial-key', fields: ['word'] }, { targetCount });
    const counts = countsOf(
      hot,
      targetCount,
      Array.from({ length: 1000 }, () => ROW),
    );
    expect(counts.filter((count) => count > 0)).toEqual([500, 500]);
  });

  it('balances skewed keys better than fields do, and its pairs of candidates are spread evenly', () => {
    const random = seeded(5);
    const skewed = Array.from(
      { length: 30_000 },
      (): Row => ({ word: `w${Math.floor(1 / (random() + 0.001))}`, count: 0, at: null }),
    );
    const worst = (kind: 'fields' | 'partial-key'): number =>
      Math.max(...countsOf(router({ kind, fields: ['word'] }, { targetCount: 10 }), 10, skewed));
    expect(worst('partial-key')).toBeLessThan(worst('fields') * 0.75);
    // Two rows of a key show both of its candidates.
    const pairs = new Map<string, number>();
    for (const row of words(60_000, 60_000)) {
      const own = router({ kind: 'partial-key', fields: ['word'] }, { targetCount: 4 });
      const pair = [...chosenBy(own, row), ...chosenBy(own, row)].sort().join();
      pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
    }
    expect(pairs.size).toBe(6);
    expect([...pairs.keys()].every((pair) => pair[0] !== pair[2])).toBe(true);
  });

  it('works with one target', () => {
    expect(chosenBy(router({ kind: 'partial-key', fields: ['word'] }, { targetCount: 1 }))).toEqual([0]);
  });
});

describe('the other groupings', () => {
  it('all reaches each target once, global the first, none any by chance', () => {
    expect(chosenBy(router({ kind: 'all' }))).toEqual([0, 1, 2, 3]);
    expect(chosenBy(router({ kind: 'global' }))).toEqual([0]);
    const counts = countsOf(router({ kind: 'none' }, { random: seeded(1) }), 4, words(8000, 3));
    for (const count of counts) expect(Math.abs(count - 2000)).toBeLessThan(5 * Math.sqrt(1500));
    expect(chosenBy(router({ kind: 'none' }, { random: () => 1 - 2 ** -53 }))).toEqual([3]);
  });

  it('direct goes to the task named, and to no other', () => {
    const own = router({ kind: 'direct' });
    expect(chosenBy(own, ROW, 2)).toEqual([2]);
    for (const direct of [undefined, -1, 4, 1.5, NaN]) {
      expect(codeOf(() => own.route(ROW, direct))).toBe('DIRECT_EMIT_MISMATCH');
    }
    expect(codeOf(() => router({ kind: 'direct' }, { targetCount: 0 }).route(ROW, 0))).toBe(
      'DIRECT_EMIT_MISMATCH',
    );
  });

  it('custom goes where user code says: one, several, none, one twice', () => {
    const prepared: unknown[] = [];
    const choices: (number | number[])[] = [3, [0, 2], [], [1, 1, 1, 1, 1, 1], 0];
    const custom: CustomGrouping = {
      prepare: (...facts) => void prepared.push(...facts),
      choose: (row, taskCount) => {
        expect([row, taskCount]).toEqual([ROW, 4]);
        return choices.shift()!;
      },
    };
    const own = router({ kind: 'custom' }, { custom });
    expect(prepared).toEqual(['lines', 'default', 4]);
    const seen = choices.slice().map(() => chosenBy(own));
    expect(seen).toEqual([[3], [0, 2], [], [1, 1, 1, 1, 1, 1], [0]]);
  });

  it('custom is checked: a choice that is no task, and a throw, are errors with codes', () => {
    for (const choice of [4, -1, 0.5, NaN, '1', null, undefined, [0, 4], ['1'], {}]) {
      const own = router({ kind: 'custom' }, { custom: { choose: () => choice as number } });
      expect(codeOf(() => own.route(ROW, undefined))).toBe('CUSTOM_GROUPING_ILLEGAL');
    }
    const thrower: CustomGrouping = {
      choose: () => {
        throw new Error('mine');
      },
    };
    expect(codeOf(() => router({ kind: 'custom' }, { custom: thrower }).route(ROW, undefined))).toBe(
      'USER_CODE_FAILED',
    );
    expect(codeOf(() => router({ kind: 'custom' }))).toBe('INTERNAL');
  });
});
