import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeSketches, sketchBucket, sketchQuantile, type SketchPairs } from '../../base/index.js';
import { exposition, HISTOGRAM_BOUNDS_MICROS } from './exposition.js';

function sketchOf(micros: readonly number[]): SketchPairs {
  return mergeSketches(micros.map((one) => [[sketchBucket(one), 1]]));
}

/** Cumulative counts by upper bound, seconds. */
function bucketsOf(text: string): (readonly [le: number, count: number])[] {
  return [...text.matchAll(/_bucket\{.*le="([^"]+)"\} (\d+)/g)].map((match) => [
    match[1] === '+Inf' ? Infinity : Number(match[1]),
    Number(match[2]),
  ]);
}

const histogram = (value: SketchPairs): string =>
  exposition([
    { metric: 'isobar_component_execute_seconds', labels: { topology: 't', component: 'c' }, value },
  ]);

describe('the text format', () => {
  it('gives each metric once with help and type, in the order of the table, values of labels escaped', () => {
    const text = exposition([
      { metric: 'isobar_supervisors', labels: {}, value: 2 },
      { metric: 'isobar_component_pending_rows', labels: { topology: 'a', component: 'b' }, value: 3 },
      { metric: 'isobar_nimbus_leader', labels: {}, value: 1 },
      { metric: 'isobar_component_pending_rows', labels: { topology: 'q"\\\n', component: 'b' }, value: 1.5 },
    ]);
    expect(text.split('\n').filter((line) => !line.startsWith('# HELP'))).toEqual([
      '# TYPE isobar_nimbus_leader gauge',
      'isobar_nimbus_leader 1',
      '# TYPE isobar_supervisors gauge',
      'isobar_supervisors 2',
      '# TYPE isobar_component_pending_rows gauge',
      'isobar_component_pending_rows{topology="a",component="b"} 3',
      'isobar_component_pending_rows{topology="q\\"\\\\\\n",component="b"} 1.5',
      '',
    ]);
  });

  it('counts exactly what lies below each border of a histogram, whoever measured it', () => {
    const micros = fc.double({ min: 0.07, max: 1e8, noNaN: true });
    fc.assert(
      fc.property(fc.array(micros, { maxLength: 40 }), fc.array(micros, { maxLength: 40 }), (one, other) => {
        const buckets = bucketsOf(histogram(mergeSketches([sketchOf(one), sketchOf(other)])));
        const all = [...one, ...other];
        expect(buckets).toEqual([
          ...HISTOGRAM_BOUNDS_MICROS.map((bound) => [
            bound / 1e6,
            all.filter((value) => value < bound).length,
          ]),
          [Infinity, all.length],
        ]);
      }),
      { seed: 7, numRuns: 200 },
    );
  });

  it('lets quantiles of all tasks together be read off within the width of a border', () => {
    // A thousand fast rows of one task and a hundred slow ones of another: no average of their quantiles is right.
    const fast = Array.from({ length: 1000 }, (_, i) => 20 + i / 100);
    const slow = Array.from({ length: 100 }, (_, i) => 50_000 + i * 100);
    const merged = mergeSketches([sketchOf(fast), sketchOf(slow)]);
    const buckets = bucketsOf(histogram(merged));
    for (const quantile of [0.5, 0.9, 0.99, 0.999]) {
      const place = buckets.findIndex(([, count]) => count >= quantile * 1100);
      const exact = sketchQuantile(merged, quantile)! / 1e6;
      expect(exact).toBeLessThanOrEqual(buckets[place]![0]);
      expect(exact).toBeGreaterThanOrEqual(buckets[place - 1]![0]);
    }
    expect(histogram(merged)).toContain('_count{topology="t",component="c"} 1100');
  });

  it('has all borders of a histogram that nothing was counted in', () => {
    expect(bucketsOf(histogram([]))).toHaveLength(HISTOGRAM_BOUNDS_MICROS.length + 1);
    expect(histogram([])).toContain('_sum{topology="t",component="c"} 0');
  });
});
