/** Runs the cases of a word count: all subjects of a case window by window in turn, so that a slow minute hits each of them. */
import type { BenchOptions } from './options.js';
import { summarize, type Report } from './report.js';
import type { StartSubject, SubjectOptions } from './subject.js';
import { measureWindow, type WindowResult } from './window.js';

export interface NamedSubject {
  /** Empty for the one that the bench is about. */
  readonly name: string;
  readonly start: StartSubject;
}

type Metric = readonly [name: string, unit: string, read: (result: WindowResult) => number | undefined];

const METRICS: readonly Metric[] = [
  ['words-per-second', '1/s', (result) => result.wordsPerSecond],
  ['sentences-per-second', '1/s', (result) => result.sentencesPerSecond],
  ['latency-p50', 'ms', (result) => result.latency?.p50Ms],
  ['latency-p99', 'ms', (result) => result.latency?.p99Ms],
  ['cpu-seconds-per-million-words', 's', (result) => result.cpuSecondsPerMillionWords],
  ['peak-rss', 'MB', (result) => result.peakResidentMb],
  ['peak-pss', 'MB', (result) => result.peakProportionalMb],
  ['others-share', '%', (result) => result.othersShare * 100],
];

/** Windows of each subject, in the order of `subjects`. */
export async function runCase(
  subjects: readonly NamedSubject[],
  subjectOptions: SubjectOptions,
  options: BenchOptions,
): Promise<WindowResult[][]> {
  const results = subjects.map((): WindowResult[] => []);
  for (let window = 0; window < options.windows; window++) {
    for (const [place, subject] of subjects.entries()) {
      results[place]!.push(await measureWindow(subject.start, subjectOptions, options.window));
    }
  }
  return results;
}

/** Prints all metrics of one subject; with `to`, as ratios to another one's. */
export function reportCase(
  report: Report,
  names: { readonly bench: string; readonly case: string },
  results: readonly WindowResult[],
  to?: { readonly name: string; readonly results: readonly WindowResult[] },
): void {
  for (const [metric, unit, read] of METRICS) {
    const values = numbers(results, read);
    if (values.length === 0) continue;
    const compared =
      to === undefined || metric === 'others-share'
        ? undefined
        : { name: to.name, values: numbers(to.results, read) };
    report(summarize({ ...names, metric, unit }, values, compared));
  }
}

function numbers(results: readonly WindowResult[], read: Metric[2]): number[] {
  return results.map(read).filter((value) => value !== undefined);
}
