/** The facts `observed` of a topology that a resource-aware strategy has placed. */
import {
  type ClusterTopology,
  type PlacedWorker,
  sharedOnSupervisors,
  useOfWorkers,
} from '../../../src/scheduling/index.js';

export function observe(
  topology: ClusterTopology,
  workers: readonly PlacedWorker[],
  minimumCpu: number,
): Record<string, unknown> {
  const uses = useOfWorkers(topology, workers, minimumCpu);
  return {
    workers: workers.length,
    nodes: new Set(workers.map(({ supervisor }) => supervisor)).size,
    executorsPerWorker: workers.map(({ executors }) => executors.length).sort((a, b) => b - a),
    workerComponents: uses
      .map(({ components }) => components)
      .sort((a, b) => compare(JSON.stringify(a), JSON.stringify(b))),
    cpu: total(uses.map(({ cpuPercent }) => cpuPercent)),
    onHeapMb: total(uses.map(({ onHeapMb }) => onHeapMb)),
    offHeapMb: total(uses.map(({ offHeapMb }) => offHeapMb)),
    sharedOffHeapNodeMb: total([...sharedOnSupervisors(topology, uses).values()]),
  };
}

function total(numbers: readonly number[]): number {
  return Math.round(numbers.reduce((sum, one) => sum + one, 0) * 1e6) / 1e6;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
