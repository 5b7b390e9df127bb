export type { BlobStore } from './blob-store.js';
export { blobHash, createBlobStore } from './blob-store.js';
export type { ClusterEvent, ClusterEventKind, EventList, EventQuery } from './events/cluster-event.js';
export { EventJournal } from './events/event-journal.js';
export { StrategyThread } from './deciding/strategy-thread.js';
export { componentNotFound } from './component-not-found.js';
export type { TopologyDetail } from './cluster-answers.js';
export type { Nimbus, NimbusOptions } from './nimbus.js';
export { startNimbus } from './nimbus.js';
export type { PhaseInput } from './phases.js';
export type { Place, PlacementChanges, TaskMove } from './placement-changes.js';
export type { RebalanceRequest, RebalanceResult } from './rebalance.js';
export { checkRebalance, desiredAfter } from './rebalance.js';
export type { SchedulingPicture } from './scheduling-picture.js';
export type { SettingOrigin, SettingValue } from './setting-values.js';
export type {
  ClusterStatus,
  ComponentStatus,
  SlotStatus,
  SupervisorStatus,
  TopologyStatus,
  TopologyTotals,
  WorkerStatus,
} from './status.js';
export type { LifeEvent, LifeStatus } from './status-machine.js';
export { lifeTimer, statusOf, transition } from './status-machine.js';
export type { ClusterSummary, DesiredAndActual, LastChange, TopologySummary } from './summary.js';
export { idNameOf } from './submission.js';
export type { LifeResult, SubmitRequest, SubmitResult } from './topology-requests.js';
export type { ComponentTotals } from './totals.js';
export type { NimbusCounts } from './work-counts.js';
