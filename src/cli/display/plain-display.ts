/** The run where nothing can be redrawn: a line every few seconds; or, quiet, only what the topology prints, and errors. */
import type { ErrorRecord } from '../../base/index.js';
import type { Colors } from '../colors.js';
import { errorText, type OwnPlace } from '../error-text.js';
import { renderReport, type RunEnd, troubleSentences } from '../view/report.js';
import { plainLine } from '../view/screen.js';
import type { ProblemView, RunView } from '../view/view.js';
import type { Warning } from '../view/warnings.js';
import type { Display, TextStream } from './display.js';
import { LineBatch } from './line-batch.js';

const LINE_PERIOD_MS = 5000;
const REPORT_WIDTH = 120;

export interface PlainDisplayOptions {
  /** Results: what the topology prints, and the report. */
  readonly out: TextStream;
  /** Everything else. */
  readonly err: TextStream;
  readonly colors: Colors;
  readonly place: OwnPlace;
  readonly quiet: boolean;
  nowMs(): number;
}

export class PlainDisplay implements Display {
  readonly #options: PlainDisplayOptions;
  readonly #printed: LineBatch;
  #lineMs = -Infinity;
  #phase = '';

  constructor(options: PlainDisplayOptions) {
    this.#options = options;
    this.#printed = new LineBatch(options.out);
  }

  preparing(what: string): void {
    this.#say(`${what} …`);
  }

  submitted(topologyId: string, _name: string, notes: readonly string[]): void {
    this.#say(`submitted as ${topologyId}`);
    for (const note of notes) this.note(note);
  }

  view(view: RunView): void {
    const nowMs = this.#options.nowMs();
    const isDue = nowMs - this.#lineMs >= LINE_PERIOD_MS || view.phase !== this.#phase;
    if (!isDue) return;
    this.#lineMs = nowMs;
    this.#phase = view.phase;
    this.#say(plainLine(view));
  }

  output(_worker: string, line: string): void {
    this.#printed.add(line);
  }

  problem(problem: ProblemView): void {
    const { err, place, colors } = this.#options;
    this.#printed.flush();
    err.write(`${problemText(problem, place, colors)}\n`);
  }

  warning({ text }: Warning): void {
    this.#say(`${this.#options.colors.magenta('warning')}: ${text}`);
  }

  note(text: string): void {
    this.#say(`note: ${text}`);
  }

  end(end: RunEnd): void {
    const { out, err, quiet } = this.#options;
    this.#printed.flush();
    if (!quiet) out.write(`\n${renderReport(end, REPORT_WIDTH).join('\n')}\n`);
    else {
      err.write(
        troubleSentences(end)
          .map((sentence) => `${sentence}\n`)
          .join(''),
      );
      if (end.status.deadLetterFiles.length > 0) {
        err.write(
          `Dead letters are in:\n${end.status.deadLetterFiles.map((path) => `  ${path}\n`).join('')}`,
        );
      }
    }
  }

  failure(error: ErrorRecord): void {
    const { err, place, colors } = this.#options;
    this.#printed.flush();
    err.write(`${errorText(error, place, colors)}\n`);
  }

  close(): void {
    this.#printed.flush();
  }

  #say(text: string): void {
    if (this.#options.quiet) return;
    this.#printed.flush();
    this.#options.err.write(`${text}\n`);
  }
}

/** An error in a task, with where it happened. */
export function problemText(
  { component, task, error }: ProblemView,
  place: OwnPlace,
  colors: Colors,
): string {
  const where = component === '' ? '' : `${colors.dim(`${component}${task === 0 ? '' : ` task ${task}`}`)} `;
  return `${where}${errorText(error, place, colors)}`;
}
