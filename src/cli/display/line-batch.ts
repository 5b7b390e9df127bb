/**
 * Lines for a stream, many in one write: a write for each would take longer than what prints them, which does not wait.
 * What was given in one turn of the event loop is written before the next; whoever writes elsewhere in between flushes first.
 */
import type { TextStream } from './display.js';

const FULL_CHARACTERS = 65_536;

export class LineBatch {
  readonly #stream: TextStream;
  #text = '';

  constructor(stream: TextStream) {
    this.#stream = stream;
  }

  /** @param line without its end */
  add(line: string): void {
    if (this.#text === '') queueMicrotask(() => this.flush());
    this.#text += `${line}\n`;
    if (this.#text.length >= FULL_CHARACTERS) this.flush();
  }

  flush(): void {
    const text = this.#text;
    this.#text = '';
    if (text !== '') this.#stream.write(text);
  }
}
