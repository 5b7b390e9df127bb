import { describe, expect, it } from 'vitest';
import { handoverState, type Handover } from './handover.js';

const record = { code: 'INTERNAL' as const, message: 'm', details: {} };
const lost: Handover = { task: 1, move: 2, step: { kind: 'released', state: { kind: 'lost' } } };
const saved: Handover = {
  task: 1,
  move: 2,
  step: { kind: 'released', state: { kind: 'saved', hash: 'h', bytes: 1 } },
};

describe('handoverState', () => {
  it('knows nothing of other tasks and of other moves', () => {
    const state = handoverState(
      [
        { ...saved, task: 2 },
        { ...saved, move: 1 },
      ],
      1,
      2,
    );
    expect(state).toEqual({ released: undefined, kept: undefined, taken: undefined, failures: [] });
  });

  it('believes the old place before whoever only says that the state is lost, in whichever order', () => {
    for (const handovers of [
      [lost, saved],
      [saved, lost],
    ]) {
      expect(handoverState(handovers, 1, 2).released?.state.kind).toBe('saved');
    }
    expect(handoverState([lost], 1, 2).released?.state.kind).toBe('lost');
  });

  it('gathers what old and new places have done', () => {
    const failed: Handover = {
      task: 1,
      move: 2,
      step: { kind: 'failed', supervisor: 's', port: 1, error: record },
    };
    const taken: Handover = { task: 1, move: 2, step: { kind: 'taken', generation: 7 } };
    const kept: Handover = { task: 1, move: 2, step: { kind: 'kept', error: record } };
    const state = handoverState([saved, failed, taken, kept], 1, 2);
    expect(state.failures).toEqual([failed.step]);
    expect(state.taken?.generation).toBe(7);
    expect(state.kept?.error.message).toBe('m');
  });
});
