/**
 * The coordination port, in the domain's words: what daemons agree on through the coordinator.
 *
 * Drawn for ZooKeeper's semantics (sessions, versioned nodes, ephemeral nodes, watches): one call is one atomic
 * decision about one node. A watch tells that something may have changed, never what; readers read again. Every method
 * rejects while the coordinator is away, with COORDINATOR_UNAVAILABLE or a code that says why (`isCoordinatorAway`);
 * nobody may conclude anything from that.
 */
import type { RawSettings } from '../base/index.js';
import type { Assignment } from '../scheduling/index.js';
import type { Handover, HandoverNode } from './handover.js';
import type { FoldedHeartbeat, WorkerHeartbeat } from './heartbeat.js';
import type { DesiredState, TopologyPhase } from './topology-phase.js';

/** A value with the version that a conditional write must name. */
export interface Versioned<T> {
  readonly value: T;
  readonly version: number;
}

/** Ends a watch; calling it twice is harmless. */
export type StopWatching = () => void;

/** What a supervisor says of itself. Ephemeral: it is known while its session lives. */
export interface SupervisorRecord {
  readonly id: string;
  /** Label of its machine: supervisors of one host go together. */
  readonly host: string;
  readonly rack: string;
  /** One per slot. */
  readonly ports: readonly number[];
  /** What its workers may use; less than the machine's where several supervisors share it, and then seldom whole. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** The user account that it runs as. */
  readonly owner: string;
  readonly startedMs: number;
}

export interface TopologyRecord {
  readonly id: string;
  readonly name: string;
  readonly submittedMs: number;
  /** Content hashes (SHA-256, hex) of the stored blobs. */
  readonly codeHash: string;
  readonly descriptionHash: string;
  /** Raw settings: the file's overlaid with those given at submission. */
  readonly settings: RawSettings;
  /** Secret of the topology's connections, hex. */
  readonly secret: string;
  readonly phase: TopologyPhase;
  /** Since when it is in this phase, ms since the epoch; not given: since its submission. */
  readonly phaseSinceMs?: number;
  /** Not given: as submitted. */
  readonly desired?: DesiredState;
  /** Named by whoever submitted it, so that a request that was sent twice is carried out once. */
  readonly requestId?: string;
}

/** The stored position of one spout task. */
export interface StoredPosition {
  readonly task: number;
  /** Generation of the writer; an older writer is refused. */
  readonly generation: number;
  /** Any value that JSON can hold. */
  readonly position: unknown;
}

export interface Coordination {
  // ── leadership ──
  /** Takes leadership if nobody holds it; ephemeral. Resolves to whether this session leads. */
  tryLead(nimbusId: string): Promise<boolean>;
  watchLeader(onChange: () => void): StopWatching;

  // ── supervisors ──
  announceSupervisor(record: SupervisorRecord): Promise<void>;
  /** Removes the record and the heartbeat, unless a newer session has announced the same id. */
  withdrawSupervisor(id: string): Promise<void>;
  listSupervisors(): Promise<readonly SupervisorRecord[]>;
  watchSupervisors(onChange: () => void): StopWatching;

  // ── topologies ──
  /** @throws NODE_EXISTS */
  createTopology(record: TopologyRecord): Promise<void>;
  listTopologies(): Promise<readonly Versioned<TopologyRecord>[]>;
  /** Ids of all topologies; cheaper than their records. */
  listTopologyIds(): Promise<readonly string[]>;
  readTopology(id: string): Promise<Versioned<TopologyRecord> | undefined>;
  /** @throws VERSION_CONFLICT, NODE_MISSING */
  updateTopology(record: TopologyRecord, version: number): Promise<void>;
  /** Removes the record with its assignment, positions, handovers and generation. */
  removeTopology(id: string): Promise<void>;
  /** Called when topologies were added, changed or removed: with their ids, or without where anything may have changed. */
  watchTopologies(onChange: (ids?: readonly string[]) => void): StopWatching;

  // ── assignments ──
  readAssignment(topologyId: string): Promise<Assignment | undefined>;
  listAssignments(): Promise<readonly Assignment[]>;
  /** Writes `assignment`; its version must be that of the stored one plus 1, or 1. @throws VERSION_CONFLICT */
  writeAssignment(assignment: Assignment): Promise<void>;
  /** As {@link watchTopologies}. */
  watchAssignments(onChange: (topologyIds?: readonly string[]) => void): StopWatching;

  // ── generations and positions ──
  /** Raises the generation counter of a topology and returns the new, never before returned value. @throws NODE_MISSING */
  nextGeneration(topologyId: string): Promise<number>;
  /** Per task, the entry of the highest generation over all machines. */
  readPositions(topologyId: string): Promise<readonly StoredPosition[]>;
  /** Folds entries into this machine's node; entries of an older generation than the stored one are left out. @throws NODE_MISSING for a removed topology */
  storePositions(topologyId: string, supervisorId: string, entries: readonly StoredPosition[]): Promise<void>;

  // ── planned moves ──
  /** Replaces what `writer` (a supervisor, or Nimbus) has said about a topology; nothing: removes it. */
  storeHandovers(topologyId: string, writer: string, handovers: readonly Handover[]): Promise<void>;
  /** Of one topology, or of all. */
  listHandovers(topologyId?: string): Promise<readonly HandoverNode[]>;
  /** As {@link watchTopologies}. */
  watchHandovers(onChange: (topologyIds?: readonly string[]) => void): StopWatching;

  // ── heartbeats ──
  /** One node per supervisor, for all its workers. Need not survive a crash of the coordinator. */
  publishHeartbeat(heartbeat: FoldedHeartbeat): Promise<void>;
  listHeartbeats(): Promise<readonly FoldedHeartbeat[]>;
  /** undefined: that supervisor has written none, or has withdrawn. */
  readHeartbeat(supervisorId: string): Promise<FoldedHeartbeat | undefined>;
  /** Names the supervisors whose heartbeats may have changed; without names it may be any. */
  watchHeartbeats(onChange: (supervisorIds?: readonly string[]) => void): StopWatching;
  /**
   * Tells a supervisor that last reports of ended workers, by their ids, and events (`workerEventId`) are kept elsewhere now, so
   * that it may forget them. Replaces what was acknowledged before. Need not survive a crash of the coordinator: what is
   * still there is told again.
   */
  acknowledgeReports(supervisorId: string, ids: readonly string[]): Promise<void>;
  /** Ids as last acknowledged; none at first. */
  readAcknowledged(supervisorId: string): Promise<readonly string[]>;
  watchAcknowledged(supervisorId: string, onChange: () => void): StopWatching;
  /** A worker without a supervisor speaks for itself; ephemeral. */
  publishWorkerLiveness(heartbeat: WorkerHeartbeat): Promise<void>;
  withdrawWorkerLiveness(workerId: string): Promise<void>;
  listWorkerLiveness(): Promise<readonly WorkerHeartbeat[]>;

  /** Called when the connection or the session was lost and restored: re-announce, re-read everything. */
  onReconnect(callback: () => void): StopWatching;
  close(): Promise<void>;
}
