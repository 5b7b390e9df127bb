/** Properties that a resource-aware case asks for, and what holds in every case: no capacity is exceeded. */
import { z } from 'zod';
import type { ClusterSnapshot, ResourceAwareResult } from '../../../src/scheduling/index.js';
import { NotSupported } from './operation.js';
import { sharedOnSupervisors, sum, useOfWorkers, type WorkerUse } from './resource-use.js';

const propertySchema = z.object({
  kind: z.string(),
  topology: z.string().optional(),
  nodes: z.array(z.string()).default([]),
  max: z.number().default(Infinity),
  component: z.string().optional(),
  components: z.array(z.string()).default([]),
  resources: z.array(z.enum(['cpu', 'memory'])).default([]),
});

const TOLERANCE = 1e-6;

/** Sentences on how the property is broken. */
export function checkProperty(
  property: unknown,
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
): string[] {
  const parsed = propertySchema.parse(property);
  const topologies = snapshot.topologies.filter(
    ({ id }) => parsed.topology === undefined || id === parsed.topology,
  );
  const uses = topologies.flatMap((topology) =>
    useOfWorkers(topology, result.placement.get(topology.id) ?? []),
  );
  const used = new Set(uses.map(({ worker }) => worker.supervisor));
  const holds = ((): boolean => {
    switch (parsed.kind) {
      case 'onlyNodes':
        return [...used].every((node) => parsed.nodes.includes(node));
      case 'nodesNotUsed':
        return parsed.nodes.every((node) => !used.has(node));
      case 'maxNodes':
        return used.size <= parsed.max;
      case 'maxExecutorsPerWorker':
        return uses.every(({ components }) => components.length <= parsed.max);
      case 'oneComponentPerWorker':
        return uses.every(({ components }) => new Set(components).size <= 1);
      case 'neverShareWorker':
        return uses.every(({ components }) => !parsed.components.every((one) => components.includes(one)));
      case 'maxExecutorsOfComponentPerNode':
        return [...used].every((node) => countOn(node, uses, parsed.component) <= parsed.max);
      case 'nodeFullyUsed':
        return parsed.nodes.every((node) =>
          parsed.resources.every((kind) => isFull(node, kind, snapshot, result)),
        );
      default:
        throw new NotSupported(`property ${parsed.kind}`);
    }
  })();
  return holds ? [] : [`${parsed.kind} does not hold`];
}

function countOn(node: string, uses: readonly WorkerUse[], component: string | undefined): number {
  return sum(
    uses
      .filter(({ worker }) => worker.supervisor === node)
      .map(({ components }) => components.filter((one) => one === component).length),
  );
}

function isFull(
  node: string,
  kind: 'cpu' | 'memory',
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
): boolean {
  const offered = snapshot.supervisors.find(({ id }) => id === node)?.resources;
  const total = kind === 'cpu' ? offered?.cpuPercent : offered?.memoryMb;
  return Math.abs((total ?? 0) - usedOn(node, snapshot, result, 0)[kind]) < TOLERANCE;
}

function usedOn(
  node: string,
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
  minimumCpu: number,
): { readonly cpu: number; readonly memory: number; readonly generic: ReadonlyMap<string, number> } {
  let cpu = 0;
  let memory = 0;
  const generic = new Map<string, number>();
  for (const topology of snapshot.topologies) {
    const all = useOfWorkers(topology, result.placement.get(topology.id) ?? [], minimumCpu);
    memory += sharedOnSupervisors(topology, all).get(node) ?? 0;
    for (const use of all.filter(({ worker }) => worker.supervisor === node)) {
      cpu += use.cpu;
      memory += use.onHeapMb + use.offHeapMb;
      for (const [name, amount] of use.generic) generic.set(name, (generic.get(name) ?? 0) + amount);
    }
  }
  return { cpu, memory, generic };
}

/** What holds whatever the case is. Supervisors that used too much before may still do. */
export function checkAlways(
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
  minimumCpu: number,
): string[] {
  const problems: string[] = [];
  const before = { ...result, placement: snapshot.placement };
  for (const { id, resources } of snapshot.supervisors) {
    const now = usedOn(id, snapshot, result, minimumCpu);
    const then = usedOn(id, snapshot, before, minimumCpu);
    const within = (used: number, usedBefore: number, total: number): boolean =>
      used <= Math.max(total, usedBefore) + TOLERANCE;
    if (!within(now.cpu, then.cpu, resources?.cpuPercent ?? 0)) problems.push(`${id} exceeds its processors`);
    if (!within(now.memory, then.memory, resources?.memoryMb ?? 0)) problems.push(`${id} exceeds its memory`);
    for (const [name, used] of now.generic) {
      if (!within(used, then.generic.get(name) ?? 0, resources?.generic?.[name] ?? 0)) {
        problems.push(`${id} exceeds its ${name}`);
      }
    }
  }
  for (const topology of snapshot.topologies) {
    const old = new Set((snapshot.placement.get(topology.id) ?? []).map((worker) => JSON.stringify(worker)));
    for (const use of useOfWorkers(topology, result.placement.get(topology.id) ?? [])) {
      if (old.has(JSON.stringify(use.worker))) continue;
      if (use.onHeapMb > (topology.rules?.workerMaxHeapMb ?? Infinity) + TOLERANCE) {
        problems.push(`a worker of ${topology.id} exceeds its heap`);
      }
    }
  }
  return problems;
}
