/** Something countable that is short, in parts that are as equal as the wishes allow. */

/** What somebody wants beyond what it has already; `has` not given: nothing. */
export type Wish = readonly [name: string, more: number, has?: number];

/**
 * By name, what it gets beyond what it has: at most what it wants; nobody ends with less than another one that got something, unless
 * it got all that it wanted. The rest of a division goes to the first names in the order given. Cost: O(names log amounts).
 */
export function fairShares(wishes: readonly Wish[], available: number): ReadonlyMap<string, number> {
  const left = Math.max(0, available);
  let highest = 0;
  for (const [, more, has = 0] of wishes) highest = Math.max(highest, has + more);
  // The highest level to which all can be filled.
  let [low, high] = [0, highest];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const needed = wishes.reduce((sum, wish) => sum + upTo(middle, wish), 0);
    if (needed <= left) low = middle;
    else high = middle - 1;
  }
  let rest = left - wishes.reduce((sum, wish) => sum + upTo(low, wish), 0);
  return new Map(
    wishes.map((wish) => {
      const share = upTo(low, wish);
      const isNext = rest > 0 && upTo(low + 1, wish) > share;
      if (isNext) rest--;
      return [wish[0], share + (isNext ? 1 : 0)];
    }),
  );
}

/** What it takes to bring somebody to a level, or to all that it wants. */
function upTo(level: number, [, more, has = 0]: Wish): number {
  return Math.max(0, Math.min(more, level - has));
}

/** By name: what it wants as long as there is any, in the order given. */
export function firstShares(wanted: readonly Wish[], available: number): ReadonlyMap<string, number> {
  let left = Math.max(0, available);
  return new Map(
    wanted.map(([name, count]) => {
      const share = Math.min(Math.max(0, count), left);
      left -= share;
      return [name, share];
    }),
  );
}
