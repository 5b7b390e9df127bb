/** What a process holds over time: level at the start and at the end, and its slope. */
import { median } from '../report.js';

export interface Sample {
  readonly atMs: number;
  readonly value: number;
}

/** Share of the samples that make the level of the start, and that of the end. */
const EDGE = 0.1;

/** Median of the first tenth, and of the last. */
export function levels(samples: readonly Sample[]): { readonly start: number; readonly end: number } {
  const values = samples.map(({ value }) => value);
  const edge = Math.max(1, Math.floor(values.length * EDGE));
  return { start: median(values.slice(0, edge)), end: median(values.slice(-edge)) };
}

/** Units an hour: the median of the slopes between all pairs (Theil and Sen), which a collection now and then does not bend. */
export function slopePerHour(samples: readonly Sample[]): number {
  const slopes: number[] = [];
  for (let i = 0; i < samples.length; i++) {
    for (let j = i + 1; j < samples.length; j++) {
      const [a, b] = [samples[i]!, samples[j]!];
      if (b.atMs > a.atMs) slopes.push(((b.value - a.value) / (b.atMs - a.atMs)) * 3_600_000);
    }
  }
  return slopes.length === 0 ? 0 : median(slopes);
}
