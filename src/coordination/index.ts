export type { CoordinationOptions } from './connect.js';
export { connectCoordination, isCoordinatorAway } from './connect.js';
export type {
  Coordination,
  StopWatching,
  StoredPosition,
  SupervisorRecord,
  TopologyRecord,
  Versioned,
} from './coordination.js';
export { openEmbeddedCoordinator } from './embedded/open.js';
export type { EmbeddedCoordinator } from './embedded/server.js';
export type { Handover, HandoverNode, HandoverState, HandoverStep, ReleasedState } from './handover.js';
export { handoverState } from './handover.js';
export type {
  ComponentReport,
  FoldedHeartbeat,
  LongCall,
  LostState,
  OldestPending,
  ReportedError,
  SketchPairs,
  SlotReport,
  TaskCounts,
  TaskReport,
  ThreadReport,
  ThreadState,
  WorkerEvent,
  WorkerHeartbeat,
} from './heartbeat.js';
export { quietIntervalMs, workerEventId, workerEventSort } from './heartbeat.js';
export {
  areHandovers,
  arePositions,
  areWorkerEvents,
  isSlotSearch,
  isSlotTap,
  isStateCopy,
  isStateFile,
  isWorkerHeartbeat,
} from './shapes.js';
export type { SlotSearch, SlotTap, TappedRow, TapReport, TapRequest } from './tap.js';
export { MAX_TAP_ROWS, MAX_TAP_WINDOW_MS, MIN_TAP_WINDOW_MS } from './tap.js';
export type { DesiredState, StoredWait, TopologyPhase } from './topology-phase.js';
export { isTerminal } from './topology-phase.js';
export type { StateCopy, StateFile, WorkerHello, WorkerLaunch, WorkerWelcome } from './worker-link.js';
export { LAST_REPORT_FILE } from './worker-link.js';
export { parseZooKeeperAddress } from './zookeeper/address.js';
