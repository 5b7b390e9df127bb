import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EdgeIds } from './edge-ids.js';
import { TreeLedger } from './tree-ledger.js';

const SEED = 20_260_702;
const FIRST_NEAR_WRAP = 2 ** 31 - 20;

function ledgerWithLog(
  options: { initialSlots?: number; pendingLimit?: number; firstSequence?: number } = {},
) {
  const completed: [item: number, sequence: number, openedMs: number][] = [];
  const ledger = new TreeLedger<number>({
    pendingLimit: 1000,
    ...options,
    onComplete: (item, sequence, openedMs) => completed.push([item, sequence, openedMs]),
  });
  return { ledger, completed };
}

describe('the tree ledger', () => {
  it('completes a tree when each edge has been seen twice, and hands back item, number and opening time', () => {
    const { ledger, completed } = ledgerWithLog();
    const sequence = ledger.reserve(42, 7.5);
    ledger.commit(sequence, 1 ^ 2, 10 ^ 20);
    ledger.xor(sequence, 1 ^ 3, 10 ^ 30);
    ledger.xor(sequence, 2, 20);
    expect(completed).toEqual([]);
    ledger.xor(sequence, 3, 30);
    expect(completed).toEqual([[42, sequence, 7.5]]);
    expect(ledger.pending).toBe(0);
    expect(ledger.has(sequence)).toBe(false);
  });

  it('completes a tree without rows at the commit', () => {
    const { ledger, completed } = ledgerWithLog();
    ledger.commit(ledger.reserve(1, 0), 0, 0);
    expect(completed).toHaveLength(1);
  });

  it('does not complete before the commit, even if all acks have come, and completes with it (L2)', () => {
    const { ledger, completed } = ledgerWithLog();
    const sequence = ledger.reserve(1, 0);
    ledger.xor(sequence, 5, 6);
    ledger.xor(sequence, 5, 6);
    expect(completed).toEqual([]);
    ledger.xor(sequence, 8, 9);
    ledger.commit(sequence, 8, 9);
    expect(completed).toHaveLength(1);
  });

  it('drops late acks, commits and removals, those for the slot of a later tree included (L1)', () => {
    const { ledger, completed } = ledgerWithLog({ initialSlots: 2 });
    const first = ledger.reserve(1, 0);
    ledger.commit(first, 0, 0);
    const other = ledger.reserve(2, 0);
    ledger.commit(other, 0, 0);
    const third = ledger.reserve(3, 0);
    expect(third & 1).toBe(first & 1);
    ledger.commit(third, 1, 1);
    ledger.xor(first, 1, 1);
    ledger.commit(first, 1, 1);
    expect(ledger.remove(first)).toBeUndefined();
    expect(ledger.itemOf(first)).toBeUndefined();
    expect(ledger.itemOf(third)).toBe(3);
    expect(completed).toHaveLength(2);
  });

  it('lets a slow tree keep its slot by skipping its numbers, and does not grow for it', () => {
    const { ledger, completed } = ledgerWithLog({ initialSlots: 8 });
    const slow = ledger.reserve(-1, 0);
    ledger.commit(slow, 1, 1);
    for (let i = 0; i < 1000; i++) {
      const sequence = ledger.reserve(i, i);
      expect(sequence & 7).not.toBe(slow & 7);
      ledger.commit(sequence, 2, 2);
      ledger.xor(sequence, 2, 2);
    }
    expect(ledger.slots).toBe(8);
    expect(completed).toHaveLength(1000);
    ledger.xor(slow, 1, 1);
    expect(completed[1000]).toEqual([-1, slow, 0]);
  });

  it('grows with the pending trees, not with the trees opened', () => {
    const { ledger } = ledgerWithLog({ initialSlots: 4, pendingLimit: 5000 });
    const open = Array.from({ length: 5000 }, (_, i) => ledger.reserve(i, i));
    expect(new Set(open).size).toBe(5000);
    expect(ledger.slots).toBe(8192);
    for (const [i, sequence] of open.entries()) expect(ledger.itemOf(sequence)).toBe(i);
    for (let i = 0; i < 100_000; i++) ledger.remove(ledger.reserve(i, 0));
    expect(ledger.slots).toBe(8192);
  });

  it('says that it is full at the limit, and never refuses', () => {
    const { ledger } = ledgerWithLog({ pendingLimit: 2 });
    ledger.reserve(1, 0);
    expect(ledger.isFull).toBe(false);
    const second = ledger.reserve(2, 0);
    expect(ledger.isFull).toBe(true);
    ledger.reserve(3, 0);
    ledger.remove(second);
    ledger.remove(second);
    expect(ledger.pending).toBe(2);
  });

  it('numbers trees across the wrap of int32 and passes over a pending tree on every round (L3)', () => {
    const { ledger } = ledgerWithLog({ initialSlots: 4, firstSequence: 2 ** 31 - 2 });
    const slow = ledger.reserve(-1, 0);
    expect(slow).toBe(2 ** 31 - 2);
    const numbers = Array.from({ length: 6 }, (_, i) => {
      const sequence = ledger.reserve(i, 1);
      ledger.commit(sequence, 0, 0);
      return sequence;
    });
    // A number equal to the slow tree's would fall into its slot, and so would every fourth one.
    const start = -(2 ** 31);
    expect(numbers).toEqual([2 ** 31 - 1, start, start + 1, start + 3, start + 4, start + 5]);
    expect(ledger.itemOf(slow)).toBe(-1);
  });

  it('allows the completion callback to open the next trees', () => {
    const opened: number[] = [];
    const ledger: TreeLedger<number> = new TreeLedger<number>({
      initialSlots: 2,
      pendingLimit: 1000,
      onComplete: (item) => {
        if (item < 100) for (let i = 0; i < 3; i++) opened.push(ledger.reserve(item + 100, 0));
      },
    });
    const roots = Array.from({ length: 30 }, (_, i) => ledger.reserve(i, 0));
    for (const root of roots) ledger.commit(root, 0, 0);
    expect(ledger.pending).toBe(90);
    for (const sequence of opened) expect(ledger.has(sequence)).toBe(true);
  });
});

