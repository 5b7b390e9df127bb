/** Properties that a resource-aware case asks for. */
import { z } from 'zod';
import {
  type ClusterSnapshot,
  type ResourceAwareResult,
  useOfSupervisors,
  useOfWorkers,
  type WorkerUse,
} from '../../../src/scheduling/index.js';
import { NotSupported } from './operation.js';

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
  return uses
    .filter(({ worker }) => worker.supervisor === node)
    .flatMap(({ components }) => components.filter((one) => one === component)).length;
}

function isFull(
  node: string,
  kind: 'cpu' | 'memory',
  snapshot: ClusterSnapshot,
  result: ResourceAwareResult,
): boolean {
  const offered = snapshot.supervisors.find(({ id }) => id === node)?.resources;
  const used = useOfSupervisors(snapshot, result.placement).get(node);
  return kind === 'cpu'
    ? isNear(offered?.cpuPercent ?? 0, used?.cpuPercent ?? 0)
    : isNear(offered?.memoryMb ?? 0, used?.memoryMb ?? 0);
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) < TOLERANCE;
}
