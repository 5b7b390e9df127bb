import { describe, expect, it } from 'vitest';
import type { ClusterSupervisor, ClusterTopology } from './cluster-snapshot.js';
import { neverFits } from './never-fits.js';

const topology = (
  resources: { cpuPercent?: number; onHeapMb?: number; generic?: Record<string, number> } = {},
  more: Partial<ClusterTopology> = {},
): ClusterTopology => ({
  id: 't',
  workers: 2,
  executors: [1, 2].map((task) => ({ range: [task, task], component: 'a' })),
  components: [
    { id: 'a', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 100, offHeapMb: 0, ...resources } },
  ],
  ...more,
});
const machine = (cpuPercent: number, memoryMb: number, ports = [1, 2]): ClusterSupervisor => ({
  id: `${cpuPercent}-${memoryMb}`,
  host: 'h',
  ports,
  resources: { cpuPercent, memoryMb, generic: { gpu: 1 } },
});

describe('what no machine can hold', () => {
  it('is nothing where all fits on empty machines', () => {
    expect(neverFits(topology(), [machine(100, 200)], 'resource-aware')).toEqual([]);
    expect(neverFits(topology({ generic: { gpu: 1 } }), [machine(100, 200)], 'resource-aware')).toEqual([]);
  });

  it('is an executor that asks for more than any machine has, or for what no machine has together', () => {
    const of = (...parameters: Parameters<typeof topology>): string =>
      neverFits(topology(...parameters), [machine(100, 50_000), machine(800, 200)], 'resource-aware').join(
        '\n',
      );
    expect(of({ cpuPercent: 900 })).toMatch(/no machine that could hold an executor of "a".*900 % of a core/);
    expect(of({ cpuPercent: 200, onHeapMb: 300 })).toMatch(/800 %, and 50000 MB on another/);
    expect(of({ generic: { gpu: 2 } })).toMatch(/2 gpu/);
    expect(of({ generic: { fpga: 1 } })).toMatch(/1 fpga/);
  });

  it('is a heap above that of any worker, and more in all than there is', () => {
    const limited = topology({ onHeapMb: 800 }, { rules: { workerMaxHeapMb: 768 } });
    expect(neverFits(limited, [machine(400, 9000)], 'resource-aware').join()).toMatch(
      /can never be placed.*768 MB/,
    );
    expect(neverFits(topology({ cpuPercent: 60 }), [machine(100, 900)], 'resource-aware')).toEqual([
      'asks for 120 % of a core in all, and all machines together offer 100. Add machines.',
    ]);
    expect(neverFits(topology({ onHeapMb: 200 }), [machine(100, 300)], 'resource-aware').join()).toMatch(
      /asks for 400 MB in all/,
    );
  });

  it('is more workers than slots under balanced; other strategies take what there is', () => {
    expect(neverFits(topology(), [machine(100, 100, [1])], 'balanced').join()).toMatch(
      /^wants 2 workers, and there is 1 slot in all; slot\.wait-timeout/,
    );
    const bySlots = topology({}, { balance: { mode: 'slots' } });
    expect(neverFits(bySlots, [machine(100, 100, [1])], 'balanced').join()).toMatch(
      /under load-balance\.mode slots it takes what there is, and stays on that until isobar rebalance/,
    );
    expect(neverFits(topology(), [machine(100, 100, [1])], 'even')).toEqual([]);
    expect(neverFits(topology(), [], 'balanced')).toEqual([]);
  });

  it('is the same for components without executors and machines that say nothing', () => {
    const idle = topology({}, { executors: [] });
    expect(neverFits(idle, [{ ports: [1] }], 'resource-aware')).toEqual([]);
    expect(neverFits(topology(), [{ ports: [1] }], 'resource-aware')).toHaveLength(1);
  });
});
