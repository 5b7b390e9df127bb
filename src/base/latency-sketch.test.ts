import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bucketMicros,
  mergeSketches,
  SKETCH_BUCKETS,
  sketchBucket,
  sketchQuantile,
  toSketchPairs,
} from './latency-sketch.js';

const SEED = 20_260_701;
const HOUR_MICROS = 3_600_000_000;
/** Log-uniform over the range that is promised. */
const latency = fc
  .double({ min: -1, max: Math.log10(5 * HOUR_MICROS), noNaN: true })
  .map((exponent) => 10 ** exponent);

function sketchOf(values: readonly number[]): Int32Array {
  const counts = new Int32Array(SKETCH_BUCKETS);
  for (const value of values) counts[sketchBucket(value)]!++;
  return counts;
}

describe('the latency sketch', () => {
  it('stands for every latency from 0.1 µs to 5 h with an error of at most 1.6 %', () => {
    fc.assert(
      fc.property(latency, (micros) => {
        expect(Math.abs(bucketMicros(sketchBucket(micros)) - micros) / micros).toBeLessThanOrEqual(0.016);
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  it('puts larger latencies into the same or a later bucket, and every bucket holds its own middle', () => {
    fc.assert(
      fc.property(latency, latency, (a, b) => {
        expect(sketchBucket(Math.min(a, b))).toBeLessThanOrEqual(sketchBucket(Math.max(a, b)));
      }),
      { seed: SEED },
    );
    for (let bucket = 0; bucket < SKETCH_BUCKETS; bucket++)
      expect(sketchBucket(bucketMicros(bucket))).toBe(bucket);
  });

  it('counts zero, negatives and NaN in bucket 0 and what is too long in the last bucket', () => {
    for (const micros of [0, -0, -1, -Infinity, NaN, 0.06]) expect(sketchBucket(micros)).toBe(0);
    for (const micros of [2 ** 36, 1e30, Infinity]) expect(sketchBucket(micros)).toBe(SKETCH_BUCKETS - 1);
    expect(sketchBucket(2 ** -4)).toBe(1);
    expect(sketchBucket(2 ** 36 - 1)).toBe(SKETCH_BUCKETS - 2);
  });

  it('gives the quantile that sorting gives, up to the error of a bucket', () => {
    const values = fc.array(latency, { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (all, quantile) => {
        const sorted = [...all].sort((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(quantile * sorted.length)) - 1]!;
        const counts = sketchOf(all);
        const found = sketchQuantile(counts, quantile)!;
        expect(Math.abs(found - exact) / exact).toBeLessThanOrEqual(0.03);
        expect(sketchQuantile(toSketchPairs(counts), quantile)).toBe(found);
      }),
      { seed: SEED },
    );
  });

  it('has no quantile when nothing was counted', () => {
    expect(sketchQuantile(new Int32Array(SKETCH_BUCKETS), 0.5)).toBeNull();
    expect(sketchQuantile([], 0.5)).toBeNull();
  });

  it('merges by addition', () => {
    fc.assert(
      fc.property(fc.array(latency), fc.array(latency), (a, b) => {
        const merged = mergeSketches([toSketchPairs(sketchOf(a)), [], toSketchPairs(sketchOf(b))]);
        expect(merged).toEqual(toSketchPairs(sketchOf([...a, ...b])));
      }),
      { seed: SEED },
    );
  });

  it('works over shared memory and reads counts above 2³¹ as unsigned', () => {
    const counts = new Int32Array(new SharedArrayBuffer(SKETCH_BUCKETS * 4));
    counts[sketchBucket(50)] = -1;
    expect(toSketchPairs(counts)).toEqual([[sketchBucket(50), 2 ** 32 - 1]]);
    expect(sketchQuantile(counts, 0.99)).toBe(bucketMicros(sketchBucket(50)));
  });
});