describe('losses', () => {
  it('takes the marked trees that have not moved, oldest first, and leaves those that moved or are new', () => {
    const { ledger } = ledgerWithLog();
    const trees = [1, 2, 3, 4].map((item) => ledger.reserve(item, item));
    for (const sequence of trees) ledger.commit(sequence, 7, 7);
    expect(ledger.markAll(100)).toBe(4);
    const fresh = ledger.reserve(5, 101);
    ledger.commit(fresh, 7, 7);
    ledger.xor(trees[1]!, 1, 1);
    expect(ledger.takeUnmoved()).toEqual([
      { sequence: trees[0], item: 1 },
      { sequence: trees[2], item: 3 },
      { sequence: trees[3], item: 4 },
    ]);
    expect(ledger.takeUnmoved()).toEqual([]);
    expect(ledger.marked).toBe(1);
    expect(ledger.pending).toBe(2);
  });

  it('forgets with a second loss that trees had moved after the first', () => {
    const { ledger } = ledgerWithLog();
    const sequence = ledger.reserve(1, 0);
    ledger.commit(sequence, 7, 7);
    ledger.markAll(0);
    ledger.xor(sequence, 1, 1);
    expect(ledger.takeUnmoved()).toEqual([]);
    expect(ledger.markAll(50)).toBe(1);
    expect(ledger.takeUnmoved()).toEqual([{ sequence, item: 1 }]);
  });

  it('never takes a tree that is not committed, and considers it once it is (L5)', () => {
    const { ledger } = ledgerWithLog();
    const sequence = ledger.reserve(1, 0);
    ledger.markAll(0);
    expect(ledger.takeUnmoved()).toEqual([]);
    expect(ledger.takeQuiet(60_000, 5000)).toEqual([]);
    ledger.commit(sequence, 3, 3);
    expect(ledger.takeQuiet(64_000, 5000)).toEqual([]);
    expect(ledger.takeQuiet(69_000, 5000)).toEqual([{ sequence, item: 1 }]);
  });

  it('takes a marked tree that has been quiet, at the latest an eighth of the quiet time late, and never early', () => {
    const quietMs = 5000;
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 4999 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 700 }),
        (gaps, stepMs) => {
          const { ledger } = ledgerWithLog();
          const sequence = ledger.reserve(1, 0);
          ledger.commit(sequence, 0x7000_0000, 1);
          ledger.markAll(0);
          let lastMs = 0;
          let takenMs = -1;
          const acks = gaps.map((gap) => (lastMs += gap));
          for (let nowMs = 0; takenMs < 0; nowMs += stepMs) {
            while (acks.length > 0 && acks[0]! <= nowMs) {
              ledger.xor(sequence, acks.shift()!, 0);
            }
            if (ledger.takeQuiet(nowMs, quietMs).length > 0) takenMs = nowMs;
          }
          expect(takenMs).toBeGreaterThanOrEqual(lastMs + quietMs);
          expect(takenMs).toBeLessThanOrEqual(lastMs + quietMs * (1 + 1 / 8) + 3 * stepMs);
        },
      ),
      { seed: SEED, numRuns: 200 },
    );
  });

  it('unmarks what completes or is removed (L4)', () => {
    const { ledger } = ledgerWithLog();
    const [a, b] = [ledger.reserve(1, 0), ledger.reserve(2, 0)];
    ledger.commit(a, 1, 1);
    ledger.commit(b, 1, 1);
    ledger.markAll(0);
    ledger.xor(a, 1, 1);
    expect(ledger.marked).toBe(1);
    ledger.remove(b);
    expect(ledger.marked).toBe(0);
    expect(ledger.takeUnmoved()).toEqual([]);
    expect(ledger.takeQuiet(1e6, 1)).toEqual([]);
  });
});

