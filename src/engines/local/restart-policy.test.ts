import { describe, expect, it } from 'vitest';
import { decideRestart, type RestartLimits } from './restart-policy.js';

const limits: RestartLimits = { firstPauseMs: 50, longestPauseMs: 200, maxEnds: 5, healthyMs: 5000 };

describe('decideRestart', () => {
  it('pauses longer each time and then gives up', () => {
    const pauses: (number | string)[] = [];
    let ends = 0;
    for (let i = 0; i < 5; i++) {
      const decision = decideRestart(ends, i % 2 === 0 ? undefined : 100, limits);
      ends = decision.endsInARow;
      pauses.push(decision.kind === 'restart' ? decision.pauseMs : decision.kind);
    }
    expect(pauses).toEqual([50, 100, 200, 200, 'give-up']);
  });

  it('starts counting anew after a healthy time', () => {
    expect(decideRestart(4, 5000, limits)).toEqual({ kind: 'restart', pauseMs: 50, endsInARow: 1 });
  });
});
