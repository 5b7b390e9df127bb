/** What has happened on a cluster, as operators read it later: one record a thing, or one for a thing that goes on happening. */
import type { WorkerEvent } from '../../coordination/index.js';

/** Of topologies: what was asked for, and what became of it. */
type TopologyEventKind =
  | 'submitted'
  | 'activated'
  | 'deactivated'
  /** Asked for with a wait; `rebalanced` follows when it is over. */
  | 'rebalance-waits'
  /** New counts have come into force. */
  | 'rebalanced'
  | 'killed'
  | 'removed'
  | 'draining'
  | 'ending'
  | 'finished'
  | 'failed'
  | 'stopped';

/** Of placements: executors were given slots, or others. */
type PlacementEventKind =
  | 'placed'
  | 'moved'
  | 'move-done'
  | 'move-stayed'
  | 'move-returned'
  | 'move-cancelled'
  | 'not-placed'
  | 'not-scheduled'
  | 'not-loaded';

type MachineEventKind = 'supervisor-started' | 'machine-gone' | 'machine-returned' | 'nimbus-leads';

export type ClusterEventKind =
  | TopologyEventKind
  | PlacementEventKind
  | MachineEventKind
  | WorkerEvent['kind'];

export interface ClusterEvent {
  /** Rises with every change: a thing that has happened again has a new one. */
  readonly sequence: number;
  readonly kind: ClusterEventKind;
  /** Id and name of the topology that it happened to; null: to no single one. */
  readonly topologyId: string | null;
  readonly topology: string | null;
  /** `supervisor` or `supervisor:port`. */
  readonly place: string | null;
  readonly code: string | null;
  /** What happened, in words. */
  readonly message: string;
  /** Number of the rebalance that it belongs to. */
  readonly revision: number | null;
  /** How often it has happened between these two moments, ms since the epoch. */
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Which events are wanted; by time of their last occurrence. */
export interface EventQuery {
  /** Name of a topology; null: all of the cluster. */
  readonly name: string | null;
  /** null: however old. */
  readonly sinceMs: number | null;
  /** Only what has changed since the event of this sequence number; null: all. */
  readonly after: number | null;
}

export interface EventList {
  readonly atMs: number;
  /** Of the newest event there is: what to ask for next. */
  readonly sequence: number;
  /** Oldest first. */
  readonly events: readonly ClusterEvent[];
}
