import { expect, it } from 'vitest';
import { threadHeapMb } from './thread-heap.js';

const HEAPS = { lines: 64, split: 100.5 };

it('a thread may have the heap that its executors ask for together', () => {
  expect(threadHeapMb(['lines', 'split', 'split'], HEAPS)).toBe(265);
});

it('a thread has no limit when one of its executors has asked for nothing, or when it has none', () => {
  expect(threadHeapMb(['lines', 'count'], HEAPS)).toBeNull();
  expect(threadHeapMb(['constructor'], HEAPS)).toBeNull();
  expect(threadHeapMb([], HEAPS)).toBeNull();
});

it('a thread always gets enough to load code', () => {
  expect(threadHeapMb(['tiny'], { tiny: 1 })).toBe(32);
});
