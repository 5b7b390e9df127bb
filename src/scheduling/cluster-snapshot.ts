/** What strategies decide from: an immutable picture of machines, topologies and what runs where. Plain data. */
import type { ExecutorRange } from './assignment.js';
import type { PlannedExecutor } from './executors.js';
import { compareText } from './order.js';
import type {
  BalanceRules,
  ClusterComponent,
  MeasuredLoads,
  OfferedResources,
  PlacementRules,
} from './resources.js';

/** A place for one worker. */
export interface Slot {
  readonly supervisor: string;
  readonly port: number;
}

export interface ClusterSupervisor {
  readonly id: string;
  readonly host: string;
  /** Slots that it offers in this round, in any order. */
  readonly ports: readonly number[];
  /** Load of workers that are not part of the snapshot; not given: 0. */
  readonly otherLoad?: number;
  /** Slots beside `ports` that are about to become free; not given: none. */
  readonly soonFree?: number;
  /** For how long it has been up; not given: long enough for anything. */
  readonly uptimeMs?: number;
  /** Not given: all such machines are in one rack. */
  readonly rack?: string;
  /** Not given: it offers nothing to a strategy that looks at resources. */
  readonly resources?: OfferedResources;
}

export interface ClusterTopology {
  readonly id: string;
  /** What people call it; not given: its id. */
  readonly name?: string;
  /** Workers wanted. */
  readonly workers: number;
  /** In any order. */
  readonly executors: readonly PlannedExecutor[];
  /** Who submitted it. */
  readonly owner?: string;
  /** 0 is most important; not given: 29. */
  readonly priority?: number;
  /** For how long it has been there; not given: 0. */
  readonly uptimeMs?: number;
  /** In any order. Not given: only its executors are known. */
  readonly components?: readonly ClusterComponent[];
  readonly rules?: PlacementRules;
  readonly balance?: BalanceRules;
  /** Not given: nothing of it has been measured. */
  readonly measured?: MeasuredLoads;
}

/** A slot with the executors of one topology. */
export interface PlacedWorker extends Slot {
  /** In ascending order of first task. */
  readonly executors: readonly ExecutorRange[];
}

/** What each topology has where, by topology id; workers in order of supervisor and port. */
export type Placement = ReadonlyMap<string, readonly PlacedWorker[]>;

export interface ClusterSnapshot {
  readonly supervisors: readonly ClusterSupervisor[];
  readonly topologies: readonly ClusterTopology[];
  readonly placement: Placement;
  /** Free slots that topologies wait for that are not to be placed now; not given: none. */
  readonly spokenFor?: number;
  /** Hosts on which nothing new is placed. */
  readonly blacklistedHosts?: ReadonlySet<string>;
  /** Supervisors that were released from the blacklist because slots are short: they are used last. */
  readonly greyListedSupervisors?: ReadonlySet<string>;
  /** Topologies that the strategy is asked to place; not given: all. */
  readonly scheduleOnly?: ReadonlySet<string>;
}

/** A slot as a text, for maps and messages. */
export function slotKey(slot: Slot): string {
  return `${slot.supervisor}:${slot.port}`;
}

/** By supervisor id, then port. */
export function compareSlots(a: Slot, b: Slot): number {
  return compareText(a.supervisor, b.supervisor) || a.port - b.port;
}
