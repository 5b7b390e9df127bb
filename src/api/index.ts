export { componentNotFound } from '../nimbus/index.js';
export type { ClusterClient } from './cluster-client.js';
export { clusterClient } from './cluster-client.js';
export { clusterDirectory, clusterSocketDirectory, controlSocketPath } from './cluster-place.js';
export type {
  ClusterEvent,
  ClusterEventKind,
  ClusterStatus,
  ClusterSummary,
  ComponentStatus,
  ComponentTotals,
  ControlRequests,
  DesiredAndActual,
  EventList,
  LastChange,
  LifeResult,
  LifeStatus,
  PingAnswer,
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
  TapAnswer,
  TapRow,
  TaskMove,
  TopologyDetail,
  TopologyStatus,
  TopologySummary,
  TopologyTotals,
  WorkerStatus,
} from './contract.js';
export type { ComponentLoad, Diagnosis, Skew, StuckCall } from './diagnosis/diagnose.js';
export { diagnose } from './diagnosis/diagnose.js';
export { METRICS_TABLE } from './metrics/metrics-table.js';
export { serveMetrics } from './metrics/metrics-server.js';
export type { ControlClient } from './control-socket.js';
export { connectControl, serveControl } from './control-socket.js';
