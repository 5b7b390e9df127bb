/** Orders that make every result the same for the same input: text by UTF-16 code unit, executors by first task. */
import type { ExecutorRange } from './assignment.js';

/** Ascending by UTF-16 code unit, the default order of both Java and JavaScript; never by locale. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareRanges(a: ExecutorRange, b: ExecutorRange): number {
  return a[0] - b[0] || a[1] - b[1];
}

/** The name of an executor as a map key, `first-last`. */
export function rangeKey(range: ExecutorRange): string {
  return `${range[0]}-${range[1]}`;
}

/** Do both lists hold the same executors in the same order? */
export function sameRanges(a: readonly ExecutorRange[], b: readonly ExecutorRange[]): boolean {
  return a.length === b.length && a.every((range, index) => compareRanges(range, b[index]!) === 0);
}

export function isSorted<T>(items: readonly T[], compare: (a: T, b: T) => number): boolean {
  for (let index = 1; index < items.length; index++) {
    if (compare(items[index - 1]!, items[index]!) > 0) return false;
  }
  return true;
}

/** The list itself if it is in order already, which nobody changes; else a sorted copy. */
export function inOrder<T>(items: readonly T[], compare: (a: T, b: T) => number): readonly T[] {
  return isSorted(items, compare) ? items : [...items].sort(compare);
}
