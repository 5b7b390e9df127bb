/**
 * A block of lines at the end of a terminal that is drawn again in place, with text above it that scrolls away.
 * Each drawing is one write that overwrites line by line, so nothing flickers; the cursor is hidden meanwhile.
 */
import type { TextStream } from './display.js';

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const ERASE_LINE_END = '\u001b[K';
const ERASE_BELOW = '\u001b[J';

export class LiveScreen {
  readonly #stream: TextStream;
  #drawn: readonly string[] = [];
  #isOpen = false;

  constructor(stream: TextStream) {
    this.#stream = stream;
  }

  get width(): number {
    return Math.max(20, this.#stream.columns ?? 80);
  }

  /** Replaces the block. What is higher than the terminal is cut: a line that has scrolled away cannot be reached again. */
  draw(lines: readonly string[]): void {
    const height = Math.max(1, (this.#stream.rows ?? 24) - 1);
    const shown = lines.length <= height ? lines : [...lines.slice(0, height - 1), '…'];
    const start = this.#isOpen ? '' : HIDE_CURSOR;
    this.#isOpen = true;
    this.#stream.write(
      start + this.#toTop() + shown.map((line) => `${line}${ERASE_LINE_END}\n`).join('') + ERASE_BELOW,
    );
    this.#drawn = shown;
  }

  /** Writes whole lines above the block. */
  above(text: string, stream: TextStream = this.#stream): void {
    const block = this.#drawn;
    this.#stream.write(this.#toTop() + ERASE_BELOW);
    this.#drawn = [];
    stream.write(text);
    if (block.length > 0) this.draw(block);
  }

  /** Removes the block and shows the cursor again; drawing opens it anew. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#stream.write(this.#toTop() + ERASE_BELOW + SHOW_CURSOR);
    this.#drawn = [];
  }

  #toTop(): string {
    return this.#drawn.length === 0 ? '' : `\r\u001b[${this.#drawn.length}A`;
  }
}
