/**
 * The strategy `multitenant`: users that are listed have a pool of nodes of their own, each node for one topology; all others share
 * the default pool. Pools take whole nodes from the free ones first, then from the default pool, whose workers there give way.
 * Source: Storm's `MultitenantScheduler`, with orders of ids and names where Storm's result depends on hashing.
 */
import { WorkingCluster } from '../../cluster.js';
import type { ClusterSnapshot } from '../../cluster-snapshot.js';
import { compareText } from '../../order.js';
import { toResult } from '../even/even.js';
import { fillLiveWorkers } from '../even/fill-live-workers.js';
import type { SchedulingResult, Strategy, Unplaced } from '../strategy.js';
import { IsolatedPool } from './isolated-pool.js';
import { nodesOf } from './nodes.js';
import { DefaultPool, FreePool, type Shortfalls } from './pools.js';

export interface MultitenantOptions {
  /** By user: most nodes of its pool. */
  readonly userPools: ReadonlyMap<string, number>;
  /** Executors that found no slot join live workers of their topology; Storm leaves them without. */
  readonly fillLiveWorkers: boolean;
}

/** Cost: O(E log E + T N log N) for E executors, T topologies and N supervisors. */
export function multitenantStrategy(options: MultitenantOptions): Strategy {
  return (snapshot) => schedule(snapshot, options);
}

function schedule(snapshot: ClusterSnapshot, options: MultitenantOptions): SchedulingResult {
  const cluster = new WorkingCluster(snapshot);
  const nodes = nodesOf(cluster);
  const pools = new Map(
    [...options.userPools]
      .sort(([a], [b]) => compareText(a, b))
      .map(([user, most]) => [user, new IsolatedPool(cluster, nodes, most)]),
  );
  const shared = new DefaultPool(cluster, nodes);
  const free = new FreePool(nodes.values());
  const asked = [...snapshot.topologies]
    .filter(({ id }) => snapshot.scheduleOnly?.has(id) ?? true)
    .sort((a, b) => compareText(a.id, b.id));
  for (const topology of asked) {
    const own = pools.get(topology.owner ?? '');
    if (own?.canAdd(topology.id) === true) own.add(topology);
    else shared.add(topology);
  }
  const shortfalls: Shortfalls = new Map();
  const failures = new Map<string, unknown>();
  for (const pool of pools.values()) pool.schedule([free, shared], shortfalls, failures);
  shared.schedule([free], shortfalls, failures);
  if (options.fillLiveWorkers) for (const { id } of asked) fillLiveWorkers(cluster, id);
  const result = toResult(cluster, snapshot, failures);
  const unplaced = [...result.unplaced].map(([id, one]): [string, Unplaced] => {
    const reason = shortfalls.get(id);
    return [id, reason === undefined ? one : { ...one, reason }];
  });
  return { ...result, unplaced: new Map(unplaced) };
}
