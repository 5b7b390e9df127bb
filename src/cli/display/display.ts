/** Where a run is shown: a live screen, plain lines, JSON lines or almost nothing. One is chosen for the whole run. */
import type { ErrorRecord } from '../../base/index.js';
import type { RunEnd } from '../view/report.js';
import type { ProblemView, RunView } from '../view/view.js';
import type { Warning } from '../view/warnings.js';

export interface Display {
  /** What is being done before anything runs. */
  preparing(what: string): void;
  submitted(topologyId: string, name: string, notes: readonly string[]): void;
  /** Called several times a second with the newest view. */
  view(view: RunView): void;
  /** A line that user code has printed. */
  output(worker: string, line: string): void;
  /** The first occurrence of an error while the topology runs. */
  problem(problem: ProblemView): void;
  /** Something that may need attention, the first time that it is seen. */
  warning(warning: Warning): void;
  /** A sentence worth knowing. */
  note(text: string): void;
  /** The topology has ended. */
  end(end: RunEnd): void;
  /** The run could not begin, or did not survive this. */
  failure(error: ErrorRecord, exitCode: number): void;
  /** Leaves the terminal as it was; twice is harmless. */
  close(): void;
}

/** A stream that text goes to. */
export interface TextStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}
