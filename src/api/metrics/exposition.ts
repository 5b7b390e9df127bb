/**
 * Samples as Prometheus reads them: the text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). A client
 * library keeps counters and histograms of its own and cannot be given ones that were merged elsewhere, so the few rules of the
 * format are here. Pure.
 */
import { bucketMicros, type SketchPairs } from '../../base/index.js';
import { type MetricDefinition, type MetricName, METRICS_TABLE } from './metrics-table.js';

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface Sample {
  readonly metric: MetricName;
  readonly labels: Readonly<Record<string, string>>;
  /** Of a histogram: its merged sketch, µs. */
  readonly value: number | SketchPairs;
}

const MICROS_PER_SECOND = 1e6;

/**
 * Upper bounds of histograms, µs: two for each power of two from 1 µs to 67 s. Each is a border between two buckets of the
 * sketch, so what is counted below it is exact.
 */
export const HISTOGRAM_BOUNDS_MICROS: readonly number[] = Array.from(
  { length: 27 },
  (_, power) => 2 ** power,
).flatMap((bound) => [bound, bound * 1.5]);

const BOUND_TEXTS = HISTOGRAM_BOUNDS_MICROS.map((bound) => numberText(bound / MICROS_PER_SECOND));

/** All samples, in the order of the table. */
export function exposition(samples: readonly Sample[]): string {
  const byMetric = new Map<MetricName, Sample[]>();
  for (const sample of samples) {
    const known = byMetric.get(sample.metric);
    if (known === undefined) byMetric.set(sample.metric, [sample]);
    else known.push(sample);
  }
  const lines: string[] = [];
  for (const [name, { type, what }] of Object.entries(METRICS_TABLE) as [MetricName, MetricDefinition][]) {
    const own = byMetric.get(name);
    if (own === undefined) continue;
    lines.push(
      `# HELP ${name} ${what.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
      `# TYPE ${name} ${type}`,
    );
    for (const { labels, value } of own) {
      if (typeof value === 'number') lines.push(`${name}${labelText(labels)} ${numberText(value)}`);
      else lines.push(...histogramLines(name, labels, value));
    }
  }
  return `${lines.join('\n')}\n`;
}

function histogramLines(
  name: string,
  labels: Readonly<Record<string, string>>,
  sketch: SketchPairs,
): readonly string[] {
  const lines: string[] = [];
  let [count, sumMicros, at] = [0, 0, 0];
  const countBelow = (boundMicros: number): void => {
    for (; at < sketch.length; at++) {
      const [bucket, values] = sketch[at]!;
      const middleMicros = bucketMicros(bucket);
      if (middleMicros > boundMicros) return;
      count += values;
      sumMicros += middleMicros * values;
    }
  };
  const head = `${name}_bucket${labelText({ ...labels, le: '' }).slice(0, -2)}`;
  HISTOGRAM_BOUNDS_MICROS.forEach((bound, place) => {
    countBelow(bound);
    lines.push(`${head}${BOUND_TEXTS[place]!}"} ${count}`);
  });
  countBelow(Infinity);
  lines.push(
    `${head}+Inf"} ${count}`,
    `${name}_sum${labelText(labels)} ${numberText(sumMicros / MICROS_PER_SECOND)}`,
    `${name}_count${labelText(labels)} ${count}`,
  );
  return lines;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(value: string): string {
  if (!/["\\\n]/.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return String(value);
}
