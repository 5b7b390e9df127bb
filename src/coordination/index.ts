export type {
  Coordination,
  StopWatching,
  StoredPosition,
  SupervisorRecord,
  TopologyPhase,
  TopologyRecord,
  Versioned,
} from './coordination.js';
export type {
  ComponentReport,
  FoldedHeartbeat,
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
export type { ProcessIdentity, WorkerHello, WorkerLaunch, WorkerWelcome } from './worker-link.js';
