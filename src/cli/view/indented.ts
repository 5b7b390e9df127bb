/** Sentences that are longer than a line. Pure. */
import { textWidth } from './text-width.js';

/** A sentence as lines of at most `width`, broken between words; those after the first are indented by `by`. */
export function indented(text: string, width: number, by = 2): string[] {
  const lead = /^ */.exec(text)![0];
  const [first = '', ...words] = text.slice(lead.length).split(' ');
  const lines: string[] = [];
  let line = `${lead}${first}`;
  for (const word of words) {
    if (textWidth(line) + 1 + textWidth(word) <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = `${' '.repeat(by)}${word}`;
    }
  }
  return [...lines, line];
}
