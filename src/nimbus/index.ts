export type { BlobStore } from './blob-store.js';
export { createBlobStore } from './blob-store.js';
export type { Nimbus, NimbusOptions } from './nimbus.js';
export { startNimbus } from './nimbus.js';
export type { PhaseInput } from './phases.js';
export type { RebalanceRequest } from './rebalance.js';
export { checkRebalance, desiredAfter } from './rebalance.js';
export type { LifeEvent, LifeStatus } from './status-machine.js';
export { lifeTimer, statusOf, transition } from './status-machine.js';
export type {
  ClusterStatus,
  ComponentStatus,
  SlotStatus,
  SupervisorStatus,
  TopologyStatus,
  TopologyTotals,
  WorkerStatus,
} from './status.js';
export type { SubmitRequest, SubmitResult } from './topology-requests.js';
export type { ComponentTotals } from './totals.js';
