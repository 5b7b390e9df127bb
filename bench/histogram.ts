/**
 * Latencies as counts in buckets that grow by 2 %, over an int32 array that may be shared between threads. Buckets only
 * ever rise, so a window is the difference between two copies.
 */

const GROWTH = 1.02;
const SMALLEST_MS = 0.001;
/** Up to about eleven minutes. */
export const HISTOGRAM_BUCKETS = 1024;
const PER_LOG = 1 / Math.log(GROWTH);

export interface Quantiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The bucket of a latency; shorter than a microsecond counts as a microsecond. */
export function bucketOf(latencyMs: number): number {
  if (latencyMs <= SMALLEST_MS) return 0;
  return Math.min(HISTOGRAM_BUCKETS - 1, Math.ceil(Math.log(latencyMs / SMALLEST_MS) * PER_LOG));
}

/** What was added between two copies of the same histogram. */
export function bucketsBetween(before: Int32Array, after: Int32Array): Float64Array {
  return Float64Array.from(after, (count, bucket) => count - before[bucket]!);
}

/** Median and 99th percentile (upper bound of the bucket, within 2 %); undefined when nothing was counted. */
export function quantiles(buckets: Float64Array): Quantiles | undefined {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  return { p50Ms: quantile(buckets, total, 0.5), p99Ms: quantile(buckets, total, 0.99) };
}

function quantile(buckets: Float64Array, total: number, share: number): number {
  let seen = 0;
  for (let bucket = 0; bucket < buckets.length; bucket++) {
    seen += buckets[bucket]!;
    if (seen >= total * share) return SMALLEST_MS * GROWTH ** bucket;
  }
  return SMALLEST_MS * GROWTH ** (buckets.length - 1);
}
