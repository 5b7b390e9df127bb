/**
 * How wide a text is on a terminal, in cells, and texts that are made to fit. Chinese, Japanese and Korean characters and emoji take two
 * cells, combining marks none (Unicode's East Asian Width, the ranges that terminals agree on). Pure.
 */

const GRAPHEMES = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** Every character of it is one cell wide: most texts. */
const NARROW = /^[\u0020-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u259f]*$/;
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|^\p{Emoji_Presentation}/u;
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;

/** Cells that a text takes. */
export function textWidth(text: string): number {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(text)) width += graphemeWidth(segment);
  return width;
}

/** Cuts a text that takes more than `width` cells, visibly. */
export function cut(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  return width < 1 ? '' : `${startOf(text, width - 1)}…`;
}

/** Cuts a name that takes more than `width` cells in its middle, visibly: names that begin alike stay apart by their ends. */
export function cutName(name: string, width: number): string {
  if (textWidth(name) <= width || width < 8) return cut(name, width);
  const end = Math.floor((width - 1) / 3);
  return `${startOf(name, width - 1 - end)}…${endOf(name, end)}`;
}

/** A text with spaces behind or before it, up to `width` cells. */
export function padded(text: string, width: number, align: 'left' | 'right'): string {
  const spaces = ' '.repeat(Math.max(0, width - textWidth(text)));
  return align === 'left' ? text + spaces : spaces + text;
}

function startOf(text: string, width: number): string {
  let taken = '';
  let left = width;
  for (const { segment } of GRAPHEMES.segment(text)) {
    left -= graphemeWidth(segment);
    if (left < 0) break;
    taken += segment;
  }
  return taken;
}

function endOf(text: string, width: number): string {
  let taken = '';
  let left = width;
  for (const { segment } of [...GRAPHEMES.segment(text)].reverse()) {
    left -= graphemeWidth(segment);
    if (left < 0) break;
    taken = segment + taken;
  }
  return taken;
}

function graphemeWidth(grapheme: string): number {
  if (WIDE.test(grapheme)) return 2;
  return NO_WIDTH.test(grapheme) ? 0 : 1;
}
