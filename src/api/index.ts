export type {
  ClusterStatus,
  ComponentStatus,
  ComponentTotals,
  PingAnswer,
  SlotStatus,
  SubmitRequest,
  SubmitResult,
  SupervisorStatus,
  TopologyStatus,
  TopologyTotals,
  WorkerStatus,
} from './contract.js';
export type { ControlClient } from './control-socket.js';
export { connectControl, serveControl } from './control-socket.js';
