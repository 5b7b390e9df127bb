/**
 * The strategy `isolation`: topologies that are named get whole hosts of their own, all others share what is left by the
 * strategy `default`. Source: Storm's `IsolationScheduler`, with the deterministic orders of ids and names where Storm's
 * result depends on hashing.
 */
import { WorkingCluster } from '../../cluster.js';
import type { ClusterSnapshot, ClusterTopology, Slot } from '../../cluster-snapshot.js';
import type { ExecutorRange } from '../../assignment.js';
import { integerDivided } from '../../executors.js';
import { compareRanges, compareText, rangeKey } from '../../order.js';
import { type DefaultOptions, scheduleByDefault } from '../default/default.js';
import { toResult } from '../even/even.js';
import type { SchedulingResult, Strategy } from '../strategy.js';

export interface IsolationOptions extends DefaultOptions {
  /** By topology name: how many hosts it gets. */
  readonly machines: ReadonlyMap<string, number>;
  /**
   * Storm stops everything that is not isolated when an isolated topology does not get its hosts. true: exactly so; false:
   * the others are placed as usual.
   */
  readonly clearsOthersOnFailure: boolean;
}

/** What an isolated topology still needs. */
interface Isolated {
  readonly id: string;
  /** Contents of its workers, by their key. */
  readonly specs: Map<string, (readonly ExecutorRange[])[]>;
  /** Workers on a host → hosts that need so many. */
  readonly sizes: Map<number, number>;
}

/** Cost: O(E log E + S log S) for E executors and S slots. */
export function isolationStrategy(options: IsolationOptions): Strategy {
  return (snapshot) => isolate(snapshot, options);
}

function isolate(snapshot: ClusterSnapshot, options: IsolationOptions): SchedulingResult {
  const cluster = new WorkingCluster(snapshot);
  const asked = [...snapshot.topologies]
    .filter(({ id }) => snapshot.scheduleOnly?.has(id) ?? true)
    .sort((a, b) => compareText(a.id, b.id));
  const isolated = new Map(
    asked.flatMap((topology) => {
      const machines = options.machines.get(topology.name ?? topology.id);
      return machines === undefined ? [] : [[topology.id, wanted(topology, machines)] as const];
    }),
  );
  const reserved: string[] = [];
  const reserve = (host: string): void => {
    cluster.reserveHost(host);
    reserved.push(host);
  };
  const hosts = slotsByHost(cluster);
  const freeIsolated = (slots: readonly Slot[]): void => {
    for (const slot of slots)
      if (isolated.has(cluster.workerAt(slot)?.topologyId ?? '')) cluster.freeSlot(slot);
  };
  for (const [host, slots] of hosts) {
    if (keepsHost(cluster, slots, isolated)) reserve(host);
    else freeIsolated(slots);
  }
  // Supervisors that are away are a host whose name nobody knows: its workers stay if they are as they should be.
  const elsewhere = cluster
    .unknownSupervisorIds()
    .flatMap((supervisor) => cluster.usedPorts(supervisor).map((port): Slot => ({ supervisor, port })));
  const keepsElsewhere = keepsHost(cluster, elsewhere, isolated);
  if (!keepsElsewhere) freeIsolated(elsewhere);
  const queue = hostQueue(cluster, hosts.keys());
  for (const one of isolated.values()) takeHosts(cluster, one, queue, reserve);
  const isShort = [...isolated.values()].some(({ specs }) => specs.size > 0);
  const rest = asked.map(({ id }) => id).filter((id) => !isolated.has(id));
  let failures = new Map<string, unknown>();
  if (isShort && options.clearsOthersOnFailure) {
    clearUnreserved(cluster, hosts.keys(), new Set(reserved));
    if (!keepsElsewhere) for (const slot of elsewhere) cluster.freeSlot(slot);
  } else failures = scheduleByDefault(cluster, rest, options);
  return { ...toResult(cluster, snapshot, failures), reservedHosts: reserved.sort(compareText) };
}

/** Executors dealt over workers, component by component; and workers over machines. */
function wanted({ id, executors, workers }: ClusterTopology, machines: number): Isolated {
  const ordered = [...executors].sort(
    (a, b) => compareText(a.component, b.component) || compareRanges(a.range, b.range),
  );
  const count = Math.max(0, workers);
  const buckets = new Map<number, ExecutorRange[]>();
  for (const [index, { range }] of ordered.entries()) {
    if (count === 0) break;
    const bucket = buckets.get(index % count);
    if (bucket === undefined) buckets.set(index % count, [range]);
    else bucket.push(range);
  }
  const specs = new Map<string, (readonly ExecutorRange[])[]>();
  for (const bucket of buckets.values()) {
    const key = specKey(bucket);
    specs.set(key, [...(specs.get(key) ?? []), bucket]);
  }
  const sizes = new Map(integerDivided(count, machines));
  sizes.delete(0);
  return { id, specs, sizes };
}

