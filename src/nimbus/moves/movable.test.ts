import { describe, expect, it } from 'vitest';
import { canTaskMove } from './movable.js';

const STATELESS = { kind: 'bolt', stateful: false, movable: false } as const;
const STATEFUL = { kind: 'bolt', stateful: true, movable: false } as const;
const SPOUT = { kind: 'spout', stateful: false, movable: false } as const;

describe('whether a task can move', () => {
  it('is so for a stateless or movable one, even while it starts and knows nothing of itself', () => {
    expect(canTaskMove(STATELESS, { movable: false, isRunning: false })).toBe(true);
    expect(canTaskMove({ ...STATEFUL, movable: true }, { movable: false, isRunning: false })).toBe(true);
    expect(canTaskMove(STATELESS, undefined)).toBe(true);
  });

  it('is what the task says once it runs, and is not known before', () => {
    for (const described of [STATEFUL, SPOUT]) {
      expect(canTaskMove(described, undefined)).toBeUndefined();
      expect(canTaskMove(described, { movable: false, isRunning: false })).toBeUndefined();
      expect(canTaskMove(described, { movable: true, isRunning: true })).toBe(true);
      expect(canTaskMove(described, { movable: false, isRunning: true })).toBe(false);
    }
  });

  it('is what a task says of which nobody knows the description', () => {
    expect(canTaskMove(undefined, { movable: true, isRunning: true })).toBe(true);
  });
});
