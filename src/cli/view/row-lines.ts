/** A live row as people read it, and as JSON. Pure. */
import type { TapRow } from '../../api/index.js';
import type { Colors } from '../colors.js';
import { printable } from './format.js';

/** `12:56:13.884 s1:6700 split[7] default {"word":"storm"}`. */
export function rowLine(row: TapRow, component: string, colors: Colors): string {
  const time = new Date(row.atMs).toISOString().slice(11, 23);
  const text = `${printable(row.row)}${row.isCut ? '…' : ''}`;
  const speaker = `${printable(component)}[${row.task}]`;
  return `${colors.dim(time)} ${row.worker} ${colors.bold(speaker)} ${printable(row.stream)} ${text}`;
}

/** As docs/json-output.md says: a row that was cut is text. */
export function rowJson({ atMs, worker, task, stream, row, isCut }: TapRow, component: string): object {
  const time = new Date(atMs).toISOString();
  const value: unknown = isCut ? row : JSON.parse(row);
  return { type: 'row', time, worker, component, task, stream, row: value, isCut };
}