/** What a ledger is, in the plainest words: one Map. */
interface ModelTree {
  item: number;
  high: number;
  low: number;
  openedMs: number;
  place: number;
  committed: boolean;
  marked: boolean;
  moved: boolean;
  progressMs: number;
}

type Step =
  | { kind: 'reserve' | 'unknown' | 'markAll' | 'takeUnmoved' | 'takeQuiet' }
  | { kind: 'commit' | 'ack' | 'settle' | 'remove' | 'late'; pick: number }
  | { kind: 'wait'; ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Step>({ kind: 'reserve' }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('commit' as const), pick: fc.nat(1000) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('ack' as const), pick: fc.nat(1000) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('settle' as const), pick: fc.nat(1000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat(1000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('late' as const), pick: fc.nat(1000) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Step>(
      { kind: 'markAll' },
      { kind: 'takeUnmoved' },
      { kind: 'takeQuiet' },
      { kind: 'unknown' },
    ),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(80) }) },
);

describe('the ledger against a plain Map', () => {
  it('agrees over random operations, from one slot up, across the wrap of the numbers', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 16),
        fc.constantFrom(0, FIRST_NEAR_WRAP, -20),
        fc.array(step, { minLength: 1, maxLength: 300, size: 'max' }),
        runAgainstModel,
      ),
      { seed: SEED, numRuns: 250 },
    );
  });
});

