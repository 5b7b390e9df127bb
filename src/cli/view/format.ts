/** Numbers, times and columns as people read them. Pure. */
import { indented } from './indented.js';
import { cut, cutName, padded, textWidth } from './text-width.js';

export { cut } from './text-width.js';

/** `57,340`. */
export function grouped(value: number): string {
  const [whole, fraction] = String(value).split('.');
  const text = whole!.replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',');
  return fraction === undefined ? text : `${text}.${fraction}`;
}

const SCALES = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const;

/** At most six characters: `9,999`, `12.3k`, `4.56M`. */
export function compact(value: number): string {
  if (value < 9999.5) return grouped(Math.round(value));
  for (const [scale, letter] of SCALES) {
    if (value >= scale * 0.9995) return `${threeDigits(value / scale)}${letter}`;
  }
  return String(value);
}

/** Rates below ten keep one digit behind the point. */
export function rate(perSecond: number | null): string {
  if (perSecond === null) return '–';
  return perSecond > 0 && perSecond < 9.95 ? perSecond.toFixed(1) : compact(perSecond);
}

/** `830µs`, `1.23ms`, `4.56s`. */
export function micros(value: number | null): string {
  if (value === null) return '–';
  if (value < 999.5) return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}µs`;
  if (value < 999_500) return `${threeDigits(value / 1000)}ms`;
  return `${threeDigits(value / 1e6)}s`;
}

/** `250 ms`, `12.3 s`, `4 m 05 s`, `2 h 03 m`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} m`;
}

/** `182 MB`. */
export function megabytes(bytes: number): string {
  return `${grouped(Math.round(bytes / 1e6))} MB`;
}

/** `1 row`, `2 rows`. */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(value)} ${value === 1 ? noun : plural}`;
}

/** Control characters of others must not steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}

/** A sentence as lines of at most `width` characters, broken between words; a longer word gets a line of its own. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(last) + 1 + textWidth(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function threeDigits(value: number): string {
  return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : String(Math.round(value));
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

export interface Column<T> {
  readonly title: string;
  readonly align: 'left' | 'right';
  /** Where not all columns fit, those that have this are left out, the smallest number first. */
  readonly givesWay?: number;
  cell(row: T): string;
}

/** Names keep so many cells as long as a column can give way to them instead. */
const ROOM_OF_NAMES = 24;
/** And so many in any case. */
const LEAST_ROOM = 8;

/** The cells that `columns` needs to show everything. */
export function columnsWidth<T>(rows: readonly T[], all: readonly Column<T>[]): number {
  return lineWidth(all.map((column) => columnWidth(rows, column)));
}

/**
 * Rows as aligned columns of plain text, two spaces apart, the titles first. Where all do not fit into `width`, those that give way are left
 * out; then names in the first column are cut in their middle; what even so does not fit is cut.
 */
export function columns<T>(rows: readonly T[], all: readonly Column<T>[], width: number): readonly string[] {
  const shown = fitting(rows, all, width);
  const widths = shown.map((column) => columnWidth(rows, column));
  const [first = 0, ...others] = widths;
  const room = width - lineWidth([0, ...others]);
  widths[0] = Math.max(Math.min(LEAST_ROOM, first), Math.min(first, room));
  const cells = [
    shown.map(({ title }) => title),
    ...rows.map((row) => shown.map((column) => column.cell(row))),
  ];
  return cells.map((line) => {
    const texts = line.map((cell, i) =>
      padded((i === 0 ? cutName : cut)(cell, widths[i]!), widths[i]!, shown[i]!.align),
    );
    return cut(texts.join('  ').trimEnd(), width);
  });
}

/** `all` without what has to give way, so that names have room. */
function fitting<T>(rows: readonly T[], all: readonly Column<T>[], width: number): readonly Column<T>[] {
  let shown = all;
  const order = all
    .filter(({ givesWay }) => givesWay !== undefined)
    .sort((a, b) => (a.givesWay ?? 0) - (b.givesWay ?? 0));
  for (const next of order) {
    const [first = 0, ...others] = shown.map((column) => columnWidth(rows, column));
    if (lineWidth([Math.min(first, ROOM_OF_NAMES), ...others]) <= width) break;
    shown = shown.filter((column) => column !== next);
  }
  return shown;
}

function columnWidth<T>(rows: readonly T[], column: Column<T>): number {
  return rows.reduce((widest, row) => Math.max(widest, textWidth(column.cell(row))), textWidth(column.title));
}

function lineWidth(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, 2 * (widths.length - 1));
}

/**
 * Columns whose last one is a remark that some rows have. Where it does not fit, remarks stand below their rows, broken between words.
 */
export function columnsWithRemarks<T>(
  rows: readonly T[],
  all: readonly Column<T>[],
  remark: Column<T>,
  width: number,
): readonly string[] {
  const complete = [...all, remark];
  if (columnsWidth(rows, complete) <= width) return columns(rows, complete, width);
  const [titles = '', ...lines] = columns(rows, all, width);
  return [
    titles,
    ...lines.flatMap((line, i) => {
      const text = remark.cell(rows[i]!);
      return text === '' ? [line] : [line, ...indented(`    ${text}`, width, 4)];
    }),
  ];
}
