/**
 * A cluster as somebody describes it, with what runs there: what a plan starts from. Immutable; a change gives another one.
 *
 * A machine that is removed stays in the list as gone, because the round treats it so: what ran there is lost at once.
 */
import { closestName, IsobarError, type Settings } from '../../base/index.js';
import type { Assignment } from '../assignment.js';
import { slotKey } from '../cluster-snapshot.js';
import type { TopologyPlan } from '../plan-topology.js';
import type { MeasuredLoads } from '../resources.js';
import type { PendingRebalance, RoundSupervisor, TopologyFacts } from '../round-types.js';

export interface ImaginedTopology {
  readonly id: string;
  readonly plan: TopologyPlan;
  readonly settings: Settings;
  /** Names of the settings that somebody has given for it, the cluster's included. */
  readonly given: ReadonlySet<string>;
  readonly facts: TopologyFacts;
  /** What runs; undefined: it is placed for the first time. */
  readonly stored: Assignment | undefined;
  /** What its executors have been measured to use. */
  readonly measured?: MeasuredLoads;
  /** A rebalance that it does not fulfil yet. */
  readonly rebalance?: PendingRebalance;
}

export interface ImaginedCluster {
  /** Time of the first round, ms; later than every start time of a worker that is old enough to be silent. */
  readonly nowMs: number;
  readonly settings: Settings;
  readonly supervisors: readonly RoundSupervisor[];
  readonly topologies: readonly ImaginedTopology[];
  /** Hosts on which nothing new is placed; not given: none. */
  readonly blacklistedHosts?: ReadonlySet<string>;
  /** Slots, as `supervisor:port`, whose workers have not been heard of for too long. */
  readonly silentSlots: ReadonlySet<string>;
}

/** Adds machines. @throws USAGE for an id that is taken */
export function addSupervisors(cluster: ImaginedCluster, added: readonly RoundSupervisor[]): ImaginedCluster {
  const taken = new Set(cluster.supervisors.map(({ id }) => id));
  for (const { id } of added) {
    if (taken.has(id)) {
      throw new IsobarError('USAGE', `there is a machine "${id}" already`, {
        expected: 'another name',
        found: id,
        where: '--add-supervisor',
      });
    }
    taken.add(id);
  }
  return { ...cluster, supervisors: [...cluster.supervisors, ...added] };
}

/** Takes machines away, by the id of a supervisor or by host. @throws SUPERVISOR_UNKNOWN */
export function removeSupervisors(cluster: ImaginedCluster, names: readonly string[]): ImaginedCluster {
  const gone = new Set(names.flatMap((name) => supervisorsNamed(cluster, name, '--remove')));
  return {
    ...cluster,
    supervisors: cluster.supervisors.map((one) =>
      gone.has(one.id) ? { ...one, ports: [], gone: true } : one,
    ),
  };
}

/** Workers fall silent, by host or supervisor and port. @throws SUPERVISOR_UNKNOWN, USAGE where nothing runs */
export function killWorkers(
  cluster: ImaginedCluster,
  workers: readonly { readonly machine: string; readonly port: number }[],
): ImaginedCluster {
  const silentSlots = new Set(cluster.silentSlots);
  const used = new Set(cluster.topologies.flatMap(({ stored }) => (stored?.slots ?? []).map(slotKey)));
  for (const { machine, port } of workers) {
    const keys = supervisorsNamed(cluster, machine, '--kill-worker')
      .map((supervisor) => slotKey({ supervisor, port }))
      .filter((key) => used.has(key));
    const [key] = keys;
    if (key === undefined) {
      throw new IsobarError('USAGE', `no worker runs on ${machine}:${port}`, {
        expected: 'the host and port of a worker',
        found: `${machine}:${port}`,
        where: '--kill-worker',
      });
    }
    silentSlots.add(key);
  }
  const topologies = cluster.topologies.map((topology): ImaginedTopology => {
    const { stored } = topology;
    if (stored === undefined) return topology;
    const slots = stored.slots.map((slot) =>
      silentSlots.has(slotKey(slot)) ? { ...slot, startedMs: 0 } : slot,
    );
    return { ...topology, stored: { ...stored, slots } };
  });
  return { ...cluster, topologies, silentSlots };
}

/** Nothing runs: everything is placed for the first time. */
export function withoutPlacement(cluster: ImaginedCluster): ImaginedCluster {
  return {
    ...cluster,
    topologies: cluster.topologies.map((topology) => ({ ...topology, stored: undefined })),
    silentSlots: new Set(),
  };
}

function supervisorsNamed({ supervisors }: ImaginedCluster, name: string, where: string): string[] {
  const present = supervisors.filter(({ gone }) => gone !== true);
  const byId = present.filter(({ id }) => id === name);
  const found = byId.length > 0 ? byId : present.filter(({ host }) => host === name);
  if (found.length > 0) return found.map(({ id }) => id);
  const names = [...new Set(present.flatMap(({ id, host }) => [id, host]))];
  const closest = names.length > MAX_COMPARED_NAMES ? undefined : closestName(name, names);
  throw new IsobarError('SUPERVISOR_UNKNOWN', `there is no machine "${name}"`, {
    expected: closest === undefined ? anyOf(names) : `did you mean "${closest}"?`,
    found: name,
    where,
  });
}

function anyOf(names: readonly string[]): string {
  if (names.length === 0) return 'a supervisor, but the cluster has none';
  const more = names.length > MAX_LISTED_NAMES ? `, … (${names.length} in all)` : '';
  return `the id or the host of a supervisor: ${names.slice(0, MAX_LISTED_NAMES).join(', ')}${more}`;
}

const MAX_COMPARED_NAMES = 10_000;
const MAX_LISTED_NAMES = 10;
