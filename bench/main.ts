/** `npm run -s bench -- NAME`: picks a bench and prints what it measures. */
import { benchCeiling } from './ceiling/bench.js';
import { benchConsole } from './console/bench.js';
import { benchCoordination } from './coordination/bench.js';
import { benchIdle } from './idle/bench.js';
import { benchLifecycle } from './lifecycle/bench.js';
import { parseOptions, USAGE, type BenchOptions } from './options.js';
import { createReport, type Report } from './report.js';
import { benchScheduling } from './scheduling/bench.js';
import { benchSoak } from './soak/bench.js';
import { benchStartup } from './startup/bench.js';
import { benchSubmit } from './submit/bench.js';
import { benchWordcount } from './wordcount/bench.js';

const BENCHES: Readonly<Record<string, (options: BenchOptions, report: Report) => Promise<void>>> = {
  wordcount: benchWordcount,
  ceiling: benchCeiling,
  startup: benchStartup,
  submit: benchSubmit,
  idle: benchIdle,
  soak: benchSoak,
  lifecycle: benchLifecycle,
  scheduling: benchScheduling,
  console: benchConsole,
  coordination: benchCoordination,
};

try {
  const { name, options } = parseOptions(process.argv.slice(2));
  const bench = BENCHES[name];
  if (name === 'help') console.log(USAGE);
  else if (bench === undefined) {
    console.error(`There is no bench "${name}".\n\n${USAGE}`);
    process.exitCode = 2;
  } else {
    await bench(options, createReport(options.json));
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
