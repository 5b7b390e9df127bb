/** What the settings of a topology say about where it may run and what its executors ask for. */
import type { Settings } from '../base/index.js';
import type { ClusterTopology } from './cluster-snapshot.js';
import type { RequestedResources } from './resources.js';

const BYTES_PER_MB = 1_048_576;

/** Facts of a topology that come from its settings; strategies that do not look at them ignore them. */
export function factsOfSettings(settings: Settings): Pick<ClusterTopology, 'owner' | 'priority' | 'rules'> {
  const owner = settings['topology.owner'];
  const machines = settings['topology.isolated-machines'];
  const spread = settings['topology.spread-components'];
  return {
    ...(owner === null ? {} : { owner }),
    priority: settings['topology.priority'],
    rules: {
      strategy: settings['topology.scheduler-strategy'],
      workerMaxHeapMb: settings['topology.worker-max-heap'] / BYTES_PER_MB,
      ...(machines === null ? {} : { isolatedMachines: machines }),
      ...(spread.length === 0
        ? {}
        : {
            spreadComponents: spread,
            constraints: { incompatible: [], maxPerSupervisor: new Map(spread.map((id) => [id, 1])) },
          }),
    },
  };
}

/** What one executor asks for that does not say so itself; its load multiplies the processor. */
export function requestOfSettings(settings: Settings, load = 1): RequestedResources {
  return {
    cpuPercent: settings['topology.component-cpu'] * load,
    onHeapMb: settings['topology.component-heap'] / BYTES_PER_MB,
    offHeapMb: settings['topology.component-off-heap'] / BYTES_PER_MB,
  };
}

/** Names by which a rebalance gives what one executor asks for: Isobar's and Storm's. The processor is in % of a core, memory in MB. */
const REQUESTS = {
  cpu: 'cpuPercent',
  'cpu.pcore.percent': 'cpuPercent',
  heap: 'onHeapMb',
  'onheap.memory.mb': 'onHeapMb',
  'off-heap': 'offHeapMb',
  'offheap.memory.mb': 'offHeapMb',
} as const satisfies Readonly<Record<string, keyof RequestedResources>>;

export const RESOURCE_NAMES: readonly string[] = Object.keys(REQUESTS);

/** A request with these amounts in place of its own; names that are not known change nothing. */
export function requestAfter(
  request: RequestedResources,
  amounts: Readonly<Record<string, number>> = {},
): RequestedResources {
  const changed = Object.entries(REQUESTS).flatMap(([name, field]) => {
    const amount = amounts[name];
    return amount === undefined ? [] : [[field, amount] as const];
  });
  return changed.length === 0 ? request : { ...request, ...Object.fromEntries(changed) };
}
