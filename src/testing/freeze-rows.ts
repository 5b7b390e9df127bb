/** Rows that user code is given are frozen, so that code which changes a row that others may see fails in its test. */
import type { Row } from '../topology/index.js';

/** Freezes the row with everything in it, and returns it. */
export function frozenRow(row: Row): Row {
  freezeDeeply(row, new Set());
  return row;
}

function freezeDeeply(value: unknown, seen: Set<object>): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return;
  // The elements of a view cannot be frozen.
  if (ArrayBuffer.isView(value)) return;
  seen.add(value);
  Object.freeze(value);
  for (const part of Object.values(value)) freezeDeeply(part, seen);
}
