import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot, PlacedWorker } from './cluster-snapshot.js';
import { settledPlacement } from './complete-placement.js';

const executors = [{ range: [1, 1] as const, component: 'a' }];
const at = (supervisor: string, port: number): readonly PlacedWorker[] => [
  { supervisor, port, executors: [[1, 1]] },
];
const snapshot = (lists: Readonly<Record<string, readonly PlacedWorker[]>>): ClusterSnapshot => ({
  supervisors: [],
  topologies: Object.keys(lists).map((id) => ({ id, workers: 1, executors })),
  placement: new Map(Object.entries(lists)),
});

describe('a settled placement', () => {
  it('is handed through as it is, seen for the first time or again', () => {
    const lists = { a: at('m', 1), b: at('m', 2), c: at('n', 1) };
    for (let round = 0; round < 2; round++) {
      const settled = settledPlacement(snapshot(lists), true);
      expect([...settled!]).toEqual(Object.entries(lists));
      expect(settled!.get('b')).toBe(lists.b);
    }
  });

  it('is none where two topologies share a slot, even if each was settled beside others', () => {
    const [a, b, c] = [at('m', 1), at('m', 2), at('m', 1)];
    expect(settledPlacement(snapshot({ a, b }), true)).toBeDefined();
    expect(settledPlacement(snapshot({ a, c }), true)).toBeUndefined();
    expect(settledPlacement(snapshot({ a, b, c }), true)).toBeUndefined();
    expect(settledPlacement(snapshot({ a, b }), true)).toBeDefined();
  });

  it('is none where an executor or a worker is missing', () => {
    expect(settledPlacement(snapshot({ a: [] }), false)).toBeUndefined();
    const wants = { ...snapshot({ a: at('m', 1) }) };
    const two = {
      ...wants,
      topologies: [
        { id: 'a', workers: 2, executors: [...executors, { range: [2, 2] as const, component: 'a' }] },
      ],
    };
    expect(settledPlacement(two, false)).toBeUndefined();
  });
});
