import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DueTimes } from './due-times.js';

describe('due times', () => {
  it('are given out in their order, each once', () => {
    const times = new DueTimes();
    times.set('late', 30);
    times.set('early', 10);
    times.set('middle', 20);
    expect(times.nextMs).toBe(10);
    expect(times.takeDue(5)).toEqual([]);
    expect(times.takeDue(20)).toEqual(['early', 'middle']);
    expect(times.takeDue(20)).toEqual([]);
    expect(times.nextMs).toBe(30);
  });

  it('follow a plain list over any changes', () => {
    const change = fc.oneof(
      fc.tuple(fc.constant('set' as const), fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 50 })),
      fc.tuple(fc.constant('delete' as const), fc.integer({ min: 0, max: 9 }), fc.constant(0)),
      fc.tuple(fc.constant('take' as const), fc.constant(0), fc.integer({ min: 0, max: 50 })),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const times = new DueTimes();
        const plain = new Map<string, number>();
        for (const [kind, key, ms] of changes) {
          if (kind === 'set') {
            times.set(`${key}`, ms);
            plain.set(`${key}`, ms);
          } else if (kind === 'delete') {
            times.delete(`${key}`);
            plain.delete(`${key}`);
          } else {
            const due = [...plain].filter(([, dueMs]) => dueMs <= ms).map(([name]) => name);
            expect([...times.takeDue(ms)].sort()).toEqual(due.sort());
            for (const name of due) plain.delete(name);
          }
          expect(times.nextMs).toBe(plain.size === 0 ? undefined : Math.min(...plain.values()));
        }
      }),
      { seed: 3, numRuns: 300 },
    );
  });
});
