export type { DevDirectory, SupervisorSpec } from './dev/dev-directory.js';
export { devDirectory } from './dev/dev-directory.js';
export type {
  DevDaemonStatus,
  DevStatus,
  DevSupervisorStatus,
  DevTopologyStatus,
} from './dev/inspect-cluster.js';
export { inspectCluster } from './dev/inspect-cluster.js';
export type { AskedCluster, StartedCluster } from './dev/start-cluster.js';
export { startCluster } from './dev/start-cluster.js';
export { noCluster, stopCluster } from './dev/stop-cluster.js';
export { startClusterSupervisor, stopClusterSupervisor } from './dev/supervisors.js';
export type { LocalCluster, LocalClusterOptions } from './local/keeper.js';
export { startLocalCluster } from './local/keeper.js';
export type { RunDirectory } from './local/run-directory.js';
export type { LogEntry, LogFilter } from './logs/log-entry.js';
export { ENTRY_LEVELS } from './logs/log-entry.js';
export type { LogPlace } from './logs/log-places.js';
export { daemonLogs, topologyWithLogs, workerLogs } from './logs/log-places.js';
export { LogReader } from './logs/log-reader.js';
export type { Bundle } from './submission/bundle.js';
export { resolveEntry, stopBundler } from './submission/bundle.js';
export type { Submission, SubmissionOptions } from './submission/submission.js';
export { prepareSubmission } from './submission/submission.js';
