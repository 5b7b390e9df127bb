/** The run as JSON lines on standard output; nothing else goes there. */
import type { ErrorRecord } from '../../base/index.js';
import { plainColors } from '../colors.js';
import { errorText, type OwnPlace, userFrames } from '../error-text.js';
import {
  errorLine,
  noteLine,
  outputLine,
  problemLine,
  statusLine,
  submittedLine,
  summaryLine,
  warningLine,
} from '../json-lines.js';
import type { RunEnd } from '../view/report.js';
import type { ProblemView, RunView } from '../view/view.js';
import type { Warning } from '../view/warnings.js';
import type { Display, TextStream } from './display.js';
import { LineBatch } from './line-batch.js';

const PERIOD_MS = 1000;
/** Polls are not exact; a line that is due in a moment is due. */
const EARLY_MS = 50;

export interface JsonDisplayOptions {
  readonly out: TextStream;
  /** Errors that end the run, as text. */
  readonly err: TextStream;
  readonly place: OwnPlace;
  wallMs(): number;
}

export class JsonDisplay implements Display {
  readonly #options: JsonDisplayOptions;
  readonly #lines: LineBatch;
  #lineMs = -Infinity;

  constructor(options: JsonDisplayOptions) {
    this.#options = options;
    this.#lines = new LineBatch(options.out);
  }

  preparing(): void {
    // The first line is about something that has been submitted.
  }

  submitted(topologyId: string, name: string, notes: readonly string[]): void {
    this.#line(submittedLine(topologyId, name, notes, this.#options.wallMs()));
  }

  view(view: RunView): void {
    const atMs = this.#options.wallMs();
    if (atMs - this.#lineMs < PERIOD_MS - EARLY_MS) return;
    this.#lineMs = atMs;
    this.#line(statusLine(view, atMs));
  }

  output(worker: string, line: string): void {
    this.#line(outputLine(worker, line));
  }

  problem(problem: ProblemView): void {
    this.#line(problemLine(problem, userFrames(problem.error, this.#options.place), this.#options.wallMs()));
  }

  warning(warning: Warning): void {
    this.#line(warningLine(warning, this.#options.wallMs()));
  }

  note(text: string): void {
    this.#line(noteLine(text, this.#options.wallMs()));
  }

  end(end: RunEnd): void {
    this.#line(summaryLine(end, this.#options.wallMs()));
  }

  failure(error: ErrorRecord, exitCode: number): void {
    const { place, err } = this.#options;
    this.#line(errorLine(error, userFrames(error, place), exitCode, this.#options.wallMs()));
    err.write(`${errorText(error, place, plainColors)}\n`);
  }

  close(): void {
    this.#lines.flush();
  }

  #line(line: object): void {
    this.#lines.add(JSON.stringify(line));
  }
}
