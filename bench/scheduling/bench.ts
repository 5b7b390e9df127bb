/**
 * `bench scheduling`: how long placing takes on whole clusters and what the placements are worth, beside Storm's and Flink's
 * own classes if their directories are given. Each case runs in a process of its own.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BenchOptions } from '../options.js';
import { type Report, summarize } from '../report.js';
import type { Fact, SchedulingCase } from './case.js';
import type { CaseResult } from './case-main.js';
import { FLINK_CASES } from './flink-cases.js';
import { type PeerLine, Peers } from './peers.js';
import { STORM_CASES } from './storm-cases.js';

const CASE_MAIN = fileURLToPath(new URL('./case-main.js', import.meta.url));

export async function benchScheduling(options: BenchOptions, report: Report): Promise<void> {
  const { only, dataDirectory, quick } = options;
  const peers = new Peers(options.peers, quick);
  for (const one of [...STORM_CASES, ...FLINK_CASES]) {
    if (!one.name.includes(only)) continue;
    const dataFile = one.data === undefined ? undefined : fileIn(dataDirectory, one.data);
    if (one.data !== undefined && dataFile === undefined) continue;
    const result = await runCase(one, dataFile, quick);
    const line = one.compare === undefined ? undefined : await peers.measure(one.compare, dataFile);
    reportCase(one, result, line, report);
  }
}

/** @throws Error if a directory was given and does not hold the file. */
function fileIn(directory: string | undefined, name: string): string | undefined {
  if (directory === undefined) return undefined;
  const file = join(directory, name);
  if (!existsSync(file)) throw new Error(`--data expects a directory with ${name}; ${directory} has none.`);
  return file;
}

async function runCase(
  one: SchedulingCase,
  dataFile: string | undefined,
  isQuick: boolean,
): Promise<CaseResult> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    CASE_MAIN,
    one.name,
    dataFile ?? '',
    isQuick ? 'quick' : 'full',
  ]);
  return JSON.parse(stdout) as CaseResult;
}

function reportCase(
  one: SchedulingCase,
  result: CaseResult,
  line: PeerLine | undefined,
  report: Report,
): void {
  const names = { bench: 'scheduling', case: one.name };
  const compared = (
    ofPeer: string | undefined,
  ): { readonly name: string; readonly values: number[] } | undefined => {
    const value = ofPeer === undefined || line === undefined ? undefined : readPath(line, ofPeer);
    return value === undefined || value === 0
      ? undefined
      : { name: one.compare?.peer ?? '', values: [value] };
  };
  report(summarize({ ...names, metric: 'cpu', unit: 'ms' }, result.cpuMs, compared('medianCpuMs')));
  report(summarize({ ...names, metric: 'wall', unit: 'ms' }, result.wallMs, compared('medianMs')));
  report(summarize({ ...names, metric: 'memory-peak', unit: 'MB' }, [result.peakMb]));
  report(
    summarize({ ...names, metric: 'memory-beyond-ready', unit: 'MB' }, [result.peakMb - result.readyMb]),
  );
  for (const [metric, { value, unit, ofPeer }] of Object.entries<Fact>(result.facts)) {
    report(summarize({ ...names, metric, unit }, [value], compared(ofPeer)));
  }
}

/** A number by a path of keys. */
function readPath(line: PeerLine, path: string): number | undefined {
  let value: unknown = line;
  for (const key of path.split('.')) value = (value as PeerLine | undefined)?.[key];
  return typeof value === 'number' ? value : undefined;
}
