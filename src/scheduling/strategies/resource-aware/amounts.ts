/**
 * Resources as whole millionths. Sums of whole numbers are exact in any order, so a placement that is undone leaves
 * exactly what was there, and whether something fits never depends on the order in which it was added up.
 */

const PARTS = 1_000_000;

/** Beyond this, sums would be rounded: more than any machine has. */
const MOST = Number.MAX_SAFE_INTEGER;

/** The amount of a value as people write it: percent of a core, MB, pieces. Negative and missing values are 0. */
export function toAmount(value: number | undefined): number {
  if (value === undefined || !(value > 0)) return 0;
  return Math.min(Math.round(value * PARTS), MOST);
}

export function toValue(amount: number): number {
  return amount / PARTS;
}

/** Indexes of the resources that every machine and request has; others by name follow. */
export const CPU = 0;
export const MEMORY = 1;
export const FIRST_GENERIC = 2;

/** Index of nothing. */
export const NONE = -1;
