/**
 * A production cluster as a snapshot. The file gives rows of identical supervisors and topologies with their components:
 * `{supervisors: [{rack, count, slots, memoryMb, cpuPercent}], topologies: [{id, workers, priority, workerMaxHeapMb, defaults,
 * components: [{id, kind, parallelism, cpuPercent, onHeapMb, offHeapMb, inputs: [{from, grouping}]}]}]}`.
 */
import { readFileSync } from 'node:fs';
import type { ClusterComponent, ClusterSnapshot, ClusterSupervisor, ClusterTopology } from './library.js';

interface ProductionFile {
  readonly supervisors: readonly {
    readonly rack: string;
    readonly count: number;
    readonly slots: number;
    readonly memoryMb: number;
    readonly cpuPercent: number;
  }[];
  readonly topologies: readonly ProductionTopology[];
}

interface ProductionTopology {
  readonly id: string;
  readonly priority?: number;
  readonly workerMaxHeapMb?: number;
  readonly defaults: { readonly cpuPercent: number; readonly onHeapMb: number; readonly offHeapMb: number };
  readonly components: readonly ProductionComponent[];
}

interface ProductionComponent {
  readonly id: string;
  readonly kind: 'spout' | 'bolt';
  readonly parallelism?: number;
  readonly cpuPercent?: number;
  readonly onHeapMb?: number;
  readonly offHeapMb?: number;
  readonly inputs: readonly { readonly from: string; readonly grouping?: string }[];
}

/** Storm's default limit of a worker's heap. */
const DEFAULT_HEAP_MB = 768;

/**
 * The cluster with nothing placed: one task an executor, no ackers, all submitted at the same time. Workers wanted are estimated
 * from memory: as many as hold the on-heap memory of all executors.
 */
export function readProductionCluster(file: string): ClusterSnapshot {
  const { supervisors, topologies } = JSON.parse(readFileSync(file, 'utf8')) as ProductionFile;
  return {
    supervisors: supervisorsOf(supervisors),
    topologies: topologies.map(toTopology),
    placement: new Map(),
  };
}

/** The same cluster with another way to place by resources. */
export function withPlacer(snapshot: ClusterSnapshot, strategy: string): ClusterSnapshot {
  return {
    ...snapshot,
    topologies: snapshot.topologies.map((one) => ({ ...one, rules: { ...one.rules, strategy } })),
  };
}

function supervisorsOf(rows: ProductionFile['supervisors']): ClusterSupervisor[] {
  const inRack = new Map<string, number>();
  return rows.flatMap(({ rack, count, slots, memoryMb, cpuPercent }) =>
    Array.from({ length: count }, (): ClusterSupervisor => {
      const number = inRack.get(rack) ?? 0;
      inRack.set(rack, number + 1);
      const name = String(number).padStart(3, '0');
      return {
        id: `${rack}s${name}`,
        host: `host-${name}-${rack}`,
        rack,
        ports: Array.from({ length: slots }, (_, port) => port),
        resources: { cpuPercent, memoryMb },
      };
    }),
  );
}

function toTopology(topology: ProductionTopology): ClusterTopology {
  const { id, priority, workerMaxHeapMb = DEFAULT_HEAP_MB, defaults } = topology;
  let task = 0;
  let heapMb = 0;
  const executors: { range: readonly [number, number]; component: string }[] = [];
  for (const { id: component, parallelism = 1, onHeapMb = defaults.onHeapMb } of topology.components) {
    heapMb += parallelism * onHeapMb;
    for (let count = 0; count < parallelism; count++) {
      task++;
      executors.push({ range: [task, task], component });
    }
  }
  return {
    id,
    workers: Math.ceil(heapMb / workerMaxHeapMb),
    executors,
    owner: 'user',
    ...(priority === undefined ? {} : { priority }),
    components: topology.components.map((component) => toComponent(component, defaults)),
    rules: { workerMaxHeapMb },
  };
}

function toComponent(
  { id, kind, cpuPercent, onHeapMb, offHeapMb, inputs }: ProductionComponent,
  defaults: ProductionTopology['defaults'],
): ClusterComponent {
  return {
    id,
    kind,
    resources: {
      cpuPercent: cpuPercent ?? defaults.cpuPercent,
      onHeapMb: onHeapMb ?? defaults.onHeapMb,
      offHeapMb: offHeapMb ?? defaults.offHeapMb,
    },
    inputs: inputs.map(({ from, grouping = 'shuffle' }) => ({ from, grouping: groupingOf(grouping) })),
  };
}

function groupingOf(name: string): NonNullable<ClusterComponent['inputs']>[number]['grouping'] {
  switch (name) {
    case 'fields':
    case 'all':
    case 'none':
    case 'direct':
    case 'custom':
    case 'global':
      return name;
    case 'localOrShuffle':
      return 'local-or-shuffle';
    default:
      return 'shuffle';
  }
}
