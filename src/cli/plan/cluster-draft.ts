/**
 * A cluster that is being put together from files, options and a running cluster: machines, and topologies with their settings
 * before these are compiled. Pure.
 */
import type { RawSettings } from '../../base/index.js';
import type {
  Assignment,
  DesiredCounts,
  PendingRebalance,
  PlannableTopology,
  RoundSupervisor,
  TopologyFacts,
} from '../../scheduling/index.js';
import type { InputFaults } from './input-faults.js';

export interface DraftWorker {
  readonly supervisor: string;
  readonly port: number;
  readonly executors: readonly (readonly [number, number])[];
  readonly startedMs?: number;
}

export interface TopologyDraft {
  readonly id: string;
  /** File and path, for faults. */
  readonly where: string;
  readonly topology: PlannableTopology;
  readonly settings: RawSettings;
  readonly facts: TopologyFacts;
  readonly desired?: DesiredCounts;
  /** undefined: it is new. */
  readonly placement?: readonly DraftWorker[];
  /** In place of `placement`: as it was read from a running cluster, which need not fit what its counts are now. */
  readonly stored?: Assignment;
  readonly rebalance?: PendingRebalance;
  /** First task and load of executors that have been measured. */
  readonly measured?: readonly (readonly [firstTask: number, load: number])[];
}

export interface ClusterDraft {
  readonly settings: RawSettings;
  readonly supervisors: readonly RoundSupervisor[];
  readonly topologies: readonly TopologyDraft[];
  /** Sentences on what was taken differently than it was written. */
  readonly notes: readonly string[];
  readonly atMs?: number;
  readonly silentSlots?: readonly string[];
  readonly blacklistedHosts?: readonly string[];
  /** When supervisors offer their slots, by id, ms after the start of a timeline. */
  readonly offersAtMs?: ReadonlyMap<string, number>;
}

/** Several sources as one. Machines and topologies that are named twice are faults. */
export function mergeDrafts(drafts: readonly ClusterDraft[], faults: InputFaults): ClusterDraft {
  const taken = new Set<string>();
  const topologies = drafts.flatMap((draft) => draft.topologies);
  for (const { id, where, facts } of topologies) {
    const { name = id } = facts;
    if (taken.has(id)) faults.add(`${where}.id`, 'an id of its own', id);
    else if (taken.has(name)) faults.add(`${where}.name`, 'a name that no other topology has', name);
    taken.add(id);
    taken.add(name);
  }
  const supervisors = drafts.flatMap((draft) => draft.supervisors);
  const drafted = new Map<string, ClusterDraft>();
  for (const draft of drafts) {
    for (const { id } of draft.supervisors) {
      if ((drafted.get(id) ?? draft) !== draft)
        faults.add('supervisors', 'each supervisor in one file only', id);
      drafted.set(id, draft);
    }
  }
  const atMs = drafts.find((draft) => draft.atMs !== undefined)?.atMs;
  return {
    settings: Object.assign({}, ...drafts.map(({ settings }) => settings)) as RawSettings,
    supervisors,
    topologies,
    notes: drafts.flatMap(({ notes }) => notes),
    offersAtMs: new Map(drafts.flatMap((draft) => [...(draft.offersAtMs ?? [])])),
    blacklistedHosts: drafts.flatMap((draft) => draft.blacklistedHosts ?? []),
    silentSlots: drafts.flatMap((draft) => draft.silentSlots ?? []),
    ...(atMs === undefined ? {} : { atMs }),
  };
}
