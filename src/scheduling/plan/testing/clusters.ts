/** Small clusters to plan. */
import { compileSettings, type RawSettings } from '../../../base/index.js';
import { planTopology } from '../../plan-topology.js';
import type { RoundSupervisor } from '../../round-types.js';
import type { ImaginedCluster, ImaginedTopology } from '../imagined-cluster.js';

export const NOW_MS = 1e9;

/** A chain of bolts behind a spout; parallelism by component. */
export function chain(
  id: string,
  counts: Readonly<Record<string, number>>,
  raw: RawSettings = {},
): ImaginedTopology {
  const settings = compileSettings({ 'topology.workers': 'max-parallelism', 'topology.ackers': 0 }, raw);
  const names = Object.keys(counts);
  const plan = planTopology(
    {
      name: id,
      components: names.map((name, index) => ({
        id: name,
        kind: index === 0 ? ('spout' as const) : ('bolt' as const),
        parallelism: counts[name]!,
        tasks: null,
        movable: true,
        stateful: false,
        subscriptions: index === 0 ? [] : [{ source: names[index - 1]!, grouping: { kind: 'shuffle' } }],
        resources: { cpuPercent: 10, onHeapMb: 100, offHeapMb: 0 },
      })),
    },
    settings,
  );
  return { id, plan, settings, given: new Set(Object.keys(raw)), facts: { name: id }, stored: undefined };
}

export function machines(slots: readonly number[], racks = 1): RoundSupervisor[] {
  return slots.map((count, index) => ({
    id: `m${index + 1}`,
    host: `m${index + 1}`,
    rack: `r${(index % racks) + 1}`,
    ports: Array.from({ length: count }, (_, port) => 6700 + port),
    resources: { cpuPercent: 400, memoryMb: 4000 },
  }));
}

export function cluster(
  supervisors: readonly RoundSupervisor[],
  topologies: readonly ImaginedTopology[],
): ImaginedCluster {
  return { nowMs: NOW_MS, settings: compileSettings(), supervisors, topologies, silentSlots: new Set() };
}
