import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../base/index.js';
import {
  type SlotNeed,
  type SlotWaitDecision,
  type SlotWaitOptions,
  type SlotWaitState,
  slotWaitOptions,
  waitForSlots,
} from './slot-wait.js';

const OPTIONS: SlotWaitOptions = {
  requestMaxIntervalMs: 20,
  requestMaxDelayMs: 100,
  slotWaitTimeoutMs: 3000,
};

/** A wait that is told of one view after the other. */
class Wait {
  state: SlotWaitState | undefined;
  readonly #options: SlotWaitOptions;

  constructor(options: Partial<SlotWaitOptions> = {}) {
    this.#options = { ...OPTIONS, ...options };
  }

  isRunning = false;

  look(nowMs: number, wanted: number, ...free: readonly number[]): SlotWaitDecision {
    const need = { ...needOf(wanted, free), isRunning: this.isRunning };
    const step = waitForSlots(this.state, need, this.#options, nowMs);
    this.state = step.state;
    return step.decision;
  }
}

/** `free[i]` slots on machine `i`; -1: the machine is not there. */
function needOf(wanted: number, free: readonly number[]): Omit<SlotNeed, 'isRunning'> {
  const machines = free.flatMap((count, machine): (readonly [string, readonly string[]])[] =>
    count < 0 ? [] : [[`m${machine}`, Array.from({ length: count }, (_, port) => `m${machine}:${port}`)]],
  );
  return { wanted, free: new Map(machines) };
}

describe('waiting for slots', () => {
  it('asks once it has been quiet, and places when the free slots cover what is wanted', () => {
    const wait = new Wait();
    expect(wait.look(0, 6, 3)).toEqual({ kind: 'wait', wanted: 6, free: 3, dueMs: 20 });
    expect(wait.look(20, 6, 3)).toEqual({ kind: 'wait', wanted: 6, free: 3, dueMs: 3000 });
    expect(wait.state?.declarations).toBe(1);
    expect(wait.look(1500, 6, 3, 2)).toMatchObject({ kind: 'wait', free: 5 });
    expect(wait.look(2000, 6, 3, 3)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('waits for quiet even when there are slots enough', () => {
    const wait = new Wait();
    expect(wait.look(0, 2, 4)).toMatchObject({ kind: 'wait', dueMs: 20 });
    expect(wait.look(20, 2, 4)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('declares wants that trickle within the bound, however they trickle', () => {
    const wait = new Wait();
    for (let step = 0; step < 10; step++) expect(wait.look(step * 10, step + 1, 100).kind).toBe('wait');
    expect(wait.look(100, 11, 100)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('does not count a machine that has gone', () => {
    const wait = new Wait();
    wait.look(0, 6, 3);
    wait.look(20, 6, 3);
    expect(wait.look(30, 6, -1, 3)).toMatchObject({ kind: 'wait', free: 3 });
    expect(wait.look(40, 6, -1, 3, 3)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('does not count slots that somebody else has taken', () => {
    const wait = new Wait();
    wait.look(0, 4, 3);
    wait.look(20, 4, 3);
    expect(wait.look(30, 4, 1, 2)).toMatchObject({ kind: 'wait', free: 3 });
    expect(wait.look(40, 4, 2, 2)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('places on what there is when the wait is over, and uses later slots as they come', () => {
    const wait = new Wait();
    wait.look(0, 6, 3);
    expect(wait.look(2999, 6, 3)).toMatchObject({ kind: 'wait', dueMs: 3000 });
    expect(wait.look(3000, 6, 3)).toEqual({ kind: 'place', isProvisional: true });
    expect(wait.look(3001, 3, 0, 1)).toEqual({ kind: 'place', isProvisional: true });
    expect(wait.look(3002, 2, 0, 2)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('waits again, but not for longer, when others took the slots that it was to have', () => {
    const wait = new Wait();
    wait.look(0, 2, 2);
    expect(wait.look(20, 2, 2)).toMatchObject({ kind: 'place' });
    expect(wait.look(25, 2, 0)).toMatchObject({ kind: 'wait' });
    expect(wait.look(3000, 2, 1)).toEqual({ kind: 'place', isProvisional: true });
  });

  it('never ends without slots where no time-out is set', () => {
    const wait = new Wait({ slotWaitTimeoutMs: null });
    wait.look(0, 2, 1);
    wait.look(20, 2, 1);
    expect(wait.look(1e9, 2, 1)).toEqual({ kind: 'wait', wanted: 2, free: 1, dueMs: Infinity });
    expect(wait.look(1e9 + 1, 2, 1, 1)).toMatchObject({ kind: 'place' });
  });

  it('places at once where nothing is to be waited for', () => {
    expect(new Wait({ requestMaxIntervalMs: 0 }).look(0, 2, 2)).toMatchObject({ kind: 'place' });
    const impatient = new Wait({ slotWaitTimeoutMs: 0 });
    expect(impatient.look(0, 2, 1)).toEqual({ kind: 'place', isProvisional: true });
  });

  it('waits for quiet alone, and not for slots that are not there, where workers live', () => {
    const wait = new Wait();
    wait.isRunning = true;
    expect(wait.look(0, 3, 1)).toMatchObject({ kind: 'wait', dueMs: 20 });
    expect(wait.look(20, 3, 1)).toEqual({ kind: 'place', isProvisional: true });
    // A second loss meets a wait that is over.
    expect(wait.look(25, 5, 1)).toEqual({ kind: 'place', isProvisional: true });
    const covered = new Wait();
    covered.isRunning = true;
    covered.look(0, 3, 3);
    expect(covered.look(20, 3, 3)).toEqual({ kind: 'place', isProvisional: false });
  });

  it('lets a topology that runs go on within the bound on declarations, whatever comes and goes', () => {
    const change = fc.record({
      afterMs: fc.integer({ min: 0, max: 30 }),
      wanted: fc.integer({ min: 1, max: 8 }),
      free: fc.array(fc.integer({ min: -1, max: 1 }), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 30 }), (changes) => {
        const wait = new Wait();
        wait.isRunning = true;
        let [nowMs, dueMs] = [0, Infinity];
        let isOver = false;
        for (const { afterMs, wanted, free } of changes) {
          nowMs = Math.min(nowMs + afterMs, dueMs);
          // What covers the wants ends the wait for good; here nothing does.
          const lacks = free.reduce((sum, count) => sum + Math.max(0, count), 0) < wanted + 3;
          const decision = wait.look(nowMs, wanted + 3, ...free);
          if (!lacks || decision.kind === 'place') isOver = true;
          if (decision.kind === 'wait') expect(nowMs - changes[0]!.afterMs).toBeLessThan(100);
          if (isOver) expect(decision.kind).toBe('place');
          dueMs = decision.kind === 'wait' ? decision.dueMs : Infinity;
        }
      }),
      { seed: 20_267, numRuns: 500 },
    );
  });

  it('has no bound under compatibility with Flink, as if none were set', () => {
    const bounds = { requestMaxDelayMs: null, slotWaitTimeoutMs: null };
    expect(slotWaitOptions(compileSettings({ 'scheduling.compatibility': ['flink'] }))).toMatchObject(bounds);
    expect(slotWaitOptions(compileSettings())).toMatchObject({
      requestMaxDelayMs: 1000,
      slotWaitTimeoutMs: 5000,
    });
    // Nor does a topology that runs go on with fewer slots then.
    const wait = new Wait({ slotWaitTimeoutMs: null });
    wait.isRunning = true;
    wait.look(0, 3, 1);
    expect(wait.look(20, 3, 1)).toMatchObject({ kind: 'wait' });
  });

  it('ends within its bound and places early only what is covered, whatever comes and goes', () => {
    const change = fc.record({
      afterMs: fc.integer({ min: 0, max: 400 }),
      wanted: fc.integer({ min: 1, max: 8 }),
      free: fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 30 }), (changes) => {
        const wait = new Wait();
        let nowMs = 0;
        let dueMs = Infinity;
        for (const { afterMs, wanted, free } of changes) {
          nowMs = Math.min(nowMs + afterMs, dueMs);
          const decision = wait.look(nowMs, wanted, ...free);
          const there = free.reduce((sum, count) => sum + Math.max(0, count), 0);
          if (decision.kind === 'place') {
            expect(decision.isProvisional).toBe(there < wanted);
            if (decision.isProvisional) expect(nowMs).toBeGreaterThanOrEqual(3000);
            dueMs = Infinity;
          } else {
            expect(nowMs).toBeLessThan(3000);
            expect(decision.dueMs).toBeGreaterThan(nowMs);
            ({ dueMs } = decision);
          }
        }
      }),
      { seed: 20_266, numRuns: 500 },
    );
  });
});
