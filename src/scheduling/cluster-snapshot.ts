/** What strategies decide from: an immutable picture of machines, topologies and what runs where. Plain data. */
import type { ExecutorRange } from './assignment.js';
import type { PlannedExecutor } from './executors.js';
import { compareText } from './order.js';

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
  /** For how long it has been up; not given: long enough for anything. */
  readonly uptimeMs?: number;
}

export interface ClusterTopology {
  readonly id: string;
  /** Workers wanted. */
  readonly workers: number;
  /** In any order. */
  readonly executors: readonly PlannedExecutor[];
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
  /** Hosts on which nothing new is placed. */
  readonly blacklistedHosts?: ReadonlySet<string>;
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
