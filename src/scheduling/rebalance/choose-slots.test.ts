import { describe, expect, it } from 'vitest';
import { chooseSlots, type MachineSlots } from './choose-slots.js';

function machine(supervisor: string, executors: readonly number[], free: number): MachineSlots {
  return {
    supervisor,
    held: executors.map((count, index) => ({ supervisor, port: 1 + index, executors: count })),
    freePorts: Array.from({ length: free }, (_, index) => 11 + index),
  };
}

function names(machines: readonly MachineSlots[], count: number): string[] {
  return chooseSlots(machines, count).map(({ supervisor, port }) => `${supervisor}${port}`);
}

describe('choosing slots', () => {
  it('keeps what there is, and adds free slots of the machines that have least', () => {
    expect(names([machine('a', [3, 3], 2), machine('b', [3], 2)], 4)).toEqual(['a1', 'a2', 'b1', 'b11']);
  });

  it('gives up the emptiest slots, on the machine that has most', () => {
    expect(names([machine('a', [4, 3, 1], 0), machine('b', [2], 0)], 3)).toEqual(['a1', 'a2', 'b1']);
    expect(names([machine('a', [4, 3], 0), machine('b', [2, 1], 0)], 3)).toEqual(['a1', 'a2', 'b1']);
    expect(names([machine('a', [4, 3], 0), machine('b', [2, 1], 0)], 2)).toEqual(['a1', 'b1']);
  });

  it('uses a machine that has joined', () => {
    expect(names([machine('a', [2, 2, 2, 2], 0), machine('b', [], 4)], 4)).toEqual([
      'a1',
      'a2',
      'b11',
      'b12',
    ]);
    expect(names([machine('a', [2, 2, 2], 0), machine('b', [], 4)], 3)).toEqual(['a1', 'a2', 'b11']);
  });

  it('takes as many as there are where more are asked for, and none twice', () => {
    expect(names([machine('a', [1], 1), machine('b', [], 0)], 9)).toEqual(['a1', 'a11']);
    expect(names([], 3)).toEqual([]);
  });

  it('prefers machines with most free slots for workers that are new wherever they go', () => {
    expect(names([machine('a', [1], 1), machine('b', [1], 1), machine('c', [1], 3)], 4)).toEqual([
      'a1',
      'b1',
      'c1',
      'c11',
    ]);
  });
});