function specKey(executors: readonly ExecutorRange[]): string {
  return [...executors].sort(compareRanges).map(rangeKey).join(',');
}

/** Slots in use or on offer of registered supervisors, by host, hosts ascending. */
function slotsByHost(cluster: WorkingCluster): ReadonlyMap<string, readonly Slot[]> {
  const byHost = new Map<string, Slot[]>();
  for (const supervisor of cluster.supervisorIds()) {
    const host = cluster.hostOf(supervisor);
    if (host === undefined) continue;
    const slots = byHost.get(host) ?? [];
    for (const port of cluster.usedPorts(supervisor)) slots.push({ supervisor, port });
    byHost.set(host, slots);
  }
  return new Map([...byHost].sort(([a], [b]) => compareText(a, b)));
}

/** Does the host hold exactly what one isolated topology wants on a host? Then that is taken off its list. */
function keepsHost(
  cluster: WorkingCluster,
  slots: readonly Slot[],
  isolated: ReadonlyMap<string, Isolated>,
): boolean {
  const workers = slots.map((slot) => cluster.workerAt(slot)).filter((worker) => worker !== undefined);
  const candidate = isolated.get(workers[0]?.topologyId ?? '');
  if (candidate === undefined || workers.some(({ topologyId }) => topologyId !== candidate.id)) return false;
  const hostsOfSize = candidate.sizes.get(workers.length) ?? 0;
  if (hostsOfSize === 0) return false;
  const needed = new Map<string, number>();
  for (const { executors } of workers)
    needed.set(specKey(executors), (needed.get(specKey(executors)) ?? 0) + 1);
  for (const [key, count] of needed) if ((candidate.specs.get(key)?.length ?? 0) < count) return false;
  useSize(candidate, workers.length);
  for (const { executors } of workers) takeSpec(candidate, specKey(executors));
  return true;
}

function useSize({ sizes }: Isolated, size: number): void {
  const left = (sizes.get(size) ?? 0) - 1;
  if (left > 0) sizes.set(size, left);
  else sizes.delete(size);
}

function takeSpec({ specs }: Isolated, key: string): void {
  const left = (specs.get(key) ?? []).slice(1);
  if (left.length > 0) specs.set(key, left);
  else specs.delete(key);
}

/** Hosts that can be taken: most assignable slots first, then most free ones, then by name. */
function hostQueue(
  cluster: WorkingCluster,
  hosts: Iterable<string>,
): { readonly slots: readonly Slot[]; readonly host: string }[] {
  const supervisors = new Map<string, string[]>();
  for (const id of cluster.supervisorIds()) {
    const host = cluster.hostOf(id) ?? '';
    supervisors.set(host, [...(supervisors.get(host) ?? []), id]);
  }
  const queue = [...hosts].map((host) => {
    const own = supervisors.get(host) ?? [];
    const slots = own.flatMap((supervisor) =>
      cluster.assignablePorts(supervisor).map((port): Slot => ({ supervisor, port })),
    );
    const free = own.reduce((sum, id) => sum + cluster.availablePorts(id).length, 0);
    return { host, slots, free };
  });
  return queue
    .filter(({ slots }) => slots.length > 0)
    .sort((a, b) => b.slots.length - a.slots.length || b.free - a.free || compareText(a.host, b.host));
}

/** Largest sizes first, each from the head of the queue, which is the largest host that is left. */
function takeHosts(
  cluster: WorkingCluster,
  isolated: Isolated,
  queue: { readonly slots: readonly Slot[]; readonly host: string }[],
  reserve: (host: string) => void,
): void {
  const sizes = [...isolated.sizes]
    .sort(([a], [b]) => b - a)
    .flatMap(([size, count]) => Array.from({ length: count }, () => size));
  for (const size of sizes) {
    const head = queue[0];
    if (head === undefined || head.slots.length < size) continue;
    queue.shift();
    for (const slot of head.slots) cluster.freeSlot(slot);
    for (const slot of head.slots.slice(0, size)) {
      // With fewer executors than workers there are fewer contents than slots: the rest of the slots stay empty.
      const [next] = isolated.specs;
      const content = next?.[1][0];
      if (next === undefined || content === undefined) break;
      takeSpec(isolated, next[0]);
      cluster.assign(slot, isolated.id, content);
    }
    reserve(head.host);
  }
}

function clearUnreserved(
  cluster: WorkingCluster,
  hosts: Iterable<string>,
  reserved: ReadonlySet<string>,
): void {
  for (const host of hosts) {
    if (reserved.has(host)) continue;
    for (const supervisor of cluster.supervisorIds()) {
      if (cluster.hostOf(supervisor) !== host || cluster.isBlacklisted(supervisor)) continue;
      for (const port of cluster.usedPorts(supervisor)) cluster.freeSlot({ supervisor, port });
    }
  }
}
