export type { SharingEdge, SharingGraph, SharingVertex, SlotCounts, SlotSharing } from './sharing-graph.js';
export { DEFAULT_SHARING_GROUP } from './sharing-graph.js';
export { localInputPreferredSharing } from './local-input-preferred.js';
export { slotCounts } from './slot-counts.js';
export { subtaskIndexSharing } from './subtask-index.js';
export { taskBalancedSharing } from './task-balanced.js';
