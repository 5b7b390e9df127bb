import { describe, expect, it } from 'vitest';
import { LiveScreen } from './live-screen.js';

/** A terminal that understands what the live screen sends, and keeps what can be seen. */
class Terminal {
  readonly isTTY = true;
  lines: string[] = [''];
  #row = 0;
  #column = 0;
  isCursorHidden = false;
  writes = 0;

  readonly columns = 80;
  readonly rows: number;

  constructor(rows: number) {
    this.rows = rows;
  }

  write(text: string): void {
    this.writes++;
    for (const part of text.matchAll(/\u001b\[(\??\d*)([A-Za-z])|([\s\S])/g)) {
      const [, argument, command, character] = part;
      if (command === 'A') this.#row = Math.max(0, this.#row - Number(argument));
      else if (command === 'K') this.#line = this.#line.slice(0, this.#column);
      else if (command === 'J') {
        this.#line = this.#line.slice(0, this.#column);
        this.lines.length = this.#row + 1;
      } else if (command === 'h' || command === 'l') this.isCursorHidden = command === 'l';
      else if (character === '\r') this.#column = 0;
      else if (character === '\n') {
        this.#row++;
        this.#column = 0;
        this.lines[this.#row] ??= '';
      } else if (character !== undefined) {
        this.#line = this.#line.slice(0, this.#column) + character + this.#line.slice(this.#column + 1);
        this.#column++;
      }
    }
  }

  get #line(): string {
    return this.lines[this.#row] ?? '';
  }

  set #line(text: string) {
    this.lines[this.#row] = text;
  }
}

describe('LiveScreen', () => {
  it('draws in place, one write a drawing, whatever the sizes', () => {
    const terminal = new Terminal(24);
    const screen = new LiveScreen(terminal);
    screen.draw(['first', 'a long line', 'third']);
    screen.draw(['second', 'short']);
    expect(terminal.lines).toEqual(['second', 'short', '']);
    expect(terminal.writes).toBe(2);
    screen.draw(['1', '2', '3', '4']);
    expect(terminal.lines).toEqual(['1', '2', '3', '4', '']);
  });

  it('lets text scroll away above the block', () => {
    const terminal = new Terminal(24);
    const screen = new LiveScreen(terminal);
    screen.draw(['block', 'of two']);
    screen.above('user output\nmore\n');
    expect(terminal.lines).toEqual(['user output', 'more', 'block', 'of two', '']);
  });

  it('never draws more than the terminal is high', () => {
    const terminal = new Terminal(4);
    new LiveScreen(terminal).draw(['1', '2', '3', '4', '5']);
    expect(terminal.lines).toEqual(['1', '2', '…', '']);
  });

  it('gives the cursor back', () => {
    const terminal = new Terminal(24);
    const screen = new LiveScreen(terminal);
    screen.draw(['block']);
    expect(terminal.isCursorHidden).toBe(true);
    screen.close();
    screen.close();
    expect(terminal.isCursorHidden).toBe(false);
    expect(terminal.lines).toEqual(['']);
  });
});
