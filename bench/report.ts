/** One measurement a line: as JSON for programs, as a table for people. */

export interface Measurement {
  readonly bench: string;
  readonly case: string;
  readonly metric: string;
  readonly unit: string;
  /** Median of the windows. */
  readonly value: number;
  readonly min: number;
  readonly max: number;
  /** `value` divided by the median that `to` had in the same run. */
  readonly ratio?: { readonly to: string; readonly value: number };
}

export type Report = (measurement: Measurement) => void;

/** Prints to standard output. Numbers keep four significant digits: more would be noise. */
export function createReport(json: boolean): Report {
  if (json) {
    return (measurement) => {
      const { value, min, max, ratio, ...names } = measurement;
      const numbers = { value: round(value), min: round(min), max: round(max) };
      const compared = ratio === undefined ? {} : { ratio: { to: ratio.to, value: round(ratio.value) } };
      console.log(JSON.stringify({ ...names, ...numbers, ...compared }));
    };
  }
  let lastCase = '';
  return ({ bench, case: name, metric, unit, value, min, max, ratio }) => {
    if (name !== lastCase) console.log(`\n${bench}: ${name}`);
    lastCase = name;
    const range = min === max ? '' : `(${readable(min)} .. ${readable(max)})`;
    const compared = ratio === undefined ? '' : `${ratio.value.toFixed(2)} x ${ratio.to}`;
    console.log(
      `  ${metric.padEnd(32)}${readable(value).padStart(10)} ${unit.padEnd(6)} ${range.padEnd(26)}${compared}`.trimEnd(),
    );
  };
}

/** The measurement of several windows. */
export function summarize(
  names: { readonly bench: string; readonly case: string; readonly metric: string; readonly unit: string },
  values: readonly number[],
  to?: { readonly name: string; readonly values: readonly number[] },
): Measurement {
  const value = median(values);
  const measurement = { ...names, value, min: Math.min(...values), max: Math.max(...values) };
  if (to === undefined || to.values.length === 0) return measurement;
  return { ...measurement, ratio: { to: to.name, value: value / median(to.values) } };
}

/** The middle value; of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

function readable(value: number): string {
  if (Math.abs(value) >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  if (Math.abs(value) >= 1e4) return `${(value / 1e3).toFixed(0)} k`;
  return String(Number(value.toPrecision(3)));
}
