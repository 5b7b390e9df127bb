/** Sentences that are longer than a line. Pure. */

/** A sentence as lines of at most `width`, broken between words; those after the first are indented by `by`. */
export function indented(text: string, width: number, by = 2): string[] {
  const lead = /^ */.exec(text)![0];
  const [first = '', ...words] = text.slice(lead.length).split(' ');
  const lines: string[] = [];
  let line = `${lead}${first}`;
  for (const word of words) {
    if (line.length + 1 + word.length <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = `${' '.repeat(by)}${word}`;
    }
  }
  return [...lines, line];
}
