/** Something countable that is short, in parts that are as equal as the wishes allow. */

/**
 * By name: at most what it wants; nobody gets less than another one that got no more than it wanted. The rest of a division
 * goes to the first names in the order given. Cost: O(names log names).
 */
export function fairShares(
  wanted: readonly (readonly [name: string, count: number])[],
  available: number,
): ReadonlyMap<string, number> {
  const shares = new Map(wanted.map(([name]) => [name, 0]));
  const ascending = wanted
    .map(([name, count], index) => ({ name, count: Math.max(0, count), index }))
    .sort((a, b) => a.count - b.count || a.index - b.index);
  let left = Math.max(0, available);
  for (const [position, { name, count }] of ascending.entries()) {
    const sharers = ascending.length - position;
    const equal = Math.floor(left / sharers);
    if (count <= equal) {
      shares.set(name, count);
      left -= count;
      continue;
    }
    // Everybody from here on wants more than an equal part.
    const rest = ascending.slice(position).sort((a, b) => a.index - b.index);
    const more = left - equal * sharers;
    for (const [place, one] of rest.entries()) shares.set(one.name, equal + (place < more ? 1 : 0));
    return shares;
  }
  return shares;
}

/** By name: what it wants as long as there is any, in the order given. */
export function firstShares(
  wanted: readonly (readonly [name: string, count: number])[],
  available: number,
): ReadonlyMap<string, number> {
  let left = Math.max(0, available);
  return new Map(
    wanted.map(([name, count]) => {
      const share = Math.min(Math.max(0, count), left);
      left -= share;
      return [name, share];
    }),
  );
}
