/** Executors, slots and numbers of a plan in few words. Pure. */
import type { Move } from '../../scheduling/index.js';
import { grouped, printable } from '../view/format.js';

/** `split 3-4, count 7, 9`: components in order of their first task. */
export function executorsText(executors: Move['executors']): string {
  const parts = new Map<string, string[]>();
  for (const { component, range } of executors) {
    const own = parts.get(component) ?? [];
    parts.set(component, own);
    own.push(range[0] === range[1] ? String(range[0]) : `${range[0]}-${range[1]}`);
  }
  return [...parts].map(([component, ranges]) => `${printable(component)} ${rangesText(ranges)}`).join(', ');
}

const MAX_RANGES = 4;

function rangesText(ranges: readonly string[]): string {
  if (ranges.length <= MAX_RANGES) return ranges.join(' ');
  return `${ranges.slice(0, MAX_RANGES - 1).join(' ')} +${ranges.length - MAX_RANGES + 1}`;
}

export function slotText(slot: Move['to']): string {
  return slot === null ? 'nowhere' : `${printable(slot.supervisor)}:${slot.port}`;
}

/** At most two digits behind the point. */
export function figure(value: number): string {
  return grouped(Math.round(value * 100) / 100);
}