function runAgainstModel(initialSlots: number, firstSequence: number, steps: readonly Step[]): void {
  const quietMs = 100;
  const model = new Map<number, ModelTree>();
  const gone: number[] = [];
  const expected: number[] = [];
  const completed: number[] = [];
  const ids = new EdgeIds(11, steps.length);
  let nowMs = 0;
  let place = 0;
  let mostPending = 0;
  const ledger = new TreeLedger<number>({
    initialSlots,
    firstSequence,
    pendingLimit: 10,
    onComplete: (item) => completed.push(item),
  });
  const pick = (at: number): [number, ModelTree] | undefined => [...model][at % Math.max(1, model.size)];
  const drop = (sequence: number): void => {
    model.delete(sequence);
    gone.push(sequence);
  };
  const xor = (sequence: number, tree: ModelTree, high: number, low: number, commit: boolean): void => {
    tree.high ^= high;
    tree.low ^= low;
    tree.committed ||= commit;
    tree.progressMs = nowMs;
    if (!commit) tree.moved = true;
    if (tree.committed && tree.high === 0 && tree.low === 0) {
      expected.push(tree.item);
      drop(sequence);
    }
  };

  for (const now of steps) {
    switch (now.kind) {
      case 'reserve': {
        const sequence = ledger.reserve(place, nowMs);
        expect(sequence | 0).toBe(sequence);
        expect(model.has(sequence)).toBe(false);
        model.set(sequence, {
          item: place,
          high: 0,
          low: 0,
          openedMs: nowMs,
          place: place++,
          committed: false,
          marked: false,
          moved: false,
          progressMs: 0,
        });
        break;
      }
      case 'commit': {
        const [sequence, tree] = pick(now.pick) ?? [];
        if (sequence === undefined || tree === undefined || tree.committed) break;
        // One commit in four closes the tree at once.
        ids.next();
        const [high, low] = now.pick % 4 === 0 ? [tree.high, tree.low] : [ids.high, ids.low];
        ledger.commit(sequence, high, low);
        xor(sequence, tree, high, low, true);
        break;
      }
      case 'ack':
      case 'settle': {
        const [sequence, tree] = pick(now.pick) ?? [];
        if (sequence === undefined || tree === undefined) break;
        ids.next();
        const [high, low] = now.kind === 'settle' ? [tree.high, tree.low] : [ids.high, ids.low];
        ledger.xor(sequence, high, low);
        xor(sequence, tree, high, low, false);
        break;
      }
      case 'remove': {
        const [sequence, tree] = pick(now.pick) ?? [];
        if (sequence === undefined) break;
        expect(ledger.remove(sequence)).toBe(tree?.item);
        drop(sequence);
        break;
      }
      case 'late': {
        const sequence = gone[now.pick % Math.max(1, gone.length)];
        if (sequence === undefined) break;
        ledger.xor(sequence, 1, 1);
        ledger.commit(sequence, 1, 1);
        expect(ledger.remove(sequence)).toBeUndefined();
        break;
      }
      case 'unknown':
        ledger.xor(firstSequence + 1_000_000, 1, 1);
        break;
      case 'markAll':
        for (const tree of model.values())
          Object.assign(tree, { marked: true, moved: false, progressMs: nowMs });
        expect(ledger.markAll(nowMs)).toBe(model.size);
        break;
      case 'takeUnmoved': {
        const due = [...model].filter(([, tree]) => tree.marked && tree.committed && !tree.moved);
        due.sort(([, a], [, b]) => a.place - b.place);
        expect(ledger.takeUnmoved()).toEqual(due.map(([sequence, { item }]) => ({ sequence, item })));
        for (const [sequence] of due) drop(sequence);
        break;
      }
      case 'takeQuiet':
        for (const { sequence, item } of ledger.takeQuiet(nowMs, quietMs)) {
          const tree = model.get(sequence)!;
          expect(tree).toMatchObject({ item, marked: true, committed: true });
          expect(nowMs - tree.progressMs).toBeGreaterThanOrEqual(quietMs);
          drop(sequence);
        }
        break;
      case 'wait':
        nowMs += now.ms;
        break;
    }
    mostPending = Math.max(mostPending, model.size);
    expect(completed).toEqual(expected);
    expect(ledger.pending).toBe(model.size);
    expect(ledger.isFull).toBe(model.size >= 10);
    expect(ledger.marked).toBe([...model.values()].filter((tree) => tree.marked).length);
    const [oldestSequence, oldest] = [...model].sort(([, a], [, b]) => a.place - b.place)[0] ?? [];
    expect(ledger.oldest()).toEqual(
      oldest === undefined
        ? undefined
        : { sequence: oldestSequence, item: oldest.item, openedMs: oldest.openedMs },
    );
  }
  const visited: [number, number, number][] = [];
  ledger.forEachPending((...tree) => visited.push(tree));
  const known = [...model].map(([sequence, { item, openedMs }]) => [sequence, item, openedMs]);
  expect(visited.sort(([a], [b]) => a - b)).toEqual(known.sort(([a], [b]) => a! - b!));
  expect(ledger.slots).toBeLessThanOrEqual(Math.max(initialSlots, 3 * mostPending));
}
