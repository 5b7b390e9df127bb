/**
 * What a topology asks of machines and what machines offer: processor, memory, and whatever else is counted. Plain data
 * of the cluster snapshot; strategies that do not look at resources ignore it.
 */
import type { GroupingDescription } from '../topology/index.js';

/** What a supervisor offers to all its workers together. */
export interface OfferedResources {
  /** 100 is one core. */
  readonly cpuPercent: number;
  readonly memoryMb: number;
  /** Anything else by name, for example `gpu.count`. */
  readonly generic?: Readonly<Record<string, number>>;
}

/** What one executor asks for, however many tasks it has. */
export interface RequestedResources {
  /** 100 is one core. */
  readonly cpuPercent: number;
  readonly onHeapMb: number;
  readonly offHeapMb: number;
  readonly generic?: Readonly<Record<string, number>>;
}

/** Memory that executors share. A name stands for one region, whichever components use it. */
export interface SharedMemory {
  readonly name: string;
  /** Counted once in a worker. */
  readonly onHeapMb: number;
  /** Counted once in a worker. */
  readonly offHeapWorkerMb: number;
  /** Counted once on a supervisor, per topology. */
  readonly offHeapMachineMb: number;
}

export interface ComponentEdge {
  readonly from: string;
  readonly grouping: GroupingDescription['kind'];
}

export interface ClusterComponent {
  readonly id: string;
  /** `system`: added by the system, for example ackers; it has no edges. */
  readonly kind: 'spout' | 'bolt' | 'system';
  readonly resources: RequestedResources;
  readonly sharedMemory?: readonly SharedMemory[];
  /** What it reads, one entry per input. */
  readonly inputs?: readonly ComponentEdge[];
  /** Executors of components with the same name may share a slot; not given: `default`. */
  readonly slotSharingGroup?: string;
  /** The i-th executors of components with the same name share a slot. */
  readonly coLocationGroup?: string;
  /** What one executor weighs, from 0; not given: 1, and 0 for a system component. */
  readonly load?: number;
  /** May a running executor be stopped and started elsewhere? Not given: yes. */
  readonly isMovable?: boolean;
  /** Not given: no. */
  readonly isStateful?: boolean;
}

/** The executors of one topology that have been measured. */
export interface MeasuredLoads {
  /** By first task: the part of its time in which it ran rows, from 0 to 1, smoothed. */
  readonly byTask: ReadonlyMap<number, number>;
  /** What an executor of weight 1 measures on average, over all topologies; 1 where nothing has been measured. */
  readonly typical: number;
}

/** What a topology says about balance; what it does not say holds for the cluster. */
export interface BalanceRules {
  readonly mode?: LoadBalanceMode;
  readonly sharing?: 'local-input-preferred' | 'task-balanced';
  /** Where loads come from; not given: `declared`. */
  readonly load?: LoadSource;
}

/** What an executor weighs: see `executorLoads`. */
export type LoadSource = 'executors' | 'tasks' | 'declared' | 'resources' | 'measured';

/**
 * `none`: a machine is filled before the next one. `slots`: slots in use are spread over machines. `tasks`: load is spread
 * over slots and machines. `min-resources`: as few machines as possible.
 */
export type LoadBalanceMode = 'none' | 'slots' | 'tasks' | 'min-resources';

/** Which executors keep apart. Names that the topology does not have are ignored. */
export interface PlacementConstraints {
  /** Pairs of components that never share a worker, in either order. */
  readonly incompatible: readonly (readonly [string, string])[];
  /** Most executors of a component on one supervisor, from 1. */
  readonly maxPerSupervisor: ReadonlyMap<string, number>;
}

/** What the settings of a topology say about where it may run. Everything is optional. */
export interface PlacementRules {
  /** The resource-aware strategy that places it, by name. */
  readonly strategy?: string;
  /** Most on-heap memory of one worker, shared parts included. */
  readonly workerMaxHeapMb?: number;
  readonly oneExecutorPerWorker?: boolean;
  readonly oneComponentPerWorker?: boolean;
  /** Ackers that are placed with the first executor of a worker. */
  readonly ackersPerWorker?: number;
  /** Hosts that are tried first, in this order. */
  readonly favouredHosts?: readonly string[];
  /** Hosts that are tried last. */
  readonly unfavouredHosts?: readonly string[];
  /** Executors are placed along the edges of the graph instead of by the number of their connections. */
  readonly orderByProximity?: boolean;
  /** Machines that it has to itself; not set: it shares. */
  readonly isolatedMachines?: number;
  /** Components of which a supervisor gets one executor, where that can be. */
  readonly spreadComponents?: readonly string[];
  readonly constraints?: PlacementConstraints;
  /** Placements of one executor that a search tries at most. */
  readonly maxSearchStates?: number;
}
