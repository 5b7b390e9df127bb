/**
 * A latency sketch: counts per log-linear bucket, mergeable by addition, in one Int32Array (shared memory included).
 *
 * Each power of two of microseconds is cut into 32 equal buckets, so a bucket's middle is within 1.6 % of every value in
 * it, from 1/16 µs to 19 hours; bucket 0 holds what is below (and negatives and NaN), the last one what is above. The
 * cut is read off the bits of the double: exponent and upper five bits of the fraction, as in HdrHistogram and DDSketch's
 * linearly interpolated mapping.
 */

/** Sparse form of a sketch: [bucket, count], ascending by bucket, no zero counts. */
export type SketchPairs = readonly (readonly [bucket: number, count: number])[];

const SUB_BUCKET_BITS = 5;
const LOWEST_EXPONENT = -4;
const HIGHEST_EXPONENT = 36;
const FRACTION_BITS_OF_HIGH_WORD = 20;
const SHIFT = FRACTION_BITS_OF_HIGH_WORD - SUB_BUCKET_BITS;
const EXPONENT_BIAS = 1023;
/** What the shifted high word of the smallest counted value is, less one: bucket 0 is for what lies below. */
const OFFSET = ((LOWEST_EXPONENT + EXPONENT_BIAS) << SUB_BUCKET_BITS) - 1;
const LOWEST_MICROS = 2 ** LOWEST_EXPONENT;
const END_MICROS = 2 ** HIGHEST_EXPONENT;

/** Length of a sketch's Int32Array. */
export const SKETCH_BUCKETS = ((HIGHEST_EXPONENT - LOWEST_EXPONENT) << SUB_BUCKET_BITS) + 2;

const double = new Float64Array(1);
const doubleWords = new Int32Array(double.buffer);
const HIGH_WORD = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0;

/** The bucket that counts a latency. Allocates nothing; negatives and NaN go to bucket 0. */
export function sketchBucket(micros: number): number {
  if (!(micros >= LOWEST_MICROS)) return 0;
  if (micros >= END_MICROS) return SKETCH_BUCKETS - 1;
  double[0] = micros;
  return (doubleWords[HIGH_WORD]! >>> SHIFT) - OFFSET;
}

/** The latency, µs, that stands for all of a bucket: its middle; 0 for bucket 0. */
export function bucketMicros(bucket: number): number {
  if (bucket <= 0) return 0;
  if (bucket >= SKETCH_BUCKETS - 1) return END_MICROS;
  const place = bucket - 1;
  const octave = 2 ** (LOWEST_EXPONENT + (place >>> SUB_BUCKET_BITS));
  const sub = place & ((1 << SUB_BUCKET_BITS) - 1);
  return octave * (1 + (sub + 0.5) / (1 << SUB_BUCKET_BITS));
}

/**
 * The latency, µs, below or at which the given share (0…1) of all counted values lies (nearest rank); null when nothing
 * was counted.
 */
export function sketchQuantile(counts: Int32Array | SketchPairs, quantile: number): number | null {
  const pairs = counts instanceof Int32Array ? toSketchPairs(counts) : mergeSketches([counts]);
  let total = 0;
  for (const [, count] of pairs) total += count;
  if (total === 0) return null;
  const rank = Math.min(total, Math.max(1, Math.ceil(quantile * total)));
  let seen = 0;
  for (const [bucket, count] of pairs) {
    seen += count;
    if (seen >= rank) return bucketMicros(bucket);
  }
  return bucketMicros(pairs[pairs.length - 1]![0]);
}

/** The sparse form. Counts are read as unsigned, so a bucket is good for 4.29 × 10⁹ values. */
export function toSketchPairs(counts: Int32Array): SketchPairs {
  const pairs: [number, number][] = [];
  for (let bucket = 0; bucket < counts.length; bucket++) {
    const count = counts[bucket]! >>> 0;
    if (count !== 0) pairs.push([bucket, count]);
  }
  return pairs;
}

/** Adds sketches up. */
export function mergeSketches(all: readonly SketchPairs[]): SketchPairs {
  const sums = new Map<number, number>();
  for (const pairs of all) {
    for (const [bucket, count] of pairs) sums.set(bucket, (sums.get(bucket) ?? 0) + count);
  }
  return [...sums].filter(([, count]) => count !== 0).sort(([a], [b]) => a - b);
}
