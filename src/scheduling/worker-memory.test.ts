import { describe, expect, it } from 'vitest';
import { compileSettings } from '../base/index.js';
import { askedMemory, declaredHeapMb } from './worker-memory.js';

const TASKS = [
  { component: '__acker', first: 1, last: 1 },
  { component: 'lines', first: 2, last: 3 },
  { component: 'split', first: 4, last: 7 },
];
const SETTINGS = compileSettings({ 'topology.component-heap': '64MB', 'topology.component-off-heap': '8MB' });

describe('askedMemory', () => {
  it('is the sum over executors, however many tasks they have', () => {
    const executors = [[1, 1] as const, [2, 3] as const, [4, 5] as const, [6, 7] as const];
    expect(askedMemory(executors, TASKS, SETTINGS)).toEqual({ onHeapMb: 256, offHeapMb: 32 });
  });

  it('takes the amounts of a rebalance in place of those of the settings, under either name', () => {
    const asked = { split: { heap: 100, 'offheap.memory.mb': 1 }, other: { heap: 5000 } };
    expect(
      askedMemory(
        [
          [2, 3],
          [4, 7],
        ],
        TASKS,
        SETTINGS,
        asked,
      ),
    ).toEqual({ onHeapMb: 164, offHeapMb: 9 });
  });

  it('of nothing is nothing', () => {
    expect(askedMemory([], TASKS, SETTINGS)).toEqual({ onHeapMb: 0, offHeapMb: 0 });
  });
});

describe('declaredHeapMb', () => {
  it('names every component once the setting was given', () => {
    expect(declaredHeapMb(TASKS, SETTINGS, true)).toEqual({ __acker: 64, lines: 64, split: 64 });
  });

  it('names only components whose heap a rebalance has asked for otherwise', () => {
    const asked = { split: { 'onheap.memory.mb': 300 }, lines: { cpu: 5 } };
    expect(declaredHeapMb(TASKS, SETTINGS, false, asked)).toEqual({ split: 300 });
    expect(declaredHeapMb(TASKS, SETTINGS, false)).toEqual({});
  });
});
