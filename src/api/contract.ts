/**
 * The requests and answers that the command line and the dashboard share with the daemons. Plain data.
 *
 * `ping` is understood by every version: whoever cannot be sure of the daemon's version asks it first and compares
 * {@link CONTRACT_VERSION}. Whatever else changes here in a way that the other side would misread raises it.
 */
import type { TappedRow, TapRequest } from '../coordination/index.js';
import type {
  ClusterStatus,
  EventList,
  EventQuery,
  ClusterSummary,
  LifeResult,
  RebalanceRequest,
  RebalanceResult,
  SchedulingPicture,
  SettingValue,
  SubmitRequest,
  SubmitResult,
  SupervisorStatus,
  TopologyDetail,
} from '../nimbus/index.js';

export type {
  ClusterEvent,
  ClusterEventKind,
  ClusterStatus,
  ClusterSummary,
  ComponentStatus,
  ComponentTotals,
  DesiredAndActual,
  EventList,
  EventQuery,
  LastChange,
  LifeResult,
  LifeStatus,
  Place,
  PlacementChanges,
  RebalanceRequest,
  RebalanceResult,
  SchedulingPicture,
  SettingOrigin,
  SettingValue,
  SlotStatus,
  SubmitRequest,
  SubmitResult,
  SupervisorStatus,
  TaskMove,
  TopologyDetail,
  TopologyStatus,
  TopologySummary,
  TopologyTotals,
  WorkerStatus,
} from '../nimbus/index.js';

/** 1 had no version of its own and asked for less. */
export const CONTRACT_VERSION = 4;

export interface PingAnswer {
  readonly nimbusId: string;
  readonly isLeader: boolean;
  readonly pid: number;
  readonly contract: number;
}

/** A submission as it is sent: with what is needed to see that it arrived as it was. */
export interface SentSubmission extends SubmitRequest {
  /** SHA-256 of the code, hex. */
  readonly codeHash?: string;
}

export interface KillRequest {
  readonly name: string;
  /** null: the topology's message time-out. */
  readonly waitMs: number | null;
}

export interface NamedRebalance {
  readonly name: string;
  readonly request: RebalanceRequest;
}

/** Live rows of one component, for a moment; see {@link TapRequest}. */
export interface TapQuestion extends TapRequest {
  readonly name: string;
}

export interface TapRow extends TappedRow {
  /** `supervisor:port`. */
  readonly worker: string;
}

export interface TapAnswer {
  /** In order of time. */
  readonly rows: readonly TapRow[];
  /** Rows that passed meanwhile. */
  readonly seen: number;
  /** Workers and threads that could not say anything, with the reason. */
  readonly unheard: readonly string[];
}

/** Requests and their answers, by name. */
export interface ControlRequests {
  readonly ping: { readonly body: null; readonly answer: PingAnswer };
  readonly submit: { readonly body: SentSubmission; readonly answer: SubmitResult };
  readonly activate: { readonly body: string; readonly answer: LifeResult };
  readonly deactivate: { readonly body: string; readonly answer: LifeResult };
  readonly rebalance: { readonly body: NamedRebalance; readonly answer: RebalanceResult };
  readonly kill: { readonly body: KillRequest; readonly answer: LifeResult };
  readonly drain: { readonly body: string; readonly answer: null };
  readonly stop: { readonly body: string; readonly answer: null };
  readonly status: { readonly body: null; readonly answer: ClusterStatus };
  readonly supervisors: { readonly body: null; readonly answer: readonly SupervisorStatus[] };
  readonly list: { readonly body: null; readonly answer: ClusterSummary };
  /** What a scheduling round would start from. */
  readonly picture: { readonly body: null; readonly answer: SchedulingPicture };
  readonly describe: { readonly body: string; readonly answer: TopologyDetail };
  readonly events: { readonly body: EventQuery; readonly answer: EventList };
  /** Who holds the oldest pending row of a topology, in words; null: nobody knows. */
  readonly holder: { readonly body: string; readonly answer: string | null };
  readonly tap: { readonly body: TapQuestion; readonly answer: TapAnswer };
  /** null: the cluster's. */
  readonly config: { readonly body: string | null; readonly answer: readonly SettingValue[] };
}
