/** Operations on one cluster: query, assign, freeSlots, and sortSlots. */
import { z } from 'zod';
import { IsobarError } from '../../../src/base/index.js';
import { type PlannedExecutor, sortSlots, WorkingCluster } from '../../../src/scheduling/index.js';
import { exact, type Facts, type Operation, rangeSchema } from './operation.js';
import { snapshotSchema, toSnapshot } from './snapshot.js';

const slotSchema = z.tuple([z.string(), z.int()]).transform(([supervisor, port]) => ({ supervisor, port }));

export const runQuery: Operation = ({ input }) => queries(clusterOf(input));

export const runFreeSlots: Operation = ({ input }) => {
  const { slots } = z.object({ slots: z.array(slotSchema) }).parse(input);
  const cluster = clusterOf(input);
  for (const slot of slots) cluster.freeSlot(slot);
  return queries(cluster);
};

const assignSchema = z.object({ slot: slotSchema, topology: z.string(), executors: z.array(rangeSchema) });

const ASSIGN_ERRORS: ReadonlyMap<string, string> = new Map([
  ['SLOT_OCCUPIED', 'slot-occupied'],
  ['EXECUTOR_ALREADY_ASSIGNED', 'executor-already-assigned'],
  ['TOPOLOGY_NOT_ALIVE', 'unknown-topology'],
]);

export const runAssign: Operation = ({ input }) => {
  const { slot, topology, executors } = assignSchema.parse(input);
  const cluster = clusterOf(input);
  try {
    cluster.assign(slot, topology, executors);
  } catch (error) {
    const name = error instanceof IsobarError ? ASSIGN_ERRORS.get(error.code) : undefined;
    if (name === undefined) throw error;
    return { error: exact(name) };
  }
  return { ok: exact(true), ...queries(cluster) };
};

export const runSortSlots: Operation = ({ input }) => {
  const { slots } = z.object({ slots: z.array(z.object({ node: z.string(), port: z.int() })) }).parse(input);
  const sorted = sortSlots(slots.map(({ node, port }) => ({ supervisor: node, port })));
  return {
    sorted: exact(sorted.map(({ supervisor, port }) => ({ node: supervisor, port }))),
    empty: exact(sorted.length === 0),
  };
};

function clusterOf(input: unknown): WorkingCluster {
  return new WorkingCluster(toSnapshot(snapshotSchema.parse(input)));
}

/** Every query of the cluster helper, by supervisor or topology. */
function queries(cluster: WorkingCluster): Facts {
  const supervisors = <T>(value: (id: string) => T) => byId(cluster.supervisorIds(), value);
  const topologies = <T>(value: (id: string) => T) => byId(cluster.topologyIds(), value);
  const filtered = (wanted: (id: string) => boolean) => ({
    value: cluster.topologyIds().filter(wanted),
    compare: 'sets' as const,
  });
  const slots = (ports: (id: string) => readonly number[]) => ({
    value: cluster.supervisorIds().flatMap((id) => ports(id).map((port) => [id, port])),
    compare: 'sets' as const,
  });
  return {
    usedPorts: supervisors((id) => cluster.usedPorts(id)),
    availablePorts: supervisors((id) => cluster.availablePorts(id)),
    assignablePorts: supervisors((id) => cluster.assignablePorts(id)),
    availableSlots: slots((id) => cluster.availablePorts(id)),
    assignableSlots: slots((id) => cluster.assignablePorts(id)),
    isBlacklisted: supervisors((id) => cluster.isBlacklisted(id)),
    needsScheduling: filtered((id) => cluster.needsScheduling(id)),
    needsSchedulingResourceAware: filtered((id) => cluster.hasUnassigned(id)),
    unassigned: topologies((id) => cluster.unassignedExecutors(id).map(({ range }) => range)),
    assignedWorkers: topologies((id) => cluster.assignedWorkers(id)),
    needsSchedulingByComponent: topologies((id) => byComponent(cluster.unassignedExecutors(id))),
  };
}

function byId<T>(ids: readonly string[], value: (id: string) => T) {
  return { value: Object.fromEntries(ids.map((id) => [id, value(id)])), compare: 'at-least' as const };
}

function byComponent(executors: readonly PlannedExecutor[]): Record<string, unknown[]> {
  const grouped: Record<string, unknown[]> = {};
  for (const { range, component } of executors) (grouped[component] ??= []).push(range);
  return grouped;
}
