/** What has happened on a cluster, a line each, and as JSON. Pure. */
import type { ClusterEvent } from '../../api/index.js';
import type { Colors } from '../colors.js';
import { grouped, printable } from './format.js';

const BAD: ReadonlySet<ClusterEvent['kind']> = new Set([
  'worker-died',
  'worker-not-started',
  'thread-died',
  'machine-gone',
  'failed',
  'not-placed',
  'not-scheduled',
  'not-loaded',
  'move-returned',
  'move-cancelled',
]);

/** `2026-11-30 12:56:13  words  worker-died  s1:6700  WORKER_LOST: was ended by SIGKILL (3 ×, first 12:50:01)`. */
export function eventLine(event: ClusterEvent, colors: Colors): string {
  const { kind, topology, place, code, message, count, firstMs, lastMs } = event;
  const label = BAD.has(kind) ? colors.red(kind.padEnd(KIND_WIDTH)) : kind.padEnd(KIND_WIDTH);
  const who = [topology, place].filter((part) => part !== null).map((part) => printable(part));
  const what = code === null ? printable(message) : `${code}: ${printable(message)}`;
  const again = count === 1 ? '' : ` (${grouped(count)} ×, first ${momentText(firstMs)})`;
  return `${colors.dim(momentText(lastMs))}  ${label}  ${[...who, what].join('  ')}${again}`;
}

/** A few events of one topology, below others of its facts. */
export function eventLines(
  events: readonly ClusterEvent[],
  ago: (atMs: number) => string,
): readonly string[] {
  return events.map(({ kind, place, code, message, count, lastMs }) => {
    const where = place === null ? '' : ` ${printable(place)}`;
    const again = count === 1 ? '' : ` (${grouped(count)} ×)`;
    return `${ago(lastMs)}: ${kind}${where}: ${code === null ? '' : `${code}: `}${printable(message)}${again}`;
  });
}

/** As docs/json-output.md says. */
export function eventJson(event: ClusterEvent): object {
  return { type: 'event', ...event };
}

const KIND_WIDTH = 'worker-not-started'.length;

/** UTC, as in logs. */
function momentText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ');
}
