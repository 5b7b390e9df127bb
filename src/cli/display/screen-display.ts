/** The run on a terminal: a live screen, with what the topology prints above it, and the report at the end. */
import type { ErrorRecord } from '../../base/index.js';
import type { Colors } from '../colors.js';
import { errorText, type OwnPlace } from '../error-text.js';
import { cut } from '../view/format.js';
import { renderReport, type RunEnd } from '../view/report.js';
import { renderScreen } from '../view/screen.js';
import type { ProblemView, RunView } from '../view/view.js';
import type { Warning } from '../view/warnings.js';
import type { Display, TextStream } from './display.js';
import { LiveScreen } from './live-screen.js';
import { problemText } from './plain-display.js';

export class ScreenDisplay implements Display {
  readonly #out: TextStream;
  readonly #screen: LiveScreen;
  readonly #colors: Colors;
  readonly #place: OwnPlace;
  #lines: string[] = [];

  /** @param screen the terminal; `out` gets what is the result of the run, and may be something else */
  constructor(options: { out: TextStream; screen: TextStream; colors: Colors; place: OwnPlace }) {
    this.#out = options.out;
    this.#screen = new LiveScreen(options.screen);
    this.#colors = options.colors;
    this.#place = options.place;
  }

  preparing(what: string): void {
    this.#screen.draw([this.#colors.dim(cut(`${what} …`, this.#screen.width))]);
  }

  submitted(_topologyId: string, _name: string, notes: readonly string[]): void {
    for (const note of notes) this.note(note);
  }

  view(view: RunView): void {
    this.#flush();
    this.#screen.draw(renderScreen(view, this.#screen.width, this.#colors));
  }

  output(_worker: string, line: string): void {
    // Many lines at once cost one drawing.
    this.#lines.push(`${line}\n`);
    if (this.#lines.length >= 1000) this.#flush();
  }

  problem(problem: ProblemView): void {
    this.#above(`${problemText(problem, this.#place, this.#colors)}\n`);
  }

  warning({ text }: Warning): void {
    this.#above(`${this.#colors.magenta('warning')}: ${text}\n`);
  }

  note(text: string): void {
    this.#above(`${this.#colors.magenta('note')}: ${text}\n`);
  }

  end(end: RunEnd): void {
    this.#flush();
    this.#screen.close();
    const width = this.#screen.width;
    this.#out.write(`\n${renderReport(end, width).join('\n')}\n`);
  }

  failure(error: ErrorRecord): void {
    this.#flush();
    this.#screen.close();
    this.#screen.above(`${errorText(error, this.#place, this.#colors)}\n`);
  }

  close(): void {
    this.#flush();
    this.#screen.close();
  }

  #above(text: string): void {
    this.#flush();
    this.#screen.above(text);
  }

  #flush(): void {
    if (this.#lines.length === 0) return;
    this.#screen.above(this.#lines.splice(0).join(''), this.#out);
  }
}
