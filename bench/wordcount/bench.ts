/** `bench wordcount`: the same job by the product and by hand, in turn, in three placements. */
import { reportCase, runCase } from '../cases.js';
import { startCeiling } from '../ceiling/subject.js';
import type { BenchOptions } from '../options.js';
import { startProduct } from '../product/subject.js';
import { median, summarize, type Report } from '../report.js';
import type { SubjectOptions } from '../subject.js';
import type { WindowResult } from '../window.js';

const BENCH = 'wordcount';
const CEILING = 'ceiling';
/** Low load, as a share of the rate at full load. */
const LOW_LOAD = 0.1;
const SUBJECTS = [
  { name: '', start: startProduct },
  { name: CEILING, start: startCeiling },
];

export async function benchWordcount(options: BenchOptions, report: Report): Promise<void> {
  for (const placement of options.placements) {
    const full = new Map<boolean, readonly WindowResult[]>();
    for (const acking of options.acking) {
      const results = await benchCase({ placement, acking, rate: 0 }, 'full', options, report);
      full.set(acking, results);
      if (!acking) continue;
      const rate = LOW_LOAD * median(results.map((result) => result.sentencesPerSecond));
      await benchCase({ placement, acking, rate }, 'low', options, report);
    }
    reportAckingCost(placement, full.get(true), full.get(false), report);
  }
}

/** Returns the product's windows. */
async function benchCase(
  subject: SubjectOptions,
  load: string,
  options: BenchOptions,
  report: Report,
): Promise<readonly WindowResult[]> {
  const name = `${subject.placement}/${subject.acking ? 'acked' : 'unacked'}/${load}`;
  const [product = [], ceiling = []] = await runCase(SUBJECTS, subject, options);
  reportCase(report, { bench: BENCH, case: name }, product, { name: CEILING, results: ceiling });
  reportCase(report, { bench: BENCH, case: `${CEILING}/${name}` }, ceiling);
  return product;
}

function reportAckingCost(
  placement: string,
  acked: readonly WindowResult[] | undefined,
  unacked: readonly WindowResult[] | undefined,
  report: Report,
): void {
  if (acked === undefined || unacked === undefined) return;
  const rate = median(unacked.map((result) => result.wordsPerSecond));
  const costs = acked.map((result) => (1 - result.wordsPerSecond / rate) * 100);
  report(summarize({ bench: BENCH, case: placement, metric: 'acking-cost', unit: '%' }, costs));
}
