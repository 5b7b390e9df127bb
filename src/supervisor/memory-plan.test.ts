import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../base/index.js';
import { judgeMemory, memoryRulesOf } from './memory-plan.js';

/** Storm's: limit = asked + 128; hard = max(2 × limit, limit + 2024); low 1024, medium 1536, grace 30 s. */
const RULES = memoryRulesOf(compileSettings());
const ASKED = { onHeapMb: 512, offHeapMb: 128 };
const LIMIT_MB = 768;
const HARD_MB = LIMIT_MB + 2024;
const PLENTY_MB = 8000;

const judge = (usedMb: number, freeMb: number, overSinceMs: number | null = null, nowMs = 100_000) =>
  judgeMemory(ASKED, { usedMb, freeMb }, overSinceMs, nowMs, RULES);

describe('judgeMemory', () => {
  it('has the defaults of Storm', () => {
    expect(RULES).toEqual({
      marginMb: 128,
      hardMultiplier: 2,
      hardOverageMb: 2024,
      lowFreeMb: 1024,
      mediumFreeMb: 1536,
      graceMs: 30_000,
    });
  });

  it('leaves a worker within its limit alone, however little is free', () => {
    expect(judge(LIMIT_MB, 0, 5)).toEqual({ overSinceMs: null, stop: null });
  });

  it('leaves one above its limit alone while the machine has plenty', () => {
    expect(judge(HARD_MB, PLENTY_MB, 5)).toEqual({ overSinceMs: null, stop: null });
  });

  it('stops one above the hard limit at once, and says what was asked for', () => {
    expect(judge(HARD_MB + 1, PLENTY_MB).stop).toBe(
      'took 2793 MB, and its limit is 768 MB (heap 512, off-heap 128, margin 128): more than 2792 MB is never left alone',
    );
  });

  it('takes the multiple as hard limit where it is larger than the overage', () => {
    const large = { onHeapMb: 4000, offHeapMb: 0 };
    const hardMb = 2 * 4128;
    const of = (usedMb: number) => judgeMemory(large, { usedMb, freeMb: PLENTY_MB }, null, 0, RULES).stop;
    expect(of(hardMb)).toBeNull();
    expect(of(hardMb + 1)).toContain('never left alone');
  });

  it('stops one above its limit at once when the machine is at its end', () => {
    expect(judge(LIMIT_MB + 1, 1024).stop).toContain('the machine has only 1024 MB left');
    expect(judge(LIMIT_MB + 1, 1025).stop).toBeNull();
  });

  it('stops one above its limit after the grace when the machine is short', () => {
    const first = judge(LIMIT_MB + 1, 1535, null, 1000);
    expect(first).toEqual({ overSinceMs: 1000, stop: null });
    expect(judge(LIMIT_MB + 1, 1535, first.overSinceMs, 30_999)).toEqual(first);
    expect(judge(LIMIT_MB + 1, 1535, first.overSinceMs, 31_000).stop).toContain('for 30 s');
  });

  it('begins the grace anew when the worker or the machine has recovered in between', () => {
    expect(judge(LIMIT_MB, 1200, 1000).overSinceMs).toBeNull();
    expect(judge(LIMIT_MB + 1, 1536, 1000).overSinceMs).toBeNull();
  });

  it('is never kinder to a worker that takes more, or to a machine that has less', () => {
    const amount = fc.integer({ min: 0, max: 10_000 });
    fc.assert(
      fc.property(amount, amount, amount, amount, fc.boolean(), (used, more, free, less, isOld) => {
        const since = isOld ? 0 : null;
        if (judge(used, free, since).stop === null) return;
        expect(judge(used + more, free, since).stop).not.toBeNull();
        expect(judge(used, Math.max(0, free - less), since).stop).not.toBeNull();
      }),
      { seed: 5, numRuns: 500 },
    );
  });
});
