/**
 * What a scheduling round starts from, as plain data: whoever has it can make the round that Nimbus would make, or one with
 * something changed, without touching the cluster.
 */
import { DEFAULT_SETTINGS, type RawSettings, type Settings } from '../base/index.js';
import {
  type Assignment,
  type DesiredCounts,
  isAlive,
  livenessLimits,
  type PendingRebalance,
  type RoundSupervisor,
  type RoundTopology,
} from '../scheduling/index.js';
import type { TopologyDescription } from '../topology/index.js';
import type { KnownTopology } from './known-topology.js';

export interface PicturedTopology {
  readonly id: string;
  readonly name: string;
  readonly description: TopologyDescription;
  /** The file's and what was given when it was submitted. */
  readonly settings: RawSettings;
  /** What a rebalance has made of its counts; null: they are as submitted. */
  readonly desired: DesiredCounts | null;
  /** The rebalance that its assignment does not fulfil yet; null: none. */
  readonly rebalance: PendingRebalance | null;
  /** Where it is headed; null: it has never been placed. */
  readonly stored: Assignment | null;
  /** Slots, as `supervisor:port`, in which an executor has not been heard of for too long. */
  readonly silentSlots: readonly string[];
  readonly uptimeMs: number;
  /** First task and load of executors that have been measured; not given: nobody measures. */
  readonly measured?: readonly (readonly [firstTask: number, load: number])[];
}

export interface SchedulingPicture {
  /** The time of the round, ms; start times of slots are by the same clock. */
  readonly nowMs: number;
  /** Those of the cluster that are not the default. */
  readonly settings: RawSettings;
  /** With the slots that these topologies may have; slots of topologies that are being removed are left out. */
  readonly supervisors: readonly RoundSupervisor[];
  /** Hosts on which nothing new is placed for now. */
  readonly blacklistedHosts: readonly string[];
  /** Those that are placed. */
  readonly topologies: readonly PicturedTopology[];
}

export function picturedSettings(settings: Settings): RawSettings {
  const entries = Object.entries(settings);
  return Object.fromEntries(
    entries.filter(([name, value]) => !Object.is(value, DEFAULT_SETTINGS[name as keyof Settings])), // keys of the table
  );
}

/** Undefined for one that could not be loaded: no round places it. */
export function picturedTopology(
  known: KnownTopology,
  topology: RoundTopology,
  nowMs: number,
): PicturedTopology | undefined {
  const { stored, settings, rebalance, measured } = topology;
  const { record, loaded } = known;
  if (loaded === undefined) return undefined;
  const { desired } = record;
  const limits = livenessLimits({
    clusterTimeoutMs: settings['topology.worker-timeout'],
    topologyTimeoutMs: null,
    launchTimeoutMs: settings['topology.worker-launch-timeout'],
  });
  const silent = (stored?.slots ?? []).filter(({ executors, startedMs }) =>
    executors.some(
      ([first]) => !isAlive({ startedMs, lastHeartbeatMs: topology.lastHeartbeatMs(first) }, limits, nowMs),
    ),
  );
  return {
    id: record.id,
    name: record.name,
    description: loaded.description,
    settings: record.settings,
    desired:
      desired === undefined
        ? null
        : {
            executors: desired.executors,
            ...(desired.workers === undefined ? {} : { workers: desired.workers }),
          },
    rebalance: rebalance ?? null,
    stored: stored ?? null,
    silentSlots: silent.map(({ supervisor, port }) => `${supervisor}:${port}`),
    uptimeMs: Math.max(0, nowMs - record.submittedMs),
    ...(measured === undefined ? {} : { measured: [...measured.byTask] }),
  };
}
