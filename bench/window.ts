/**
 * Measures one subject over one window and says how much of the machine other processes took meanwhile. A disturbed
 * window is tried again, a bounded number of times; then the quietest attempt counts, and the report says how quiet.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Quantiles } from './histogram.js';
import { processorTimes, processUse, proportionalMb } from './machine.js';
import type { StartSubject, Subject, SubjectOptions } from './subject.js';

/** Above this share of the machine, other processes have disturbed a window. */
export const DISTURBED_SHARE = 0.05;
const QUIET_BUSY_SHARE = 0.06;
const MEMORY_SAMPLE_MS = 500;

export interface WindowOptions {
  readonly warmUpMs: number;
  readonly windowMs: number;
  /** Longest wait for a quiet machine before a window, ms. */
  readonly quietWaitMs: number;
  /** Further attempts at a disturbed window. */
  readonly retries: number;
}

export interface WindowResult {
  readonly sentencesPerSecond: number;
  readonly wordsPerSecond: number;
  readonly latency: Quantiles | undefined;
  readonly cpuSecondsPerMillionWords: number;
  /** Highest resident set of each process, added up, MB. Pages that they share are counted more than once. */
  readonly peakResidentMb: number;
  /** Highest sum of proportional memory that was seen, MB. */
  readonly peakProportionalMb: number;
  /** Share of the machine's processor time that neither the subject nor this harness used. */
  readonly othersShare: number;
}

/** One window, after a warm-up, of a subject started for it and checked at its end. */
export async function measureWindow(
  start: StartSubject,
  subjectOptions: SubjectOptions,
  options: WindowOptions,
): Promise<WindowResult> {
  let best: WindowResult | undefined;
  for (let attempt = 0; attempt <= options.retries; attempt++) {
    await waitUntilQuiet(options.quietWaitMs);
    const result = await measureOnce(start, subjectOptions, options);
    if (best === undefined || result.othersShare < best.othersShare) best = result;
    if (best.othersShare <= DISTURBED_SHARE) break;
  }
  return best!;
}

/** Waits until the machine does next to nothing for a second, or the time is up: a busy machine is reported, not waited out. */
export async function waitUntilQuiet(longestMs: number): Promise<void> {
  const deadlineMs = Date.now() + longestMs;
  while (Date.now() < deadlineMs) {
    const before = processorTimes();
    await pause(1000);
    const after = processorTimes();
    if ((after.busyMs - before.busyMs) / (after.totalMs - before.totalMs) < QUIET_BUSY_SHARE) return;
  }
}

async function measureOnce(
  start: StartSubject,
  subjectOptions: SubjectOptions,
  options: WindowOptions,
): Promise<WindowResult> {
  const subject = await start(subjectOptions);
  try {
    await pause(options.warmUpMs);
    const usage = new MemoryWatch(subject);
    const before = await subject.sample();
    const useBefore = readUse(subject);
    await usage.watch(options.windowMs);
    const after = await subject.sample();
    const useAfter = readUse(subject);
    const seconds = (after.atMs - before.atMs) / 1000;
    const words = after.words - before.words;
    const cpuMs = useAfter.cpuMs - useBefore.cpuMs;
    const machineMs = useAfter.processors.totalMs - useBefore.processors.totalMs;
    const busyMs = useAfter.processors.busyMs - useBefore.processors.busyMs;
    const ownMs = useAfter.harnessMs - useBefore.harnessMs;
    const result: WindowResult = {
      sentencesPerSecond: (after.sentences - before.sentences) / seconds,
      wordsPerSecond: words / seconds,
      latency: subject.latency(before, after),
      cpuSecondsPerMillionWords: cpuMs / 1000 / (words / 1e6),
      peakResidentMb: useAfter.peakResidentMb,
      peakProportionalMb: usage.peakMb,
      othersShare: Math.max(0, (busyMs - cpuMs - ownMs) / machineMs),
    };
    await subject.finish();
    return result;
  } finally {
    subject.kill();
  }
}

class MemoryWatch {
  readonly #subject: Subject;
  peakMb = 0;

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  async watch(forMs: number): Promise<void> {
    const endMs = Date.now() + forMs;
    for (;;) {
      const sum = this.#subject.pids().reduce((total, pid) => total + proportionalMb(pid), 0);
      this.peakMb = Math.max(this.peakMb, sum);
      const leftMs = endMs - Date.now();
      if (leftMs <= 0) return;
      await pause(Math.min(MEMORY_SAMPLE_MS, leftMs));
    }
  }
}

function readUse(subject: Subject): {
  cpuMs: number;
  harnessMs: number;
  peakResidentMb: number;
  processors: { busyMs: number; totalMs: number };
} {
  let cpuMs = 0;
  let peakResidentMb = 0;
  for (const pid of subject.pids()) {
    const use = processUse(pid);
    cpuMs += use?.cpuMs ?? 0;
    peakResidentMb += use?.peakResidentMb ?? 0;
  }
  const { user, system } = process.cpuUsage();
  return { cpuMs, harnessMs: (user + system) / 1000, peakResidentMb, processors: processorTimes() };
}
