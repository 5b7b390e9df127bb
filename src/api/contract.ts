/** The requests and answers that the command line and the dashboard share with the daemons. Plain data. */
export type {
  ClusterStatus,
  ComponentStatus,
  ComponentTotals,
  SlotStatus,
  SubmitRequest,
  SubmitResult,
  SupervisorStatus,
  TopologyStatus,
  TopologyTotals,
  WorkerStatus,
} from '../nimbus/index.js';

export interface PingAnswer {
  readonly nimbusId: string;
  readonly isLeader: boolean;
  readonly pid: number;
}
