/**
 * Decides whether a worker takes more memory than its executors have asked for, and too much of it to be left alone. Pure: readings
 * and times come in as arguments. The rules are those of Storm's supervisor (`BasicContainer.isMemoryLimitViolated`).
 */
import type { Settings } from '../base/index.js';
import type { AskedMemory } from '../scheduling/index.js';

const BYTES_PER_MB = 1_048_576;

export interface MemoryRules {
  /** What a worker may take beyond what its executors asked for: Node itself, code, rings between threads. */
  readonly marginMb: number;
  /** Above the larger of `limit × hardMultiplier` and `limit + hardOverageMb` a worker is stopped whatever else holds. */
  readonly hardMultiplier: number;
  readonly hardOverageMb: number;
  /** With so little free on the machine, or less, a worker above its limit is stopped at once. */
  readonly lowFreeMb: number;
  /** With less free than this, a worker above its limit is stopped after the grace. */
  readonly mediumFreeMb: number;
  readonly graceMs: number;
}

export interface MemoryReading {
  readonly usedMb: number;
  /** What the machine could still give. */
  readonly freeMb: number;
}

export interface MemoryVerdict {
  /** Since when it has been above its limit on a machine that is short of memory; null: it is not. Give it back next time. */
  readonly overSinceMs: number | null;
  /** Why it is to be stopped, as the end of a sentence about it; null: it may go on. */
  readonly stop: string | null;
}

export function memoryRulesOf(settings: Settings): MemoryRules {
  return {
    marginMb: settings['supervisor.memory-margin'] / BYTES_PER_MB,
    hardMultiplier: settings['supervisor.memory-hard-multiplier'],
    hardOverageMb: settings['supervisor.memory-hard-overage'] / BYTES_PER_MB,
    lowFreeMb: settings['supervisor.memory-low'] / BYTES_PER_MB,
    mediumFreeMb: settings['supervisor.memory-medium'] / BYTES_PER_MB,
    graceMs: settings['supervisor.memory-grace'],
  };
}

/** @param overSinceMs of the last verdict on this worker; null for its first. */
export function judgeMemory(
  asked: AskedMemory,
  { usedMb, freeMb }: MemoryReading,
  overSinceMs: number | null,
  nowMs: number,
  rules: MemoryRules,
): MemoryVerdict {
  const limitMb = asked.onHeapMb + asked.offHeapMb + rules.marginMb;
  const hardMb = Math.max(limitMb * rules.hardMultiplier, limitMb + rules.hardOverageMb);
  const stop = (why: string): MemoryVerdict => ({
    overSinceMs,
    stop: `took ${whole(usedMb)} MB, and its limit is ${whole(limitMb)} MB (heap ${whole(asked.onHeapMb)}, off-heap ${whole(asked.offHeapMb)}, margin ${whole(rules.marginMb)}): ${why}`,
  });
  if (usedMb > hardMb) return stop(`more than ${whole(hardMb)} MB is never left alone`);
  if (usedMb <= limitMb) return { overSinceMs: null, stop: null };
  if (freeMb <= rules.lowFreeMb) return stop(`the machine has only ${whole(freeMb)} MB left`);
  if (freeMb >= rules.mediumFreeMb) return { overSinceMs: null, stop: null };
  const sinceMs = overSinceMs ?? nowMs;
  if (nowMs - sinceMs < rules.graceMs || overSinceMs === null) return { overSinceMs: sinceMs, stop: null };
  return stop(`for ${whole((nowMs - sinceMs) / 1000)} s, while the machine has ${whole(freeMb)} MB left`);
}

function whole(value: number): number {
  return Math.round(value);
}
