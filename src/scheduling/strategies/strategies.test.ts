import { describe, expect, it } from 'vitest';
import { compileSettings } from '../../base/index.js';
import type { ClusterSnapshot } from '../cluster-snapshot.js';
import { STRATEGY_NAMES, strategyNamed } from './strategies.js';

const settings = compileSettings();

const snapshot: ClusterSnapshot = {
  supervisors: ['m1', 'm2'].map((id) => ({
    id,
    host: id,
    ports: [1, 2],
    resources: { cpuPercent: 400, memoryMb: 4096 },
  })),
  topologies: [
    {
      id: 't',
      workers: 2,
      executors: [1, 2].map((task) => ({ range: [task, task] as const, component: 'a' })),
      components: [{ id: 'a', kind: 'spout', resources: { cpuPercent: 10, onHeapMb: 128, offHeapMb: 0 } }],
      rules: { workerMaxHeapMb: 128, isolatedMachines: 2 },
    },
  ],
  placement: new Map(),
};

describe('strategies by name', () => {
  it.each(STRATEGY_NAMES)('%s places a topology that fits', (name) => {
    const { placement, unplaced, failures } = strategyNamed(name, settings)(snapshot);
    expect([...failures]).toEqual([]);
    expect([...unplaced]).toEqual([]);
    expect(placement.get('t')?.flatMap(({ executors }) => executors)).toHaveLength(2);
  });

  it('isolates a topology whose rules ask for machines', () => {
    expect(strategyNamed('isolation', settings)(snapshot).reservedHosts).toEqual(['m1', 'm2']);
  });

  it('refuses a name that no strategy has, with the closest one', () => {
    expect(() => strategyNamed('balance', settings)).toThrow(/did you mean "balanced"/);
  });
});
