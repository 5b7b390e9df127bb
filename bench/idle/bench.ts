/** `bench idle`: what a local cluster takes while its topology has nothing to do: command line, daemons and worker. */
import { setTimeout as pause } from 'node:timers/promises';
import { within } from '../child.js';
import { processUse, proportionalMb } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { ProductRun } from '../product/run.js';
import { summarize, type Report } from '../report.js';

/** The line of a running topology. */
const FIRST_LINE_MS = 60_000;
/** Compilers and collectors are still busy in the first seconds. */
const SETTLE_MS = 10_000;
/** Processor time comes in ticks of 10 ms, so a short window could not show 2 % of a core. */
const SHORTEST_WINDOW_MS = 10_000;

/** How a spout has nothing: it waits in a promise, or is asked and answers that it is idle. */
const SOURCES = ['waiting', 'polled'];

export async function benchIdle(options: BenchOptions, report: Report): Promise<void> {
  for (const source of SOURCES) await benchSource(source, options, report);
}

async function benchSource(source: string, options: BenchOptions, report: Report): Promise<void> {
  const run = new ProductRun({
    app: 'bench/idle/app.ts',
    arguments: ['--no-check'],
    environment: { ISOBAR_BENCH_SOURCE: source },
  });
  try {
    await within(
      FIRST_LINE_MS,
      'Starting the idle topology',
      new Promise<void>((started) => {
        run.onLine = () => started();
      }),
    );
    await pause(options.quick ? SETTLE_MS / 4 : SETTLE_MS);
    const corePercents: number[] = [];
    const proportionalMbs: number[] = [];
    run.lookUpProcesses();
    for (let window = 0; window < options.windows; window++) {
      const beforeMs = performance.now();
      const cpuBeforeMs = cpuMs(run);
      await pause(
        options.quick ? options.window.windowMs : Math.max(SHORTEST_WINDOW_MS, options.window.windowMs),
      );
      corePercents.push(((cpuMs(run) - cpuBeforeMs) / (performance.now() - beforeMs)) * 100);
      proportionalMbs.push(run.pids().reduce((sum, pid) => sum + proportionalMb(pid), 0));
    }
    if (run.hasClosed) throw new Error(`The idle topology ended by itself.\n${run.errors}`);
    const names = { bench: 'idle', case: `local-cluster/${source}` };
    report(summarize({ ...names, metric: 'cpu', unit: '%' }, corePercents));
    report(summarize({ ...names, metric: 'pss', unit: 'MB' }, proportionalMbs));
    report(summarize({ ...names, metric: 'processes', unit: '' }, [run.pids().length]));
    await run.interrupt();
  } finally {
    run.kill();
  }
}

function cpuMs(run: ProductRun): number {
  return run.pids().reduce((sum, pid) => sum + (processUse(pid)?.cpuMs ?? 0), 0);
}
