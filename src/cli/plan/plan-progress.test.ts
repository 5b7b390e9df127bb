import { describe, expect, it } from 'vitest';
import { PlanProgress } from './plan-progress.js';

describe('the progress of a plan', () => {
  it('is silent for a second, and says every step after it and those of many executors', () => {
    const lines: string[] = [];
    let nowMs = 0;
    const err = { write: (line: string) => lines.push(line) };
    const progress = new PlanProgress(err, { nowMs: () => nowMs });
    progress.step('reads a.json');
    progress.step('makes round 1', 1_000_000);
    nowMs = 2500;
    progress.step('makes round 2');
    expect(lines).toEqual([
      'isobar plan: makes round 1, after 0.0 s\n',
      'isobar plan: makes round 2, after 2.5 s\n',
    ]);
  });
});
