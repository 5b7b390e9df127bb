/** `bench ceiling`: the hand-written word count alone. */
import { reportCase, runCase } from '../cases.js';
import type { BenchOptions } from '../options.js';
import { median, type Report } from '../report.js';
import { startCeiling } from './subject.js';

const LOW_LOAD = 0.1;

export async function benchCeiling(options: BenchOptions, report: Report): Promise<void> {
  const subjects = [{ name: 'ceiling', start: startCeiling }];
  for (const placement of options.placements) {
    for (const acking of options.acking) {
      const name = `${placement}/${acking ? 'acked' : 'unacked'}`;
      const [full = []] = await runCase(subjects, { placement, acking, rate: 0 }, options);
      reportCase(report, { bench: 'ceiling', case: `${name}/full` }, full);
      if (!acking) continue;
      const rate = LOW_LOAD * median(full.map((result) => result.sentencesPerSecond));
      const [low = []] = await runCase(subjects, { placement, acking, rate }, options);
      reportCase(report, { bench: 'ceiling', case: `${name}/low` }, low);
    }
  }
}
