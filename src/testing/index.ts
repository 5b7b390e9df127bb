/** `isobar/testing`: bolts driven by rows, and topologies run to their end, in one process with a clock of the test's own. */
export { driveBolt } from './bolt-driver.js';
export type { BoltDriver, DriverOptions, EmittedRow, RowOutcome } from './bolt-driver.js';
export { controlledSource } from './controlled-source.js';
export type { ControlledSource } from './controlled-source.js';
export { recordingSink } from './recording-sink.js';
export type { RecordingSink } from './recording-sink.js';
export { runTopology, startTopology } from './topology-run.js';
export type { RunDeadLetter, RunError, RunOptions, TopologyRun } from './topology-run.js';
