/**
 * One case in a process of its own, so that neither compiled code nor memory of another case counts: `case-main.js NAME DATAFILE
 * quick|full`. Prints one line of JSON: times of the runs, memory beyond what the ready case holds, and facts of the last result.
 */
import { readFileSync } from 'node:fs';
import { FLINK_CASES } from './flink-cases.js';
import { loadLibrary } from './library.js';
import type { Fact } from './case.js';
import { STORM_CASES } from './storm-cases.js';

export interface CaseResult {
  readonly wallMs: readonly number[];
  /** Of the deciding thread, as the peers count it: helpers of collector and compiler are left out. */
  readonly cpuMs: readonly number[];
  /** Resident memory of the process with everything made ready, and its highest during the runs. */
  readonly readyMb: number;
  readonly peakMb: number;
  readonly facts: Readonly<Record<string, Fact>>;
}

const WARM_UP = { runs: 3, ms: 2000 };
const MEASURE = { leastRuns: 5, mostRuns: 31, ms: 2000 };
const MB = 1024 * 1024;

const [name, dataFile = '', effort] = process.argv.slice(2);
const chosen = [...STORM_CASES, ...FLINK_CASES].find((one) => one.name === name);
if (chosen === undefined) throw new Error(`There is no case "${name}".`);
const { decide, facts } = chosen.prepare(await loadLibrary(), dataFile);
const isQuick = effort === 'quick';

globalThis.gc?.();
const readyMb = process.memoryUsage.rss() / MB;
const startMs = performance.now();
for (let run = 0; run < WARM_UP.runs && !isQuick; run++) {
  decide();
  if (performance.now() - startMs > WARM_UP.ms) break;
}
const wallMs: number[] = [];
const cpuMs: number[] = [];
const measuringMs = performance.now();
while (wallMs.length < (isQuick ? 1 : MEASURE.mostRuns)) {
  if (wallMs.length >= MEASURE.leastRuns && performance.now() - measuringMs > MEASURE.ms) break;
  globalThis.gc?.();
  const cpuBefore = threadCpuMs();
  const beforeMs = performance.now();
  decide();
  wallMs.push(performance.now() - beforeMs);
  cpuMs.push(threadCpuMs() - cpuBefore);
}
const peakMb = process.resourceUsage().maxRSS / 1024;
const result: CaseResult = { wallMs, cpuMs, readyMb, peakMb, facts: facts() };
console.log(JSON.stringify(result));

/** Processor time of this thread so far. The kernel brings it up to date when the thread sleeps. */
function threadCpuMs(): number {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.05);
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6;
}
