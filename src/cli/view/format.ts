/** Numbers, times and columns as people read them. Pure. */

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

/** Cuts a text that is longer than `width`, visibly. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : width < 1 ? '' : `${text.slice(0, width - 1)}…`;
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
    if (last !== undefined && last.length + 1 + word.length <= width)
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
  cell(row: T): string;
}

/** The characters that `columns` needs to show everything. */
export function columnsWidth<T>(rows: readonly T[], all: readonly Column<T>[]): number {
  const widths = all.map((column) =>
    rows.reduce((widest, row) => Math.max(widest, column.cell(row).length), column.title.length),
  );
  return widths.reduce((sum, one) => sum + one, 2 * (all.length - 1));
}

/**
 * Rows as aligned columns of plain text, two spaces apart, the titles first. The first column gives way when all do not
 * fit into `width`; what even so does not fit is cut.
 */
export function columns<T>(rows: readonly T[], all: readonly Column<T>[], width: number): readonly string[] {
  const cells = [all.map(({ title }) => title), ...rows.map((row) => all.map((column) => column.cell(row)))];
  const widths = all.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)));
  const gaps = 2 * (all.length - 1);
  const others = widths.slice(1).reduce((sum, one) => sum + one, 0);
  widths[0] = Math.max(Math.min(8, widths[0]!), Math.min(widths[0]!, width - others - gaps));
  return cells.map((line) => {
    const padded = line.map((cell, i) => {
      const text = cut(cell, widths[i]!);
      return all[i]!.align === 'left' ? text.padEnd(widths[i]!) : text.padStart(widths[i]!);
    });
    return cut(padded.join('  ').trimEnd(), width);
  });
}
