export type { LocalCluster, LocalClusterOptions } from './local/keeper.js';
export { startLocalCluster } from './local/keeper.js';
export type { RunDirectory } from './local/run-directory.js';
export type { Bundle } from './submission/bundle.js';
export { resolveEntry, stopBundler } from './submission/bundle.js';
export type { Submission, SubmissionOptions } from './submission/submission.js';
export { prepareSubmission } from './submission/submission.js';
