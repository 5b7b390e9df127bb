export type { LocalCluster, LocalClusterOptions } from './local/keeper.js';
export { startLocalCluster } from './local/keeper.js';
export type { RunDirectory } from './local/run-directory.js';
export type { Bundle } from './submission/bundle.js';
export { bundleTopology, resolveEntry, stopBundler } from './submission/bundle.js';
export { describeInChild } from './submission/evaluate.js';
export type { Submission, SubmissionOptions } from './submission/submission.js';
export { prepareSubmission } from './submission/submission.js';
export { typeCheck } from './submission/type-check.js';
