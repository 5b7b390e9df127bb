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
export type { EmbeddedCoordinator } from './embedded/server.js';
export { openEmbeddedCoordinator } from './embedded/server.js';
export type {
  ComponentReport,
  FoldedHeartbeat,
  LongCall,
  LostState,
  OldestPending,
  ReportedError,
  SketchPairs,
  SlotReport,
  TaskReport,
  ThreadReport,
  ThreadState,
  WorkerHeartbeat,
} from './heartbeat.js';
export { arePositions, isWorkerHeartbeat } from './shapes.js';
export type { DesiredState, StoredWait, TopologyPhase } from './topology-phase.js';
export { isTerminal } from './topology-phase.js';
export type { WorkerHello, WorkerLaunch, WorkerWelcome } from './worker-link.js';
